"""Scores that came in files in the report: what each rater's two scores say of two responses."""

from datetime import UTC, date, datetime
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evaluations.domain.files import NewResponse
from evaluations.domain.reports import ReportRules
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import Import
from evaluations.models.judges import Rater
from evaluations.reports.cells.selectors import find_comparisons_in_cell
from evaluations.reports.selectors import build_report
from evaluations.stats.aspect_report import AspectReport
from evaluations.stats.full_report import Report
from tests.factories.imports import comparison_row, import_rows, score_row, verdict_row

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def four_comparisons(evaluation: Evaluation) -> None:
    """Comparisons of alpha and beta on q1 to q4."""
    import_rows(evaluation, *(comparison_row(f"q{number}") for number in range(1, 5)))


def report(evaluation: Evaluation, **rules: Any) -> Report:
    return build_report(evaluation, Comparison.objects.filter(evaluation=evaluation), ReportRules(**rules))


def overall(evaluation: Evaluation, **rules: Any) -> AspectReport:
    return report(evaluation, **rules).aspects["overall"]


def scored(a: float | None, b: float | None, key: str = "q1", **columns: Any) -> list[dict[str, Any]]:
    """One rater's scores of alpha and of beta, where there are any."""
    given = (("alpha", a), ("beta", b))
    return [score_row(key, name, value, **columns) for name, value in given if value is not None]


def votes(evaluation: Evaluation, **rules: Any) -> dict[str, int]:
    return dict(overall(evaluation, **rules).human_human.majority_choices.choices)


def test_of_two_scores_of_a_person_the_higher_one_wins(evaluation: Evaluation) -> None:
    import_rows(evaluation, *scored(5, 2), *scored(2, 5, "q2"), *scored(3, 3, "q3"), *scored(-1, -2, "q4"))
    assert votes(evaluation) == {"A": 2, "B": 1, "tie": 1, "both_bad": 0}


def test_they_count_as_given_on_the_day_their_file_came_in(evaluation: Evaluation) -> None:
    import_rows(evaluation, *scored(5, 2))
    Import.objects.update(created_at=datetime(2026, 3, 4, 23, tzinfo=UTC))
    assert votes(evaluation, since=date(2026, 3, 4), until=date(2026, 3, 4))["A"] == 1
    assert not any(votes(evaluation, since=date(2026, 3, 5)).values())
    (point,) = report(evaluation).people["overall"].timeline.points
    assert (point.start, point.votes) == ("2026-03-04", 1)


def test_of_two_ranks_the_lower_one_wins(evaluation: Evaluation) -> None:
    rows = [*scored(1, 2), *scored(3, 1, "q2"), *scored(1, 1, "q3"), *scored(2, 3, "q4")]
    import_rows(evaluation, *rows, lower_is_better=True)
    assert votes(evaluation) == {"A": 2, "B": 1, "tie": 1, "both_bad": 0}


def test_scores_within_the_margin_make_a_tie(evaluation: Evaluation) -> None:
    import_rows(evaluation, *scored(0.8, 0.7), *scored(0.9, 0.7, "q2"), *scored(0.1, 0.7, "q3"), derive_pairs=0.1)
    assert votes(evaluation) == {"A": 1, "B": 1, "tie": 1, "both_bad": 0}
    (versions,) = overall(evaluation).rubric_versions
    assert versions == "imported scores, version 1 (derived from scores, margin 0.1)"


def test_a_vote_takes_both_scores_of_one_person_and_one_sample(evaluation: Evaluation) -> None:
    import_rows(
        evaluation,
        *scored(5, None),
        *scored(None, 1, rater="bob"),
        *scored(5, None, "q2", sample=0),
        *scored(None, 1, "q2", sample=1),
        *scored(4, 2, "q3", sample=3),
        *scored(1, 2, "q4", aspect="depth"),
    )
    assert votes(evaluation) == {"A": 1, "B": 0, "tie": 0, "both_bad": 0}


def test_people_who_scored_agree_as_if_they_had_chosen(evaluation: Evaluation) -> None:
    import_rows(evaluation, *scored(5, 2), *scored(2, 5, "q2"), *scored(3, 3, "q3"), *scored(1, 9, "q4"))
    import_rows(evaluation, *scored(80, 10, rater="bob"), *scored(90, 10, "q2", rater="bob"))
    import_rows(evaluation, verdict_row(rater="carl"), verdict_row("q2", rater="carl", choice="B"))
    people = overall(evaluation).human_human
    # ann: A B tie B; bob: A A; carl: A B. Pairs on q1: 3 of 3 agree; on q2: 1 of 3.
    assert (people.votes.with_ties.agree, people.votes.with_ties.n) == (4, 6)
    named = {(pair.rater_1, pair.rater_2): (pair.with_ties.agree, pair.with_ties.n) for pair in people.pairs}
    assert named == {("ann", "bob"): (1, 2), ("ann", "carl"): (2, 2), ("bob", "carl"): (1, 2)}


def test_what_an_imported_judge_failed_to_score_is_counted_beside_its_choices(evaluation: Evaluation) -> None:
    judge = {"rater": "gpt", "rater_kind": "judge"}
    rows = [*scored(5, 2, **judge), *scored(2, 5, "q2", **judge), score_row("q3", value="unreadable", **judge)]
    import_rows(
        evaluation, *rows, score_row("q3", "beta", 4, **judge), score_row("q4", value="failed", sample=1, **judge)
    )
    import_rows(evaluation, *scored(3, 1), *scored(3, 1, "q2"))
    found = overall(evaluation).judges["gpt"]
    # q1: A, q2: B. On q3 one of the two scores is missing, q4 was never scored.
    assert (found.verdicts, found.failed.calls, found.failed.incomplete) == (2, 2, 2)
    assert found.failed.by_state == {"unreadable": 1, "failed": 1}


def test_several_samples_of_a_person_are_several_votes(evaluation: Evaluation) -> None:
    import_rows(evaluation, *scored(5, 2), *scored(1, 2), *scored(4, 2))
    people = overall(evaluation).human_human
    assert people.votes.with_ties.n == 3  # three pairs of one person's votes
    assert votes(evaluation)["A"] == 1


def test_one_response_may_stand_in_several_comparisons(evaluation: Evaluation) -> None:
    third = [comparison_row("q1", candidate_b="gamma"), comparison_row("q1", candidate_a="gamma", response_a="Dust.")]
    import_rows(evaluation, *third, new_response=NewResponse.KEEP)
    import_rows(evaluation, *scored(3, 1))
    import_rows(
        evaluation, score_row(candidate="gamma", value=2), skip_bad=True
    )  # gamma has two responses: it is left out
    assert votes(evaluation) == {"A": 1, "B": 0, "tie": 0, "both_bad": 0}
    import_rows(evaluation, comparison_row("q2", candidate_b="gamma", response_b="Dust."))
    import_rows(evaluation, *scored(1, 2, "q2"), score_row("q2", "gamma", 3))
    assert votes(evaluation) == {"A": 1, "B": 2, "tie": 0, "both_bad": 0}


def test_gold_scores_are_gold_and_enter_nothing_else(evaluation: Evaluation) -> None:
    judge = {"rater": "reward", "rater_kind": "judge"}
    import_rows(evaluation, *scored(1, 0, rater_kind="gold"), *scored(0, 1, "q2", rater_kind="gold"))
    import_rows(evaluation, *scored(0.7, 0.2, **judge), *scored(0.7, 0.2, "q2", **judge))
    found = overall(evaluation)
    assert (found.judges["reward"].judge_gold.with_ties.agree, found.judges["reward"].judge_gold.with_ties.n) == (1, 2)
    assert found.human_human.multi.units == 0


def test_an_imported_judges_mean_scores_make_its_verdict_and_are_named(evaluation: Evaluation) -> None:
    judge = {"rater": "reward", "rater_kind": "judge"}
    import_rows(evaluation, verdict_row(), verdict_row("q2"), verdict_row("q3", choice="tie"))
    # The means of q2: (5 + 1) / 2 = 3 against 2.
    rows = [*scored(1, 2, **judge), *scored(5, 2, "q2", **judge), *scored(1, 2, "q2", **judge)]
    import_rows(evaluation, *rows, *scored(2, 2, "q3", **judge), *scored(2, None, "q4", **judge))
    found = overall(evaluation).judges["reward"]
    assert (found.kind, found.label, found.verdicts) == ("imported", "derived from scores, margin 0.0", 3)
    assert found.derived is not None
    assert (found.derived.source, found.derived.margin) == ("scores", 0.0)
    majority = found.judge_human.majority.with_ties
    assert (majority.agree, majority.n) == (2, 3)  # B, A, tie against A, A, tie


def test_an_imported_judge_whose_lower_scores_are_better_says_so(evaluation: Evaluation) -> None:
    import_rows(evaluation, verdict_row(), verdict_row("q2"), verdict_row("q3", choice="B"))
    judge = {"rater": "loss", "rater_kind": "judge"}
    rows = [*scored(1, 2, **judge), *scored(1, 2, "q2", **judge), *scored(1, 2, "q3", **judge)]
    import_rows(evaluation, *rows, lower_is_better=True)
    found = overall(evaluation).judges["loss"]
    assert found.label == "derived from scores, lower is better, margin 0.0"
    assert found.judge_human.majority.with_ties.agree == 2


def test_a_judge_that_chose_on_one_aspect_and_scored_another_has_both(evaluation: Evaluation) -> None:
    judge = {"rater": "gpt", "rater_kind": "judge"}
    import_rows(evaluation, verdict_row(**judge))
    import_rows(evaluation, *scored(1, 2, aspect="depth", **judge))
    aspects = report(evaluation).aspects
    assert (aspects["overall"].judges["gpt"].derived, aspects["overall"].judges["gpt"].verdicts) == (None, 1)
    assert aspects["depth"].judges["gpt"].label == "derived from scores, margin 0.0"


def test_scores_and_choices_on_one_aspect_stand_under_two_definitions(evaluation: Evaluation) -> None:
    import_rows(evaluation, verdict_row(aspect="depth"))
    import_rows(evaluation, *scored(1, 2, aspect="depth", rater="bob"))
    depth = report(evaluation).aspects["depth"]
    assert depth.human_human.votes.with_ties.n == 1
    assert "imported scores, version 1 (derived from scores, margin 0.0)" in depth.rubric_versions


def test_another_margin_counts_at_once_for_the_scores_that_are_here(evaluation: Evaluation) -> None:
    rows = [*scored(5, 4), *scored(1, 5, "q2")]
    import_rows(evaluation, *rows)
    assert votes(evaluation)["tie"] == 0
    import_rows(evaluation, *rows, derive_pairs=1)
    assert votes(evaluation)["tie"] == 1


def test_only_the_comparisons_asked_for_count(evaluation: Evaluation) -> None:
    import_rows(evaluation, *scored(5, 2), *scored(2, 5, "q2"))
    assert votes(evaluation, where=(("query_id", "q2"),)) == {"A": 0, "B": 1, "tie": 0, "both_bad": 0}


def test_a_cell_opens_the_comparisons_that_scores_put_there(evaluation: Evaluation) -> None:
    import_rows(evaluation, *scored(5, 2), *scored(5, 2, "q2"))
    judge = {"rater": "reward", "rater_kind": "judge"}
    import_rows(evaluation, *scored(0, 1, **judge), *scored(1, 0, "q2", **judge))
    rater = Rater.objects.get(name="reward").pk
    every = Comparison.objects.filter(evaluation=evaluation)
    assert find_comparisons_in_cell(evaluation, every, "overall", rater, "B", "A") == [every.get(query__key="q1").pk]


def test_where_no_scores_came_in_none_are_looked_for(evaluation: Evaluation) -> None:
    import_rows(evaluation, verdict_row())
    with CaptureQueriesContext(connection) as queries:
        report(evaluation)
    imported = '"evaluations_score"."source_import_id" IS NOT NULL'
    assert not [query["sql"] for query in queries.captured_queries if imported in query["sql"]]
    import_rows(evaluation, *scored(1, 2, rater="bob"))
    with CaptureQueriesContext(connection) as queries:
        report(evaluation)
    assert [query["sql"] for query in queries.captured_queries if imported in query["sql"]]


def test_a_tie_counts_as_offered_where_one_occurs(evaluation: Evaluation) -> None:
    import_rows(
        evaluation, *scored(1, 2), *scored(2, 1, "q2"), *scored(1, 2, rater="bob"), *scored(1, 2, "q2", rater="bob")
    )
    # Both chose B on q1; A and B on q2: π(A) = 1/4, pe = 2 · 1/4 · 3/4 = 3/8 of two choices offered.
    # AC1 = (1/2 − 3/8) / (1 − 3/8) = 1/5.
    assert overall(evaluation).human_human.multi.gwet_ac1.value == pytest.approx(1 / 5)
    import_rows(evaluation, *scored(1, 1, "q3"), *scored(1, 1, "q3", rater="bob"))
    # π = 1/6, 3/6, 2/6; pe = (1/6 · 5/6 + 1/4 + 2/9) / 2 = 11/36; AC1 = (2/3 − 11/36) / (25/36) = 13/25.
    assert overall(evaluation).human_human.multi.gwet_ac1.value == pytest.approx(13 / 25)
