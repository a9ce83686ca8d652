"""A run's account: what is spent and kept back is never more than its budget, and equals a recount of its rows."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from django.db import connections
from django.db.models import F, Sum
from django.db.models.functions import Coalesce
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evaluations.domain.judges import AttemptOutcome, CallState, RequestShape, RunState
from evaluations.domain.money import format_exact_usd
from evaluations.judges.calls.budget_limits import CHECK_AGAIN_SECONDS
from evaluations.judges.calls.claims import claim_calls, return_calls
from evaluations.judges.calls.lease_sweeper import return_expired_calls
from evaluations.judges.calls.outcome_store import store_outcomes
from evaluations.judges.calls.work_session import CallOutcome, ClaimedCall, WorkSession
from evaluations.judges.runs.services import cancel_run, resume_run
from evaluations.llm.request_loop import ClaimResult
from evaluations.models.judges import Judge, Price
from evaluations.models.runs import Attempt, Call, Run
from tests.factories.evaluations import make_comparison, make_evaluation
from tests.factories.judges import make_llm_judge
from tests.helpers.work_sessions import (
    ANSWERED_ATTEMPT,
    CLOSED_ADDRESS,
    answered_outcome,
    claim_session_calls,
    expire_leases,
    make_calls_due,
    set_judge_price,
    start_run_session,
    start_work_session,
    waiting_outcome,
)

pytestmark = pytest.mark.django_db(transaction=True)

MAX_TOKENS = 100  # at ten nano-USD each
TOKENS: dict[str, Any] = {"tokens_in": 500, "tokens_out": 50}
COST = 500 * 1 + 50 * 10


@pytest.fixture
def judge() -> Judge:
    return judge_with(comparisons=3)


def judge_with(comparisons: int) -> Judge:
    evaluation = make_evaluation()
    for _ in range(comparisons):
        make_comparison(evaluation)
    judge = make_llm_judge(evaluation, CLOSED_ADDRESS, mode="json_schema", max_tokens=MAX_TOKENS)
    set_judge_price(judge)
    return judge


def recount(run: Run) -> int:
    """What the run has spent, from its Attempts alone: equal to what stands on it."""
    spent = Sum(Coalesce(F("cost"), F("max_cost"), 0))
    return Attempt.objects.filter(run=run).aggregate(spent=spent)["spent"] or 0


def worst_of_one(judge: Judge) -> int:
    """Every prompt here has the same length."""
    session = start_run_session(judge)
    (claimed,) = claim_session_calls(session, 1)
    return_calls([claimed])
    cancel_run(session.run, user=None)
    return claimed.reserved


def account(run: Run) -> tuple[int, int]:
    run.refresh_from_db()
    return run.spent, run.reserved


def test_what_requests_may_cost_is_kept_back_and_given_back_for_what_they_did(judge: Judge) -> None:
    session = start_run_session(judge)
    claimed = claim_session_calls(session, 2)
    assert account(session.run) == (0, sum(one.reserved for one in claimed))
    assert all(one.reserved > MAX_TOKENS * 10 for one in claimed)
    store_outcomes(session, [answered_outcome(session, claimed[0], **TOKENS)])
    assert account(session.run) == (COST, claimed[1].reserved)
    assert Attempt.objects.values_list("cost", "max_cost").get() == (COST, None)
    assert Call.objects.get(pk=claimed[0].call_id).reserved == 0


def test_of_the_calls_that_wait_as_many_are_claimed_as_the_budget_holds(judge: Judge) -> None:
    worst = worst_of_one(judge)
    session = start_run_session(judge, budget=worst * 2 + 1)
    claimed = claim_session_calls(session)
    assert len(claimed) == 2
    again = claim_calls(session, 64)
    assert (again.calls, again.wait) == ((), CHECK_AGAIN_SECONDS)
    assert Run.objects.get(pk=session.run.pk).state == RunState.RUNNING


def test_a_run_whose_next_request_does_not_fit_stops_once_nothing_is_in_flight(judge: Judge) -> None:
    worst = worst_of_one(judge)
    session = start_run_session(judge, budget=worst + COST - 1)
    store_outcomes(session, [answered_outcome(session, one, **TOKENS) for one in claim_session_calls(session)])
    assert claim_calls(session, 64) == ClaimResult()
    session.run.refresh_from_db()
    assert session.run.state == RunState.STOPPED
    assert session.run.stop_reason == (
        f"The budget is used up: USD {format_exact_usd(COST)} of {format_exact_usd(worst + COST - 1)} spent; "
        f"the next request may cost {format_exact_usd(worst)}. Raise the budget, then resume the run."
    )
    resume_run(session.run, user=None, budget=worst * 10)
    assert len(claim_session_calls(start_work_session(session.run))) == 5


def lost(session: WorkSession, claimed: ClaimedCall) -> None:
    expire_leases(claimed)
    return_expired_calls()


def found_after_all(session: WorkSession, claimed: ClaimedCall) -> None:
    lost(session, claimed)
    store_outcomes(session, [answered_outcome(session, claimed, **TOKENS)])


def stored(**said: Any) -> Callable[[WorkSession, ClaimedCall], None]:
    return lambda session, claimed: store_outcomes(session, [answered_outcome(session, claimed, **said)])


def fault(**said: Any) -> Callable[[WorkSession, ClaimedCall], None]:
    return lambda session, claimed: store_outcomes(session, [waiting_outcome(claimed, 0, **said)])


def nobody_there(session: WorkSession, claimed: ClaimedCall) -> None:
    store_outcomes(session, [replace(waiting_outcome(claimed, 0, http_status=None), unsent=True)])


@pytest.mark.parametrize(
    ("what", "spent"),
    [
        (stored(**TOKENS), "cost"),
        (stored(), "worst"),  # answered without a word on tokens
        (lost, "worst"),
        (found_after_all, "cost"),
        (fault(http_status=500), "nothing"),
        (fault(http_status=429), "nothing"),
        (fault(http_status=None), "worst"),  # sent, and never heard of again
        (nobody_there, "nothing"),
        (lambda _, claimed: return_calls([claimed]), "nothing"),
    ],
    ids=["answered", "no-tokens", "lost", "late", "500", "429", "timeout", "nobody", "not-sent"],
)
def test_what_a_request_counts_as_spent(
    judge: Judge, what: Callable[[WorkSession, ClaimedCall], None], spent: str
) -> None:
    session = start_run_session(judge)
    claimed = claim_session_calls(session, 1)[0]
    what(session, claimed)
    assert account(session.run) == ({"cost": COST, "worst": claimed.reserved, "nothing": 0}[spent], 0)
    assert recount(session.run) == session.run.spent


def test_without_a_bound_on_replies_what_is_known_is_spent_and_the_rest_stays_unknown() -> None:
    evaluation = make_evaluation()
    make_comparison(evaluation)
    judge = make_llm_judge(evaluation, CLOSED_ADDRESS, mode="json_schema")
    set_judge_price(judge)
    session = start_run_session(judge)
    one, other = claim_session_calls(session)
    assert (one.reserved, other.reserved) == (0, 0)
    store_outcomes(session, [answered_outcome(session, one, **TOKENS), answered_outcome(session, other)])
    assert account(session.run) == (COST, 0)
    assert set(Attempt.objects.values_list("cost", "max_cost")) == {(COST, None), (None, None)}


def test_without_a_price_nothing_is_known_of_a_cost() -> None:
    evaluation = make_evaluation()
    make_comparison(evaluation)
    session = start_run_session(make_llm_judge(evaluation, CLOSED_ADDRESS, mode="json_schema", max_tokens=MAX_TOKENS))
    store_outcomes(session, [answered_outcome(session, one, **TOKENS) for one in claim_session_calls(session)])
    assert account(session.run) == (0, 0)
    assert set(Attempt.objects.values_list("cost", flat=True)) == {None}


def test_many_that_claim_at_once_keep_to_the_budget_together() -> None:
    judge = judge_with(comparisons=10)
    worst = worst_of_one(judge)
    session = start_run_session(judge, budget=worst * 5 + 1)
    with ThreadPoolExecutor(4) as pool:
        taken = sum(pool.map(claim_elsewhere, [session.run] * 8))
    assert taken == 5
    assert account(session.run) == (0, worst * 5)


def claim_elsewhere(run: Run) -> int:
    try:
        return len(claim_session_calls(start_work_session(run), 3))
    finally:
        connections.close_all()


# ---- from one run to another -----------------------------------------------------------------


def test_a_call_in_flight_is_paid_for_by_the_run_that_takes_it_over(judge: Judge) -> None:
    first = start_run_session(judge)
    one, other = claim_session_calls(first, 2)
    cancel_run(first.run, user=None)
    second = start_run_session(judge, budget=one.reserved * 6)
    assert account(first.run) == (0, 0)
    assert account(second.run) == (0, one.reserved + other.reserved)
    store_outcomes(first, [answered_outcome(first, one, **TOKENS)])
    expire_leases(other)
    return_expired_calls()
    assert account(first.run) == (0, 0)
    assert account(second.run) == (COST + other.reserved, 0)
    assert recount(second.run) == second.run.spent


def test_a_call_in_flight_stays_where_it_is_if_the_new_budget_does_not_hold_it(judge: Judge) -> None:
    first = start_run_session(judge)
    claimed = claim_session_calls(first, 2)
    cancel_run(first.run, user=None)
    second = start_run_session(judge, budget=claimed[0].reserved)
    assert account(first.run) == (0, claimed[1].reserved)
    assert account(second.run) == (0, claimed[0].reserved)


# ---- whatever happens ------------------------------------------------------------------------

HAPPENINGS: dict[str, Callable[[WorkSession, ClaimedCall], None]] = {
    "answered": stored(**TOKENS),
    "as dear as can be": lambda session, claimed: store_outcomes(session, [most_expensive(session, claimed)]),
    "without tokens": stored(),
    "server error": fault(http_status=503),
    "busy": fault(http_status=429),
    "timeout": fault(http_status=None),
    "nobody there": nobody_there,
    "lost": lost,
    "late": found_after_all,
    "given back": lambda _, claimed: return_calls([claimed]),
    "failed": lambda session, claimed: store_outcomes(session, [failed(claimed)]),
    "left in flight": lambda session, claimed: None,
}


def most_expensive(session: WorkSession, claimed: ClaimedCall) -> CallOutcome:
    """As many tokens in as the prompt has bytes, and as many out as the judge allows."""
    tokens_in = claimed.reserved - MAX_TOKENS * 10
    return answered_outcome(session, claimed, tokens_in=tokens_in, tokens_out=MAX_TOKENS)


def failed(claimed: ClaimedCall) -> CallOutcome:
    return CallOutcome(
        claimed, CallState.FAILED, ANSWERED_ATTEMPT | {"outcome": AttemptOutcome.FAILED, "http_status": 400}
    )


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    script=st.lists(st.lists(st.sampled_from(sorted(HAPPENINGS)), min_size=1, max_size=5), min_size=1, max_size=6),
    budget=st.integers(2_000, 60_000),
)
def test_spent_and_kept_back_are_never_more_than_the_budget(script: list[list[str]], budget: int) -> None:
    session = start_run_session(judge_with(comparisons=4), budget=budget)
    for claim in script:
        for what, claimed in zip(claim, claim_session_calls(session, len(claim)), strict=False):
            HAPPENINGS[what](session, claimed)
            spent, reserved = account(session.run)
            assert spent + reserved <= budget
        make_calls_due()
    in_flight = Call.objects.filter(run=session.run, state=CallState.RUNNING).values_list("reserved", flat=True)
    assert account(session.run) == (recount(session.run), sum(in_flight))


def test_a_budget_rests_on_the_longest_reply_of_the_model_where_the_judge_sets_no_limit() -> None:
    """Each request is bounded by 1,000 tokens out at ten nano-USD each, and nothing is claimed beyond the budget."""
    evaluation = make_evaluation()
    make_comparison(evaluation)
    judge = make_llm_judge(evaluation, CLOSED_ADDRESS, mode="json_schema")
    set_judge_price(judge)
    Price.objects.update(most_tokens_out=1_000)
    one = worst_of_one(judge)
    assert one > 1_000 * 10
    session = start_run_session(judge, budget=2 * one - 1)
    assert len(claim_session_calls(session)) == 1
    assert account(session.run) == (0, one)


def test_a_run_stops_where_its_budget_rested_on_a_limit_that_the_model_does_not_take(judge: Judge) -> None:
    session = start_run_session(judge, budget=10**9)
    session.judge.request_shape = RequestShape(left_out=("max_tokens",)).as_json()
    assert claim_session_calls(session) == []
    session.run.refresh_from_db()
    assert (session.run.state, session.run.reserved) == (RunState.STOPPED, 0)
    assert "The budget cannot be guaranteed: “test-model” accepts no token limit" in session.run.stop_reason
