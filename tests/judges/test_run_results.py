"""What a run's page says of the judge's choices while it works and afterwards, and who sees it."""

from typing import Any

import pytest
from django.core.cache import cache
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from evaluations.domain.judges import CallState, RunState
from evaluations.domain.roles import Role
from evaluations.evaluation_settings.services import change_evaluation
from evaluations.judges.runs import results as run_results
from evaluations.judges.runs.result_summary import summarise_results
from evaluations.judges.runs.results import JudgeResults, get_judge_results
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Judge
from evaluations.models.runs import Call, Run
from evaluations.models.users import User
from evaluations.models.verdicts import Disclosure
from tests.factories.evaluations import make_comparison, make_human, make_member
from tests.factories.verdicts import (
    make_judge_score,
    make_judge_verdicts,
    make_review,
    make_scoring_judge,
    repack_votes_of,
)
from tests.helpers.browser_client import sign_in_client
from tests.helpers.page_text import html_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.any_database]

FACTUAL = "factuality"


@pytest.fixture(autouse=True)
def empty_cache() -> None:
    cache.clear()


def judge_all(evaluation: Evaluation, *answers: tuple[str, str], **columns: Any) -> Judge:
    """A comparison for each answer in the two orders, judged on one aspect."""
    rater = None
    for first, second in answers:
        comparison = make_comparison(evaluation, **columns)
        rater = make_judge_verdicts(comparison, as_stored={FACTUAL: first}, swapped={FACTUAL: second})
    assert rater is not None
    assert rater.judge is not None
    return rater.judge


def count(judge: Judge, *, is_active: bool = False) -> JudgeResults:
    return get_judge_results(Judge.objects.select_related("evaluation").get(pk=judge.pk), is_active=is_active)


def run_page(user: User, name: str = "run") -> str:
    answer = sign_in_client(user).get(reverse(name, args=["study", Run.objects.get().pk]))
    return " ".join(html_of(answer).split())


def test_wins_ties_and_losses_of_two_models_are_counted_over_both_orders(evaluation: Evaluation) -> None:
    # A in both orders: a win of alpha. A and B: a tie, inconsistent. A tie in both: a tie, consistent.
    judge = judge_all(evaluation, ("A", "A"), ("A", "A"), ("B", "B"), ("A", "B"), ("tie", "tie"))
    (aspect,) = count(judge).judged
    (pair,) = aspect.tally.standings
    assert (pair.candidate, pair.versus) == ("alpha", "beta")
    assert (pair.won, pair.tied, pair.lost, pair.n) == (2, 2, 1, 5)
    assert pair.rate.value == pytest.approx((2 + 2 / 2) / 5)
    assert (aspect.tally.inconsistent, aspect.tally.in_both_orders) == (1, 5)


def test_a_comparison_counts_once_all_orders_that_were_asked_are_answered(evaluation: Evaluation) -> None:
    judge = judge_all(evaluation, ("A", "A"))
    for state in (CallState.PENDING, CallState.UNREADABLE):
        make_judge_verdicts(make_comparison(evaluation), as_stored={FACTUAL: "B"}, swapped=str(state))
    (aspect,) = count(judge).judged
    assert aspect.tally.n == 1


def test_several_models_stand_in_order_of_their_win_rates(evaluation: Evaluation) -> None:
    judge = judge_all(evaluation, ("A", "A"), ("A", "A"), candidates=("alpha", "beta"))
    judge_all(evaluation, ("B", "B"), candidates=("alpha", "gamma"))
    (aspect,) = count(judge).judged
    standings = [(row.candidate, row.won, row.tied, row.lost) for row in aspect.tally.standings]
    assert standings == [("gamma", 1, 0, 0), ("alpha", 2, 0, 1), ("beta", 0, 0, 2)]


def test_scores_of_single_responses_count_as_the_choices_that_they_make(evaluation: Evaluation) -> None:
    rater = make_scoring_judge(evaluation)
    assert rater.judge is not None
    given: list[tuple[float | str, float | str]] = [(5, 3), (2, 2), (1, "failed")]
    for scores in given:
        comparison = make_comparison(evaluation)
        for response, value in zip((comparison.response_a, comparison.response_b), scores, strict=True):
            make_judge_score(rater, response, value)
    (aspect,) = count(rater.judge).judged
    (pair,) = aspect.tally.standings
    assert (pair.won, pair.tied, pair.lost) == (1, 1, 0)
    assert aspect.tally.inconsistent_share is None


def test_no_test_call_counts(evaluation: Evaluation) -> None:
    judge = judge_all(evaluation, ("A", "A"), ("B", "B"))
    tested = Comparison.objects.order_by("pk").last()
    assert tested is not None
    Call.objects.filter(comparison=tested).update(is_test=True)
    repack_votes_of(tested)
    (aspect,) = count(judge).judged
    assert (aspect.tally.n, aspect.tally.standings[0].won) == (1, 1)
    assert summarise_results("gpt", count(judge)).startswith("On Factuality, gpt preferred alpha over beta in 1 of 1 ")


def test_the_summary_has_a_share_with_its_interval_and_claims_no_more(evaluation: Evaluation) -> None:
    answers = [("A", "A")] * 34 + [("B", "B")] * 26
    said = summarise_results("gpt", count(judge_all(evaluation, *answers)))
    assert said.startswith("On Factuality, gpt preferred alpha over beta in 34 of 60 comparisons (57%, 95% CI 44–70).")
    assert "Difference not significant." in said
    assert "0% inconsistent across orders." in said


def test_the_summary_names_the_model_that_was_preferred_wherever_it_stands(evaluation: Evaluation) -> None:
    answers = [("A", "A")] * 5 + [("B", "B")] * 35 + [("tie", "A")] * 10
    said = summarise_results("gpt", count(judge_all(evaluation, *answers)))
    # (35 + 10 ÷ 2) ÷ 50
    assert "preferred beta over alpha in 35 of 50 comparisons and tied 10 (win rate 80%, 95% CI " in said
    assert "not significant" not in said
    assert "20% inconsistent across orders." in said


def test_an_even_judge_prefers_nobody(evaluation: Evaluation) -> None:
    said = summarise_results("gpt", count(judge_all(evaluation, ("A", "A"), ("B", "B"))))
    assert "gpt was evenly split between alpha and beta (n = 2)." in said


def test_a_run_that_ended_leads_to_the_results(evaluation: Evaluation, owner: User) -> None:
    judge_all(evaluation, ("A", "A"), ("A", "B"))
    shown = run_page(owner)
    assert f'<a class="button primary" href="{reverse("report_part", args=["study", "wins"])}">See results</a>' in shown
    assert "longest preferred alpha over beta in 1 of 2 comparisons and tied 1" in shown
    assert "50%" in shown


def test_a_poll_brings_the_results_so_far(evaluation: Evaluation, owner: User) -> None:
    judge_all(evaluation, ("A", "A"))
    Run.objects.update(state=RunState.RUNNING)
    polled = run_page(owner, "run_progress")
    assert 'id="run-results"' in polled
    assert "Results so far" in polled
    assert "alpha vs. beta" in polled
    assert "preferred" not in polled


def test_a_run_without_a_usable_reply_is_one_line_with_its_cause_and_what_to_do(
    evaluation: Evaluation, owner: User, reviewer: User
) -> None:
    comparison = make_comparison(evaluation)
    make_judge_verdicts(comparison, as_stored="unreadable", swapped="unreadable")
    Call.objects.update(error="No verdict in the reply.")
    shown = run_page(owner)
    assert "Not run: no reply could be used." in shown
    assert "2 of 2 calls unreadable: No verdict in the reply." in shown
    assert "Create a judge with another output format" in shown
    assert "See results" not in shown
    assert "n/a" not in shown
    assert "no usable reply" in " ".join(html_of(sign_in_client(owner).get(reverse("runs", args=["study"]))).split())
    assert "No verdict in the reply." not in run_page(reviewer)


def test_a_reviewer_sees_no_results_before_having_reviewed_everything(evaluation: Evaluation, reviewer: User) -> None:
    judge_all(evaluation, ("A", "A"), ("B", "B"))
    rater = make_human(evaluation)
    rater.user = reviewer
    rater.save()
    first, second = Comparison.objects.order_by("pk")
    for comparison in (first, second):
        for name in ("run", "run_progress"):
            assert "alpha" not in run_page(reviewer, name)
        make_review(rater, comparison, {FACTUAL: "A"})
    assert "alpha vs. beta" in run_page(reviewer)
    change_evaluation(evaluation, {"reveal": "never"}, user=None)
    assert "alpha" not in run_page(reviewer)


def test_the_results_of_few_comparisons_count_as_seen(evaluation: Evaluation, owner: User) -> None:
    judge_all(evaluation, ("A", "A"), ("B", "B"))
    viewer = make_member(evaluation, Role.VIEWER)
    run_page(viewer)
    assert not Disclosure.objects.exists()
    run_page(owner)
    assert Disclosure.objects.filter(user=owner).count() == 2


def test_an_active_judge_is_counted_again_in_intervals_only(
    evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge = judge_all(evaluation, ("A", "A"))
    monkeypatch.setattr(run_results, "RECOUNT_AFTER_FACTOR", 10**9)
    assert count(judge, is_active=True).judged[0].tally.n == 1
    judge_all(evaluation, ("A", "A"))
    Evaluation.objects.update(comparisons_changed_at="2026-01-01T00:00:00Z")
    with CaptureQueriesContext(connection) as captured:
        assert count(judge, is_active=True).judged[0].tally.n == 1
    assert len(captured) <= 2  # the judge, here, and its rater
    assert count(judge).judged[0].tally.n == 2


def test_the_statements_do_not_grow_with_the_comparisons(evaluation: Evaluation) -> None:
    def statements() -> int:
        cache.clear()
        with CaptureQueriesContext(connection) as captured:
            count(judge)
        return len(captured)

    judge = judge_all(evaluation, ("A", "A"))
    before = statements()
    judge_all(evaluation, *[("B", "A")] * 20)
    assert statements() == before
