"""Wherever choices are read, scores that came in files are choices too: on pages, in labels, in exports."""

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from evaluations.disagreements.selectors import DisagreementFilter, DisagreementKind, find_disagreements
from evaluations.domain.choices import Choice, LabelPolicy, ScoreRule, ShownOrder
from evaluations.domain.roles import RaterKind, Role
from evaluations.evaluation_settings.forms import SettingsForm
from evaluations.exports.comparison_rows import iterate_full_rows
from evaluations.exports.participants import load_participants
from evaluations.exports.services import start_export
from evaluations.exports.writer import stream_export
from evaluations.formats.csv_export import csv_export_lines
from evaluations.formats.jsonl_export import encode_line
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import Import
from evaluations.models.judges import Rater
from evaluations.models.rubrics import Aspect, Rubric, RubricVersion
from evaluations.reviews.sheet import get_judge_answer
from evaluations.verdicts.judge_choices import load_judge_choices
from evaluations.verdicts.labels import decide_labels
from evaluations.verdicts.reviewer_choices import get_reviewer_choices
from evaluations.verdicts.vote_counts import count_raters
from evaluations.verdicts.vote_table import ScoredSides, build_vote_table
from evaluations.visibility import find_judged_by_others
from tests.factories.evaluations import make_member, make_user
from tests.factories.imports import comparison_row, import_rows, score_row, verdict_row
from tests.helpers.job_work import work_all
from tests.helpers.page_text import html_of

pytestmark = pytest.mark.django_db
LOSS = {"rater": "loss", "rater_kind": "judge"}


@pytest.fixture(autouse=True)
def two_comparisons(evaluation: Evaluation) -> None:
    """Comparisons of alpha and beta on q1 and q2."""
    import_rows(evaluation, comparison_row("q1"), comparison_row("q2"))


def one(key: str = "q1") -> Comparison:
    return Comparison.objects.select_related("evaluation").get(query__key=key)


def scored(a: float, b: float, key: str = "q1", **columns: Any) -> list[dict[str, Any]]:
    return [score_row(key, name, value, **columns) for name, value in (("alpha", a), ("beta", b))]


def counted(importing: Import) -> None:
    work_all("count_labels")


def judge_rater() -> Rater:
    return Rater.objects.select_related("judge__rubric_version__rubric").get(kind="judge")


# ---- judges -----------------------------------------------------------------------------------


def test_an_imported_judge_says_what_its_mean_scores_say(evaluation: Evaluation) -> None:
    rows = [*scored(1, 2, **LOSS), *scored(4, 2, **LOSS), *scored(0.5, 2, "q2", **LOSS)]
    import_rows(evaluation, *rows, lower_is_better=True, derive_pairs=0.5)
    # q1: (1 + 4) / 2 = 2.5 against 2, within 0.5 a tie.
    told = load_judge_choices(judge_rater(), [one().pk, one("q2").pk])
    assert {pk: said["overall"].choice for pk, said in told.items()} == {one().pk: "tie", one("q2").pk: "A"}


def test_what_it_chose_and_what_it_scored_stand_together(evaluation: Evaluation) -> None:
    import_rows(evaluation, verdict_row(**LOSS, choice="B"))
    import_rows(evaluation, *scored(1, 2, aspect="depth", **LOSS))
    told = load_judge_choices(judge_rater(), [one().pk])[one().pk]
    assert {key: said.choice for key, said in told.items()} == {"overall": "B", "depth": "B"}


def test_where_no_person_voted_an_imported_judges_scores_may_label(evaluation: Evaluation) -> None:
    import_rows(evaluation, *scored(1, 2, **LOSS), lower_is_better=True)
    Evaluation.objects.update(label_policy=LabelPolicy.PEOPLE_THEN_JUDGES)
    evaluation.refresh_from_db()
    label = decide_labels(evaluation, [one().pk])[one().pk]["overall"]
    assert (label.choice, label.in_words) == (Choice.A, "judge loss")


def test_people_who_differ_from_an_imported_judges_scores_are_found(evaluation: Evaluation) -> None:
    import_rows(evaluation, *scored(1, 2, **LOSS), *scored(1, 2, "q2", **LOSS), lower_is_better=True)
    counted(import_rows(evaluation, verdict_row(choice="A"), verdict_row("q2", choice="B")))
    wanted = DisagreementFilter(evaluation, judge=judge_rater(), kind=DisagreementKind.JUDGE)
    assert find_disagreements(wanted).ids == [one("q2").pk]
    import_rows(evaluation, verdict_row("q1", aspect="depth", choice="B", **LOSS))
    counted(import_rows(evaluation, verdict_row("q1", aspect="depth", choice="A")))
    assert find_disagreements(wanted).ids == [one("q1").pk, one("q2").pk]


def test_shown_to_a_reviewer_its_choice_says_that_it_is_derived(evaluation: Evaluation) -> None:
    import_rows(evaluation, *scored(1, 2, **LOSS), lower_is_better=True)
    import_rows(evaluation, verdict_row(aspect="depth", choice="B", **LOSS))
    answer = get_judge_answer(judge_rater().judge_id, one(), ["overall", "depth"], ShownOrder.SWAPPED)
    assert answer is not None
    overall, depth = answer.choices["overall"], answer.choices["depth"]
    assert (overall.choice, overall.remark) == ("B", "2 to 1, derived from scores, lower is better, margin 0.0")
    assert (depth.choice, depth.remark) == ("A", "")


# ---- people and gold --------------------------------------------------------------------------


def test_the_comparisons_page_holds_a_row_for_every_sample(evaluation: Evaluation) -> None:
    import_rows(
        evaluation,
        *scored(1, 2, rationale="Short."),
        *scored(3, 2),
        *scored(1, 1, rater="key", rater_kind="gold"),
        *scored(9, 1, rationale="Long.", **LOSS),
        lower_is_better=True,
    )
    table = build_vote_table(one(), with_judges=True)
    place = [aspect.key for aspect in table.aspects].index("overall")
    rule = ScoreRule(0.0, lower_is_better=True)
    told = [(row.kind, row.name, row.cells[place]) for row in table.rows]
    assert [(kind, name) for kind, name, _ in told] == [
        (RaterKind.GOLD, "key"),
        (RaterKind.HUMAN, "ann"),
        (RaterKind.HUMAN, "ann"),
        (RaterKind.JUDGE, "loss"),
    ]
    cells = [cell for _, _, cell in told if cell]
    assert [cell.choices for cell in cells] == [("tie",), ("A",), ("B",), ("B",)]
    assert (cells[1].scored, cells[1].note) == (ScoredSides(1.0, 2.0, rule, rationale="Short."), "Short.")
    assert cells[3].note == "Long."
    assert [row.kind for row in build_vote_table(one(), with_judges=False).rows] == ["gold", "human", "human"]


def test_the_page_says_that_the_lower_score_is_better(client: Client, evaluation: Evaluation) -> None:
    import_rows(evaluation, *scored(1, 2), lower_is_better=True)
    client.force_login(make_member(evaluation, Role.OWNER))
    text = html_of(client.get(reverse("comparison", args=[evaluation.slug, one().pk])))
    assert "derived, lower is better, equal scores tie" in text


def test_people_who_scored_are_heard_where_they_differ(evaluation: Evaluation) -> None:
    counted(
        import_rows(evaluation, *scored(1, 2, rationale="Short."), *scored(2, 1, rater="bob"), lower_is_better=True)
    )
    assert find_disagreements(DisagreementFilter(evaluation)).ids == [one().pk]
    heard = get_reviewer_choices(one())[Aspect.objects.get(evaluation=evaluation, key="overall")]
    said = [(voice.rater.name, voice.final) for voice in heard]
    assert [(name, final.choice, final.scores, final.note) for name, final in said if final] == [
        ("ann", "A", (1.0, 2.0), "Short."),
        ("bob", "B", (2.0, 1.0), ""),
    ]


def test_comparisons_count_who_scored_both_responses(evaluation: Evaluation) -> None:
    import_rows(
        evaluation,
        *scored(1, 2),
        *scored(2, 2),
        score_row(rater="bob"),
        *scored(1, 2, rater="key", rater_kind="gold"),
        *scored(1, 2, **LOSS),
    )
    told = count_raters([one().pk, one("q2").pk])
    assert (told[one().pk].people, told[one().pk].gold, told[one().pk].judges) == (1, 1, 1)
    assert (told[one("q2").pk].people, told[one("q2").pk].judges) == (0, 0)


def test_whoever_looks_at_imported_scores_has_seen_what_others_chose(evaluation: Evaluation) -> None:
    import_rows(evaluation, *scored(1, 2), score_row("q2"))
    assert find_judged_by_others(make_user(), [one(), one("q2")], judges=False) == {one().pk}


# ---- exports ----------------------------------------------------------------------------------


def exported(evaluation: Evaluation) -> list[Any]:
    every = Comparison.objects.filter(evaluation=evaluation)
    cast = load_participants(evaluation)
    return [json.loads(line) for line in map(encode_line, iterate_full_rows(every, cast))]


def test_an_export_holds_the_scores_and_what_they_make(evaluation: Evaluation) -> None:
    gold = {"rater": "key", "rater_kind": "gold"}
    rows = [*scored(1, 2, rationale="Short."), *scored(2, 2), *scored(3, 1, rationale="Long.", **LOSS)]
    counted(import_rows(evaluation, *rows, *scored(1, 2, **gold), score_row(rater="bob"), lower_is_better=True))
    import_rows(
        evaluation, verdict_row(aspect="depth", choice="B", **LOSS), verdict_row(aspect="depth", choice="B", **gold)
    )
    first, second = exported(evaluation)
    ann, again = first["people"]
    scores = {"first": {"A": 1.0, "B": 2.0}, "final": {"A": 1.0, "B": 2.0}, "margin": 0.0, "lower_is_better": True}
    assert ann["choices"]["overall"] == {
        "first": "A",
        "final": "A",
        "note": "",
        "reason": None,
        "rationale": "Short.",
        "scores": scores,
    }
    assert (ann["rater"], ann["shown"], ann["rubric"], again["choices"]["overall"]["final"]) == (
        *("ann", "unknown"),
        *(None, "tie"),
    )
    assert first["labels"]["overall"]["votes"] == {"A": 1, "tie": 1}
    (judge,) = first["judges"]
    assert judge["choices"]["overall"]["choice"] == "B"
    assert judge["choices"]["overall"]["scores"] == {"A": 3.0, "B": 1.0, "margin": 0.0, "lower_is_better": True}
    assert judge["choices"]["depth"]["choice"] == "B"
    assert judge["rationales"] == {"response_a": ["Long."], "response_b": ["Long."]}
    assert first["gold"] == [{"rater": "key", "choices": {"overall": "A", "depth": "B"}}]
    assert (second["people"], second["judges"], second["gold"]) == ([], [], [])


def test_an_export_counts_what_an_imported_judge_failed_to_score_and_to_choose(evaluation: Evaluation) -> None:
    import_rows(evaluation, *scored(3, 1, **LOSS), score_row(value="refused", sample=1, **LOSS))
    import_rows(
        evaluation,
        verdict_row(aspect="depth", choice="refused", **LOSS),
        verdict_row(aspect="form", choice="B", **LOSS),
    )
    first, _ = exported(evaluation)
    (judge,) = first["judges"]
    assert (judge["failures"], judge["choices"]["overall"]["choice"]) == ({"refused": 2}, "A")
    export = start_export(evaluation, written_as="scores", user=None)
    written = b"".join(stream_export(export, Comparison.objects.filter(evaluation=evaluation)))
    export.refresh_from_db()
    told = [json.loads(line) for line in written.splitlines()]
    assert [(row["candidate"], row["sample"], row["value"], row["failure"], row["aspect"]) for row in told] == [
        ("alpha", 0, 3.0, None, "overall"),
        ("alpha", 1, None, "refused", "overall"),
        ("beta", 0, 1.0, None, "overall"),
    ]
    assert (export.rows, export.counts["excluded"], "comparisons" in export.counts) == (3, {}, False)


def test_a_spreadsheet_says_that_the_lower_score_is_better(evaluation: Evaluation) -> None:
    import_rows(evaluation, *scored(1, 2), *scored(3, 1, **LOSS), lower_is_better=True)
    cast = load_participants(evaluation)
    text = b"".join(csv_export_lines(iterate_full_rows(Comparison.objects.all(), cast), cast.list_names())).decode()
    assert "first A=1.0 B=2.0; final A=1.0 B=2.0; margin=0.0 lower is better" in text
    assert "derived from scores A=3.0 B=1.0 margin=0.0 lower is better" in text


# ---- what their rubric is not for -------------------------------------------------------------


def test_its_page_says_which_end_of_the_scale_is_better(client: Client, evaluation: Evaluation) -> None:
    import_rows(evaluation, *scored(1, 3), lower_is_better=True)
    client.force_login(make_member(evaluation, Role.OWNER))
    rubric = Rubric.objects.get(name="imported scores")
    text = html_of(client.get(reverse("rubric", args=[evaluation.slug, rubric.pk])))
    assert "1 to 3" in text
    assert "Lower is better. Only equal scores count as a tie." in text


def test_nobody_reviews_by_the_rubric_that_came_with_scores(evaluation: Evaluation) -> None:
    import_rows(evaluation, *scored(1, 2), lower_is_better=True)
    assert RubricVersion.objects.filter(rubric__name="imported scores").exists()
    offered = SettingsForm(None, evaluation=evaluation).fields["review_rubric"].queryset  # type: ignore[attr-defined]
    assert list(offered) == [evaluation.review_rubric]
