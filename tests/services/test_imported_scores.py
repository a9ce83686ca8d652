"""Wherever choices are read, scores that came in files are choices too: on pages, in labels, in exports."""

import json
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from evaluations.domain import Choice, LabelPolicy, RaterKind, Role, ScoreRule, Shown
from evaluations.formats import csv_out, jsonl_out
from evaluations.forms.evaluation_settings import SettingsForm
from evaluations.models import Aspect, Comparison, Evaluation, Import, Rater, Rubric, RubricVersion
from evaluations.services.adjudicating.disagreeing import Kind, Wanted, find
from evaluations.services.adjudicating.hearing import voices_on
from evaluations.services.exporting.casting import cast_of
from evaluations.services.exporting.composing import rows
from evaluations.services.exporting.exporting import begin, write
from evaluations.services.judging.consolidating import judge_choices
from evaluations.services.labelling import labels
from evaluations.services.reporting.browsing import progress
from evaluations.services.reporting.noticing import spoken_of
from evaluations.services.reporting.scoring import Scored
from evaluations.services.reporting.tabulating import table_of
from evaluations.services.reviewing.revealing import judge_answer
from evaluations.services.reviewing.tallying import tally_import
from tests.importing import bring, comparison, score, verdict
from tests.making import make_evaluation, make_member, make_user

pytestmark = pytest.mark.django_db
LOSS = {"rater": "loss", "rater_kind": "judge"}


@pytest.fixture
def evaluation() -> Evaluation:
    """Comparisons of alpha and beta on q1 and q2."""
    made = make_evaluation()
    bring(made, comparison("q1"), comparison("q2"))
    return made


def one(key: str = "q1") -> Comparison:
    return Comparison.objects.select_related("evaluation").get(query__key=key)


def scored(a: float, b: float, key: str = "q1", **columns: Any) -> list[dict[str, Any]]:
    return [score(key, name, value, **columns) for name, value in (("alpha", a), ("beta", b))]


def counted(importing: Import) -> None:
    tally_import(importing)


def judge_rater() -> Rater:
    return Rater.objects.select_related("judge__rubric_version__rubric").get(kind="judge")


# ---- judges -----------------------------------------------------------------------------------


def test_an_imported_judge_says_what_its_mean_scores_say(evaluation: Evaluation) -> None:
    rows = [*scored(1, 2, **LOSS), *scored(4, 2, **LOSS), *scored(0.5, 2, "q2", **LOSS)]
    bring(evaluation, *rows, lower_is_better=True, derive_pairs=0.5)
    # q1: (1 + 4) / 2 = 2.5 against 2, within 0.5 a tie.
    told = judge_choices(judge_rater(), [one().pk, one("q2").pk])
    assert {pk: said["overall"].choice for pk, said in told.items()} == {one().pk: "tie", one("q2").pk: "A"}


def test_what_it_chose_and_what_it_scored_stand_together(evaluation: Evaluation) -> None:
    bring(evaluation, verdict(**LOSS, choice="B"))
    bring(evaluation, *scored(1, 2, aspect="depth", **LOSS))
    told = judge_choices(judge_rater(), [one().pk])[one().pk]
    assert {key: said.choice for key, said in told.items()} == {"overall": "B", "depth": "B"}


def test_where_no_person_voted_an_imported_judges_scores_may_label(evaluation: Evaluation) -> None:
    bring(evaluation, *scored(1, 2, **LOSS), lower_is_better=True)
    Evaluation.objects.update(label_policy=LabelPolicy.PEOPLE_THEN_JUDGES)
    evaluation.refresh_from_db()
    label = labels(evaluation, [one().pk])[one().pk]["overall"]
    assert (label.choice, label.in_words) == (Choice.A, "judge loss, no person")


def test_people_who_differ_from_an_imported_judges_scores_are_found(evaluation: Evaluation) -> None:
    bring(evaluation, *scored(1, 2, **LOSS), *scored(1, 2, "q2", **LOSS), lower_is_better=True)
    counted(bring(evaluation, verdict(choice="A"), verdict("q2", choice="B")))
    wanted = Wanted(evaluation, judge=judge_rater(), kind=Kind.JUDGE)
    assert find(wanted).ids == [one("q2").pk]
    bring(evaluation, verdict("q1", aspect="depth", choice="B", **LOSS))
    counted(bring(evaluation, verdict("q1", aspect="depth", choice="A")))
    assert find(wanted).ids == [one("q1").pk, one("q2").pk]


def test_shown_to_a_reviewer_its_choice_says_that_it_is_derived(evaluation: Evaluation) -> None:
    bring(evaluation, *scored(1, 2, **LOSS), lower_is_better=True)
    bring(evaluation, verdict(aspect="depth", choice="B", **LOSS))
    answer = judge_answer(judge_rater().judge_id, one(), ["overall", "depth"], Shown.SWAPPED)
    assert answer is not None
    overall, depth = answer.choices["overall"], answer.choices["depth"]
    assert (overall.choice, overall.remark) == ("B", "2 to 1, derived from scores, lower is better, margin 0.0")
    assert (depth.choice, depth.remark) == ("A", "")


# ---- people and gold --------------------------------------------------------------------------


def test_the_comparisons_page_holds_a_row_for_every_sample(evaluation: Evaluation) -> None:
    bring(
        evaluation,
        *scored(1, 2, rationale="Short."),
        *scored(3, 2),
        *scored(1, 1, rater="key", rater_kind="gold"),
        *scored(9, 1, rationale="Long.", **LOSS),
        lower_is_better=True,
    )
    table = table_of(one(), with_judges=True)
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
    assert (cells[1].scored, cells[1].note) == (Scored(1.0, 2.0, rule, rationale="Short."), "Short.")
    assert cells[3].note == "Long."
    assert [row.kind for row in table_of(one(), with_judges=False).rows] == ["gold", "human", "human"]


def test_the_page_says_that_the_lower_score_is_better(client: Client, evaluation: Evaluation) -> None:
    bring(evaluation, *scored(1, 2), lower_is_better=True)
    client.force_login(make_member(evaluation, Role.OWNER))
    text = client.get(reverse("comparison", args=[evaluation.slug, one().pk])).content.decode()
    assert "derived, lower is better, equal scores tie" in text


def test_people_who_scored_are_heard_where_they_differ(evaluation: Evaluation) -> None:
    counted(bring(evaluation, *scored(1, 2, rationale="Short."), *scored(2, 1, rater="bob"), lower_is_better=True))
    assert find(Wanted(evaluation)).ids == [one().pk]
    heard = voices_on(one())[Aspect.objects.get(evaluation=evaluation, key="overall")]
    said = [(voice.rater.name, voice.final) for voice in heard]
    assert [(name, final.choice, final.scores, final.note) for name, final in said if final] == [
        ("ann", "A", (1.0, 2.0), "Short."),
        ("bob", "B", (2.0, 1.0), ""),
    ]


def test_comparisons_count_who_scored_both_responses(evaluation: Evaluation) -> None:
    bring(
        evaluation,
        *scored(1, 2),
        *scored(2, 2),
        score(rater="bob"),
        *scored(1, 2, rater="key", rater_kind="gold"),
        *scored(1, 2, **LOSS),
    )
    told = progress([one().pk, one("q2").pk])
    assert (told[one().pk].people, told[one().pk].gold, told[one().pk].judges) == (1, 1, 1)
    assert (told[one("q2").pk].people, told[one("q2").pk].judges) == (0, 0)


def test_whoever_looks_at_imported_scores_has_seen_what_others_chose(evaluation: Evaluation) -> None:
    bring(evaluation, *scored(1, 2), score("q2"))
    assert spoken_of(make_user(), [one(), one("q2")], judges=False) == {one().pk}


# ---- exports ----------------------------------------------------------------------------------


def exported(evaluation: Evaluation) -> list[Any]:
    every = Comparison.objects.filter(evaluation=evaluation)
    cast = cast_of(evaluation)
    return [json.loads(line) for line in jsonl_out.lines(rows(every, cast), cast.names())]


def test_an_export_holds_the_scores_and_what_they_make(evaluation: Evaluation) -> None:
    gold = {"rater": "key", "rater_kind": "gold"}
    rows = [*scored(1, 2, rationale="Short."), *scored(2, 2), *scored(3, 1, rationale="Long.", **LOSS)]
    counted(bring(evaluation, *rows, *scored(1, 2, **gold), score(rater="bob"), lower_is_better=True))
    bring(evaluation, verdict(aspect="depth", choice="B", **LOSS), verdict(aspect="depth", choice="B", **gold))
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
    bring(evaluation, *scored(3, 1, **LOSS), score(value="refused", sample=1, **LOSS))
    bring(evaluation, verdict(aspect="depth", choice="refused", **LOSS), verdict(aspect="form", choice="B", **LOSS))
    first, _ = exported(evaluation)
    (judge,) = first["judges"]
    assert (judge["failures"], judge["choices"]["overall"]["choice"]) == ({"refused": 2}, "A")
    export = begin(evaluation, written_as="scores", user=None)
    written = b"".join(write(export, Comparison.objects.filter(evaluation=evaluation)))
    export.refresh_from_db()
    told = [json.loads(line) for line in written.splitlines()]
    assert [(row["candidate"], row["sample"], row["value"], row["failure"], row["aspect"]) for row in told] == [
        ("alpha", 0, 3.0, None, "overall"),
        ("alpha", 1, None, "refused", "overall"),
        ("beta", 0, 1.0, None, "overall"),
    ]
    assert (export.rows, export.counts["excluded"], "comparisons" in export.counts) == (3, {}, False)


def test_a_spreadsheet_says_that_the_lower_score_is_better(evaluation: Evaluation) -> None:
    bring(evaluation, *scored(1, 2), *scored(3, 1, **LOSS), lower_is_better=True)
    cast = cast_of(evaluation)
    text = b"".join(csv_out.lines(rows(Comparison.objects.all(), cast), cast.names())).decode()
    assert "first A=1.0 B=2.0; final A=1.0 B=2.0; margin=0.0 lower is better" in text
    assert "derived from scores A=3.0 B=1.0 margin=0.0 lower is better" in text


# ---- what their rubric is not for -------------------------------------------------------------


def test_its_page_says_which_end_of_the_scale_is_better(client: Client, evaluation: Evaluation) -> None:
    bring(evaluation, *scored(1, 3), lower_is_better=True)
    client.force_login(make_member(evaluation, Role.OWNER))
    rubric = Rubric.objects.get(name="imported scores")
    text = client.get(reverse("rubric", args=[evaluation.slug, rubric.pk])).content.decode()
    assert "1 to 3" in text
    assert "The lower score is better. Only equal scores make a tie." in text


def test_nobody_reviews_by_the_rubric_that_came_with_scores(evaluation: Evaluation) -> None:
    bring(evaluation, *scored(1, 2), lower_is_better=True)
    assert RubricVersion.objects.filter(rubric__name="imported scores").exists()
    offered = SettingsForm(None, evaluation=evaluation).fields["review_rubric"].queryset  # type: ignore[attr-defined]
    assert list(offered) == [evaluation.review_rubric]
