"""AlpacaEval annotations that go in and come out again give AlpacaEval the same win rate."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from evaluations.domain.errors import InputRefused
from evaluations.domain.imports import ImportRequest
from evaluations.exports.options import ExportRequest
from evaluations.exports.services import start_export
from evaluations.exports.writer import stream_export
from evaluations.imports.lifecycle import continue_import
from evaluations.imports.preview import preview_file
from evaluations.imports.services import start_storing
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from tests.factories.evaluations import make_comparison, make_human
from tests.factories.verdicts import make_imported_votes, make_judge_verdicts, make_review

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

Record = dict[str, Any]


def annotation(number: int, preference: float | None, *, first: str = "zeta-base", second: str = "alpha-new") -> Record:
    return {
        "instruction": f"Question {number}?",
        "output_1": f"{first} says {number}",
        "generator_1": first,
        "output_2": f"{second} says {number}",
        "generator_2": second,
        "dataset": "koala",
        "annotator": "w",
        "preference": preference,
    }


def bring(evaluation: Evaluation, records: list[Record]) -> None:
    file = io.BytesIO(json.dumps(records).encode())
    importing = preview_file(evaluation, file, "annotations.json", ImportRequest(), user=None)
    assert not importing.bad_rows
    start_storing(importing, skip_bad=False, user=None)
    continue_import(importing)


def exported(evaluation: Evaluation, aspect: str = "overall", baseline: str = "") -> tuple[list[Record], Any]:
    wanted = ExportRequest(aspect=aspect, settings={"baseline": baseline} if baseline else {})
    export = start_export(evaluation, written_as="alpaca-eval", user=None, request=wanted)
    content = b"".join(stream_export(export, Comparison.objects.filter(evaluation=evaluation)))
    return json.loads(content), export


def win_rate(records: list[Record], of: str) -> float:
    """As AlpacaEval computes it: in per cent for generator_2, a preference of 0 being a draw."""
    given = [one["preference"] or 1.5 for one in records if one["preference"] is not None]
    assert all(one["generator_2"] == of for one in records)
    return 100 * (sum(given) / len(given) - 1)


PREFERENCES = [1.9, 1.0, 2.0, 1.5, 1.0312, 1.7, 1.0, 1.25]


@pytest.mark.parametrize(("first", "second"), [("zeta-base", "alpha-new"), ("alpha-base", "zeta-new")])
def test_an_annotation_file_comes_out_as_it_went_in(evaluation: Evaluation, first: str, second: str) -> None:
    """Whichever name sorts first: every preference, side and text, and so the win rate."""
    records = [annotation(number, one, first=first, second=second) for number, one in enumerate(PREFERENCES)]
    bring(evaluation, records)
    found, _ = exported(evaluation)
    kept = ("instruction", "output_1", "output_2", "generator_1", "generator_2", "preference", "annotator", "dataset")
    assert [{name: one[name] for name in kept} for one in found] == [
        {name: one[name] for name in kept} for one in records
    ]
    assert win_rate(found, second) == pytest.approx(win_rate(records, second))


def test_a_baseline_that_is_named_stands_first_and_turns_the_strength_round(evaluation: Evaluation) -> None:
    bring(evaluation, [annotation(number, one) for number, one in enumerate(PREFERENCES)])
    found, _ = exported(evaluation, baseline="alpha-new")
    assert [one["preference"] for one in found] == pytest.approx([3 - one for one in PREFERENCES])
    assert {(one["generator_1"], one["output_1"][:9]) for one in found} == {("alpha-new", "alpha-new")}
    assert win_rate(found, "zeta-base") == pytest.approx(100 * (2 - sum(PREFERENCES) / len(PREFERENCES)))


def test_sides_mixed_in_one_file_are_each_kept(evaluation: Evaluation) -> None:
    records = [annotation(1, 1.9), annotation(2, 1.9, first="alpha-new", second="zeta-base")]
    bring(evaluation, records)
    found, _ = exported(evaluation)
    assert [(one["generator_1"], one["preference"]) for one in found] == [("zeta-base", 1.9), ("alpha-new", 1.9)]


def test_a_pair_that_one_annotator_judged_twice_comes_out_twice(evaluation: Evaluation) -> None:
    """Between them the two say 1.8; their plurality would say 2, without the strength and the side."""
    records = [annotation(1, 1.9), annotation(1, 1.7), annotation(2, 1.9), annotation(2, 1.0), annotation(2, None)]
    bring(evaluation, records)
    found, export = exported(evaluation)
    told = [(one["instruction"], one["generator_1"], one["preference"]) for one in found]
    kept = [(one["instruction"], "zeta-base", one["preference"]) for one in records]
    assert told[:4] == kept[:4]
    assert told[4] == ("Question 2?", "zeta-base", None)
    assert win_rate(found[:4], "alpha-new") == pytest.approx(win_rate(records[:4], "alpha-new"))
    assert export.counts["noted"] == {"both_bad_as_tie": 0, "failed": 1}


def test_what_is_said_here_of_an_imported_comparison_has_the_files_baseline(evaluation: Evaluation) -> None:
    """All choose alpha-new, which is A here and output_2 in the file."""
    bring(evaluation, [annotation(1, 1.9), annotation(2, 2.0)])
    ann = make_human(evaluation, "ann")
    for comparison in Comparison.objects.all():
        make_review(ann, comparison, {"overall": "A"}, notes={"overall": "preference 1.1"})
    found, export = exported(evaluation)
    told = [(one["annotator"], one["generator_1"], one["preference"]) for one in found]
    assert told == [("w", "zeta-base", 1.9), ("ann", "zeta-base", 2), ("w", "zeta-base", 2), ("ann", "zeta-base", 2)]
    assert "baselines" not in export.counts["noted"]
    make_review(ann, make_comparison(evaluation, candidates=("beta", "gamma")), {"overall": "A"})
    assert exported(evaluation)[1].counts["noted"]["baselines"] == 2


@pytest.mark.parametrize("note", ["preference 3", "preference 1e5", "preference 0.5", "preference -1.5"])
def test_a_note_that_is_no_strength_of_a_preference_is_none(evaluation: Evaluation, note: str) -> None:
    make_imported_votes(make_comparison(evaluation), "ann", {"overall": "B"}, note=note)
    ((one,), _) = exported(evaluation)
    assert (one["preference"], one["raw_completion"]) == (2, note)


def test_choices_made_here_are_measured_against_the_baseline(evaluation: Evaluation) -> None:
    """alpha wins two of three for the judge: against beta as baseline 66.7, as baseline itself 33.3."""
    ann = make_human(evaluation, "ann")
    for number, choice in enumerate("AAB"):
        comparison = make_comparison(evaluation, key=f"q{number}")
        make_judge_verdicts(
            comparison, judge="gpt", kind="llm", as_stored={"clarity": choice}, swapped={"clarity": choice}
        )
        make_review(ann, comparison, {"clarity": choice})
    found, _ = exported(evaluation, "clarity", "beta")
    assert len(found) == 6
    assert win_rate(found, "alpha") == pytest.approx(200 / 3)
    assert win_rate(exported(evaluation, "clarity", "alpha")[0], "beta") == pytest.approx(100 / 3)


def test_comparisons_without_the_baseline_are_left_out_and_counted(evaluation: Evaluation) -> None:
    bring(evaluation, [annotation(1, 2.0), annotation(2, 2.0, first="other")])
    found, export = exported(evaluation, baseline="zeta-base")
    assert [one["instruction"] for one in found] == ["Question 1?"]
    assert export.counts["excluded"] == {"without_baseline": 1}


def test_a_baseline_that_is_no_model_here_is_refused_by_name(
    evaluation: Evaluation, client: Client, tmp_path: Path
) -> None:
    make_comparison(evaluation)
    as_annotations = ("--format", "alpaca-eval", "--aspect", "clarity", "--out", str(tmp_path / "annotations.json"))
    with pytest.raises(InputRefused, match="Unknown model “gamma”"):
        exported(evaluation, "clarity", "gamma")
    with pytest.raises(CommandError, match="Unknown model “gamma”"):
        call_command("export", "study", *as_annotations, "--baseline", "gamma")
    call_command("export", "study", *as_annotations, "--baseline", "beta")
    client.force_login(evaluation.memberships.get().user)
    looking = {"written_as": "alpaca-eval", "aspect": "clarity", "step": "look"}
    page = client.post(reverse("export_new", args=["study"]), looking).content.decode()
    assert '<option value="beta">beta</option>' in page
