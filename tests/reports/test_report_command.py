import json
import re
import uuid
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater
from evaluations.models.runs import Run
from tests.factories.evaluations import make_comparison, make_evaluation, make_human
from tests.factories.verdicts import (
    make_judge_score,
    make_judge_verdicts,
    make_next_rubric_version,
    make_review,
    make_scoring_judge,
)

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


@pytest.fixture(autouse=True)
def votes_of_reviewers_and_a_judge(evaluation: Evaluation) -> None:
    comparison = make_comparison(evaluation, category="math")
    for name in ("ann", "ben"):
        make_review(make_human(evaluation, name), comparison, {"clarity": "A"})
    make_judge_verdicts(comparison, as_stored={"clarity": "A"}, swapped={"clarity": "A"})


def refused(*arguments: str) -> str:
    with pytest.raises(CommandError) as error:
        call_command("report", *arguments)
    assert "\n" not in str(error.value)
    return str(error.value)


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    call_command("report", "study", "--json", *arguments)
    return json.loads(capsys.readouterr().out)


def test_it_prints_every_number_as_json(evaluation: Evaluation, capsys: pytest.CaptureFixture[str]) -> None:
    report = printed(capsys)
    majority = report["aspects"]["clarity"]["judges"]["longest"]["judge_human"]["majority"]
    assert (majority["with_ties"]["agree"], majority["with_ties"]["n"]) == (1, 1)
    assert majority["with_ties"]["cohen_kappa"]["value"] is None
    assert majority["with_ties"]["cohen_kappa"]["why"]


def test_it_reads_the_rules_from_its_options_and_prints_them(
    evaluation: Evaluation, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--where", "category=math", "candidate=beta", "--raters", "ann", "--coding", "shown"]
    rules = printed(capsys, *options, "--split-rule", "drop", "--failed", "tie")["rules"]
    assert rules["comparisons"] == "Only comparisons where category is “math” and candidate is “beta”."
    assert rules["raters"] == "Only raters whose name matches “ann”."
    assert "first and second shown" in rules["coding"]
    assert "is excluded" in rules["split"]
    assert "counts as a tie" in rules["failed"]


def test_names_may_be_given_one_by_one(evaluation: Evaluation, capsys: pytest.CaptureFixture[str]) -> None:
    make_judge_verdicts(make_comparison(evaluation), judge="other", as_stored={"clarity": "A"})
    make_judge_verdicts(make_comparison(evaluation), judge="third", as_stored={"clarity": "A"})
    found = printed(capsys, "--judge", "longest", "--judge", "other", "--reviewer", "ann", "--reviewer", "ben")
    assert set(found["judges"]) == {"longest", "other"}
    assert {one["rater"] for one in found["people"]["clarity"]["reviewers"]} == {"ann", "ben"}


def test_without_json_it_prints_a_table_that_a_person_can_read(
    evaluation: Evaluation, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("report", "study")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "study: 1 comparison"
    row = lines[lines.index("Clarity") + 2]
    assert row.startswith("longest (rule-based), people")
    assert row.split()[-9:] == ["1", "1", "100.0%", "n/a", "1.000", "100.0%", "1", "0", "0"]
    assert any(line.startswith("n/a: Both sides always made the same choice") for line in lines)
    assert "no CI: A CI needs at least two clusters." in lines
    assert "rubric: six-aspect, version 1" in lines
    make_next_rubric_version(evaluation)
    make_review(make_human(evaluation), make_comparison(evaluation), {"clarity": "A"})
    call_command("report", "study")
    assert "Verdicts were given under 2 different definitions of this aspect." in capsys.readouterr().out


def test_derived_choices_panels_and_repairs_are_named_as_what_they_are(
    evaluation: Evaluation, capsys: pytest.CaptureFixture[str]
) -> None:
    scorer = make_scoring_judge(evaluation, aspect="clarity")
    comparison = Comparison.objects.get()
    for response, score in ((comparison.response_a, 5), (comparison.response_b, 1)):
        make_judge_score(scorer, response, score, aspect="clarity", repaired=True)
    batch = uuid.uuid4()
    for judge in evaluation.judges.all():
        Run.objects.create(evaluation=evaluation, judge=judge, batch=batch)
    # Both judges choose A, and so do both people.
    found = printed(capsys)["aspects"]["clarity"]["judges"]
    assert found["scorer"]["derived"] == {"source": "scores", "margin": 0.0, "judges": [], "n_split": None}
    assert (found["scorer"]["label"], found["scorer"]["repaired"]) == ("derived from scores, margin 0.0", 2)
    panel = found["panel: longest, scorer"]
    assert panel["derived"] == {"source": "panel", "margin": None, "judges": ["longest", "scorer"], "n_split": 0}
    assert panel["judge_human"]["majority"]["with_ties"]["agree"] == 1
    call_command("report", "study")
    text = capsys.readouterr().out
    assert "scorer (derived from scores, margin 0.0): 2 of its replies could be parsed only after a retry" in text
    assert "panel: longest, scorer (majority of 2 judges), people" in text


def test_columns_stay_apart_at_100_percent_and_under_long_names(
    evaluation: Evaluation, capsys: pytest.CaptureFixture[str]
) -> None:
    """Sixty comparisons on which all agree: the widest shares; and a judge with a name of 60 characters."""
    name = "m" * 60
    people = list(Rater.objects.filter(kind="human"))
    for number in range(60):
        comparison = make_comparison(evaluation, key=f"w{number}")
        for person in people:
            make_review(person, comparison, {"clarity": "AB"[number % 2]})
        make_judge_verdicts(comparison, judge=name, as_stored={"clarity": "AB"[number % 2]})
    call_command("report", "study")
    lines = capsys.readouterr().out.splitlines()
    head = lines.index("Clarity") + 1
    table = [re.split(r" {2,}", line.strip()) for line in lines[head : head + 4]]
    assert table[0] == ["agree", "n", "agreement", "kappa", "AC1", "without ties", "n", "failed", "missing"]
    (wide,) = (row for row in table if row[0].startswith(name))
    assert wide[1:4] == ["60", "60", "100.0% [94%–100%]"]
    assert [len(row) for row in table[1:]] == [10, 10, 8]  # people have no failed calls


# What a terminal makes of a name, and how many of its columns that takes.
NAMES = {
    "模型甲": ("模型甲", 6),
    "한국어 ｆ": ("한국어 ｆ", 9),
    "ﾊﾝｶｸ": ("ﾊﾝｶｸ", 4),
    "e\u0301clair": ("e\u0301clair", 6),
    "नमस्ते": ("नमस्ते", 4),
    "评委📏": ("评委📏", 6),
    "\U0001f3f3\ufe0f\u200d\U0001f308": ("\U0001f3f3\ufe0f\u200d\U0001f308", 2),
    "👩🏽\u200d🔬 a": ("👩🏽\u200d🔬 a", 4),
    "🏃\u200d\u2642\ufe0f": ("🏃\u200d\u2642\ufe0f", 2),
    "two\nlines": ("two\\nlines", 10),
    "red\x1b[31m\t": ("red\\x1b[31m\\t", 13),
    "\u202eevil": ("\\u202eevil", 10),
}


def test_columns_stand_below_each_other_whatever_script_a_name_is_in(
    evaluation: Evaluation, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in NAMES:
        make_judge_verdicts(Comparison.objects.get(), judge=name, as_stored={"clarity": "A"}, swapped={"clarity": "A"})
    call_command("report", "study")
    printed_text = capsys.readouterr().out
    lines = printed_text.split("\n")
    table = lines[lines.index("Clarity") + 1 :]
    head = len(table[0])
    for shown, width in NAMES.values():
        (line,) = (one for one in table if one.startswith(f"{shown} (rule-based), people  "))
        assert len(line) - len(shown) + width == head
    assert not set("\t\x1b\u202e").intersection(printed_text)


def test_an_evaluation_without_verdicts_says_what_to_do(capsys: pytest.CaptureFixture[str]) -> None:
    make_evaluation(slug="new")
    call_command("report", "new")
    assert "Import some, run a judge, or review" in capsys.readouterr().out


def test_bad_input_is_one_clear_line(evaluation: Evaluation) -> None:
    assert refused("nowhere") == "There is no evaluation at “nowhere”."
    assert refused("study", "--where", "math").startswith("--where math: write it as key=value")
    assert refused("study", "--where", "category=chess").startswith("No comparison has category=chess.")
    assert refused("study", "--raters", "zoe") == "No rater's name matches “zoe”."
    assert "--split-rule" in refused("study", "--split-rule", "loud")
    assert refused("study", "--where", "a=1e999").startswith("No comparison has a=1e999.")
    assert refused("study", "--where", "a=\udcff") == r"--where 'a=\udcff': write it in UTF-8"
    days = ("--since", "2026-02-01", "--until", "2026-01-01")
    assert refused("study", *days) == "--until 2026-01-01 is before --since 2026-02-01."
