"""Judges of single responses and panels in the report: what they say of comparisons, and what they failed on."""

import uuid
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evaluations.domain.choices import ShownOrder
from evaluations.domain.judges import CallState, RunState
from evaluations.domain.reports import FailedRule, ReportRules, SideCoding
from evaluations.models.comparisons import Comparison, Response
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater
from evaluations.models.runs import Run
from evaluations.reports.cells.selectors import find_comparisons_in_cell
from evaluations.reports.selectors import build_report
from evaluations.stats.judge_report import JudgeReport
from tests.factories.evaluations import make_comparison, make_human, make_response
from tests.factories.verdicts import (
    make_imported_votes,
    make_judge_score,
    make_judge_verdicts,
    make_review,
    make_scoring_judge,
)

pytestmark = pytest.mark.django_db


def judges(evaluation: Evaluation, rules: ReportRules | None = None, aspect: str = "overall") -> dict[str, JudgeReport]:
    every = Comparison.objects.filter(evaluation=evaluation)
    return dict(build_report(evaluation, every, rules or ReportRules()).aspects[aspect].judges)


def scored(evaluation: Evaluation, rater: Rater, a: Any, b: Any, vote: str = "") -> Comparison:
    """A comparison whose responses have these scores (a list of samples, a state, or None: never asked)."""
    made = make_comparison(evaluation)
    for response, given in ((made.response_a, a), (made.response_b, b)):
        for sample, value in enumerate(given if isinstance(given, list) else [given] * (given is not None)):
            make_judge_score(rater, response, value, sample=sample)
    if vote:
        make_imported_votes(made, "ann", {"overall": vote})
    return made


def test_scores_become_choices_that_are_held_against_people(evaluation: Evaluation) -> None:
    rater = make_scoring_judge(evaluation)
    scored(evaluation, rater, 4, 2, vote="A")
    scored(evaluation, rater, 1, 5, vote="B")
    scored(evaluation, rater, 3, 3, vote="A")
    # The means of the samples: (4 + 5) / 2 = 4.5 against 4.
    scored(evaluation, rater, [4, 5], 4, vote="B")
    found = judges(evaluation)["scorer"]
    # A, B, tie, A against A, B, A, B: two of four; without ties two of three.
    majority = found.judge_human.majority
    assert (found.verdicts, majority.with_ties.agree, majority.with_ties.n) == (4, 2, 4)
    assert (majority.without_ties.agree, majority.without_ties.n) == (2, 3)
    assert (found.label, found.kind) == ("derived from scores, margin 0.0", "llm")
    assert found.derived is not None
    assert (found.derived.source, found.derived.margin) == ("scores", 0.0)


def test_the_margin_of_the_rubric_makes_ties_and_is_named(evaluation: Evaluation) -> None:
    rater = make_scoring_judge(evaluation, margin=1.0)
    scored(evaluation, rater, 4, 3, vote="tie")
    scored(evaluation, rater, 5, 3, vote="A")
    found = judges(evaluation)["scorer"]
    assert (found.judge_human.majority.with_ties.agree, found.label) == (2, "derived from scores, margin 1.0")


def test_a_failure_on_either_response_leaves_the_comparison_without_a_choice_and_is_counted(
    evaluation: Evaluation,
) -> None:
    rater = make_scoring_judge(evaluation)
    scored(evaluation, rater, 4, 2, vote="A")
    scored(evaluation, rater, CallState.REFUSED.value, 2, vote="A")
    scored(evaluation, rater, 4, CallState.UNREADABLE.value, vote="A")
    scored(evaluation, rater, CallState.UNREADABLE.value, CallState.PENDING.value, vote="A")
    scored(evaluation, rater, 4, None, vote="A")  # the other response was never asked about: nothing has failed
    found = judges(evaluation)["scorer"]
    assert found.failed.by_state == {"refused": 1, "unreadable": 2, "waiting": 1}
    assert (found.failed.calls, found.failed.incomplete) == (3, 3)
    assert (found.verdicts, found.judge_human.majority.with_ties.n) == (1, 1)
    # As ties: the second and third; the fourth still waits, the fifth was not asked whole.
    as_ties = judges(evaluation, ReportRules(failed=FailedRule.TIE))["scorer"]
    assert (as_ties.verdicts, as_ties.failed.calls) == (3, 3)


def test_a_response_in_several_comparisons_fails_once_and_leaves_each_of_them_without_a_choice(
    evaluation: Evaluation,
) -> None:
    rater = make_scoring_judge(evaluation)
    first = make_comparison(evaluation)
    third = make_response(first.query, "gamma", "Oslo.")
    columns = {"evaluation": evaluation, "query": first.query, "origin": "paired"}
    Comparison.objects.create(**columns, response_a=first.response_a, response_b=third, random_order=1)
    Comparison.objects.create(**columns, response_a=first.response_b, response_b=third, random_order=2)
    make_judge_score(rater, first.response_a, 4)
    make_judge_score(rater, first.response_b, 2)
    make_judge_score(rater, third, CallState.TRUNCATED.value)
    found = judges(evaluation)["scorer"]
    assert (found.verdicts, found.failed.truncated, found.failed.calls, found.failed.incomplete) == (1, 1, 1, 2)


def test_a_failed_sample_beside_an_answered_one_is_counted_and_does_not_hide_the_score(evaluation: Evaluation) -> None:
    rater = make_scoring_judge(evaluation)
    scored(evaluation, rater, [4, CallState.FAILED.value], 2)
    found = judges(evaluation)["scorer"]
    assert (found.verdicts, found.failed.failed, found.failed.incomplete) == (1, 1, 0)


def test_scores_have_no_order_so_nothing_is_said_of_place(evaluation: Evaluation) -> None:
    rater = make_scoring_judge(evaluation)
    made = scored(evaluation, rater, 4, 2)
    make_review(make_human(evaluation), made, {"overall": "A"})
    found = judges(evaluation)["scorer"]
    assert (found.position.consistency.n, found.position.first_shown.value) == (0, None)
    by_place = judges(evaluation, ReportRules(coding=SideCoding.SHOWN))["scorer"].judge_human.majority.with_ties
    assert (by_place.n, by_place.agreement.value) == (0, None)
    assert by_place.agreement.why


def test_the_cell_of_a_derived_choice_opens_the_comparisons_that_it_counts(evaluation: Evaluation) -> None:
    rater = make_scoring_judge(evaluation)
    made = [scored(evaluation, rater, 4, b, vote="A") for b in (2, 5, 3)]
    every = Comparison.objects.filter(evaluation=evaluation)
    behind = find_comparisons_in_cell(evaluation, every, "overall", rater.pk, "A", "A")
    assert behind == [made[0].pk, made[2].pk]


def test_repaired_answers_are_counted_beside_the_failed_ones(evaluation: Evaluation) -> None:
    rater = make_scoring_judge(evaluation)
    made = make_comparison(evaluation)
    make_judge_score(rater, made.response_a, 4, repaired=True)
    make_judge_score(rater, made.response_b, CallState.UNREADABLE.value, repaired=True)
    make_judge_verdicts(made, as_stored={"overall": "A"}, swapped={"overall": "A"})
    rule = Rater.objects.get(name="longest")
    assert rule.judge is not None
    rule.judge.calls.filter(shown=ShownOrder.SWAPPED).update(repaired=True)
    found = judges(evaluation)
    # A repair that did not help is a failure and no verdict; one that did is among the verdicts.
    assert (found["scorer"].repaired, found["scorer"].failed.unreadable) == (1, 1)
    assert (found["longest"].repaired, found["longest"].failed.calls, found["longest"].verdicts) == (1, 0, 1)


# ---- panels ---------------------------------------------------------------------------------


def start_together(*raters: Rater) -> None:
    batch = uuid.uuid4()
    for rater in raters:
        assert rater.judge is not None
        Run.objects.create(evaluation=rater.evaluation, judge=rater.judge, batch=batch, state=RunState.DONE)


def both(choice: str) -> dict[str, Any]:
    return {"as_stored": {"overall": choice}, "swapped": {"overall": choice}}


def test_judges_that_were_started_together_have_a_majority_in_the_report(evaluation: Evaluation) -> None:
    made = [make_comparison(evaluation) for _ in range(4)]
    for comparison, choices in zip(made, ("AAB", "BBA", "ABB"), strict=False):
        for name, choice in zip(("a", "b", "c"), choices, strict=True):
            make_judge_verdicts(comparison, judge=name, **both(choice))
    # The fourth: one chooses A, the others have failed in one order.
    make_judge_verdicts(made[3], judge="a", **both("A"))
    for name in ("b", "c"):
        make_judge_verdicts(made[3], judge=name, as_stored={"overall": "A"}, swapped=CallState.TRUNCATED.value)
    for comparison, vote in zip(made, "ABAA", strict=True):
        make_imported_votes(comparison, "ann", {"overall": vote})
    assert "panel" not in " ".join(judges(evaluation))
    start_together(*(Rater.objects.get(name=name) for name in ("c", "a", "b")))
    start_together(*(Rater.objects.get(name=name) for name in ("b", "c", "a")))
    found = judges(evaluation)
    assert list(found) == ["a", "b", "c", "panel: a, b, c"]
    panel = found["panel: a, b, c"]
    # A, B, B against A, B, A: two of three.
    majority = panel.judge_human.majority.with_ties
    assert (panel.verdicts, majority.agree, majority.n) == (3, 2, 3)
    assert (panel.failed.truncated, panel.failed.calls, panel.failed.incomplete) == (2, 2, 1)
    assert (panel.label, panel.kind, panel.rater_id) == ("majority of 3 judges", "panel", None)
    assert panel.derived is not None
    assert (panel.derived.judges, panel.derived.n_split) == (("a", "b", "c"), 0)
    assert panel.position.consistency.n == 0


def test_a_panel_may_hold_judges_of_single_responses(evaluation: Evaluation) -> None:
    rater = make_scoring_judge(evaluation)
    made = scored(evaluation, rater, 2, 4, vote="B")
    make_judge_verdicts(made, judge="a", **both("B"))
    start_together(rater, Rater.objects.get(name="a"))
    panel = judges(evaluation)["panel: a, scorer"]
    assert (panel.verdicts, panel.judge_human.majority.with_ties.agree) == (1, 1)


def test_a_panel_of_which_a_judge_is_left_out_is_left_out(evaluation: Evaluation) -> None:
    made = make_comparison(evaluation)
    for name in ("first one", "first two", "second"):
        make_judge_verdicts(made, judge=name, **both("A"))
    start_together(*(Rater.objects.get(name=name) for name in ("first one", "first two")))
    start_together(*(Rater.objects.get(name=name) for name in ("first one", "second")))
    assert [name for name in judges(evaluation, ReportRules(raters="first*")) if "panel" in name] == [
        "panel: first one, first two"
    ]


def test_runs_that_were_started_alone_make_no_panel(evaluation: Evaluation) -> None:
    made = make_comparison(evaluation)
    for name in ("a", "b"):
        start_together(make_judge_verdicts(made, judge=name, **both("A")))
    assert list(judges(evaluation)) == ["a", "b"]


def test_the_number_of_queries_does_not_grow_with_scores(evaluation: Evaluation) -> None:
    def cost() -> int:
        with CaptureQueriesContext(connection) as queries:
            judges(evaluation)
        return len(queries)

    scored(evaluation, make_scoring_judge(evaluation), 4, 2)
    few = cost()
    for number in range(4):
        scored(evaluation, make_scoring_judge(evaluation, f"scorer {number}"), [3, CallState.FAILED.value], 2)
    assert Response.objects.count() == 10
    assert cost() == few
