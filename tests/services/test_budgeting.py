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

from evaluations.domain import AttemptOutcome, CallState, RunState, SentAs, exact_usd
from evaluations.judge.asking import Claimed
from evaluations.models import Attempt, Call, Judge, Price, Run
from evaluations.services.judging import claiming, lapsing, running, storing
from evaluations.services.judging.working import Bout, Held, Outcome
from tests.bouts import NOWHERE, SAID, answered, bout_on, claimed, due_again, expire, priced, to_wait, work_on
from tests.judges import make_judge
from tests.making import make_comparison, make_evaluation

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
    judge = make_judge(evaluation, NOWHERE, mode="json_schema", max_tokens=MAX_TOKENS)
    priced(judge)
    return judge


def recount(run: Run) -> int:
    """What the run has spent, from its Attempts alone: equal to what stands on it."""
    spent = Sum(Coalesce(F("cost"), F("cost_at_most"), 0))
    return Attempt.objects.filter(run=run).aggregate(spent=spent)["spent"] or 0


def worst_of_one(judge: Judge) -> int:
    """Every prompt here has the same length."""
    bout = bout_on(judge)
    (held,) = claimed(bout, 1)
    claiming.give_back([held])
    running.cancel(bout.run, user=None)
    return held.reserved


def account(run: Run) -> tuple[int, int]:
    run.refresh_from_db()
    return run.spent, run.reserved


def test_what_requests_may_cost_is_kept_back_and_given_back_for_what_they_did(judge: Judge) -> None:
    bout = bout_on(judge)
    held = claimed(bout, 2)
    assert account(bout.run) == (0, sum(one.reserved for one in held))
    assert all(one.reserved > MAX_TOKENS * 10 for one in held)
    storing.store(bout, [answered(bout, held[0], **TOKENS)])
    assert account(bout.run) == (COST, held[1].reserved)
    assert Attempt.objects.values_list("cost", "cost_at_most").get() == (COST, None)
    assert Call.objects.get(pk=held[0].call_id).reserved == 0


def test_of_the_calls_that_wait_as_many_are_claimed_as_the_budget_holds(judge: Judge) -> None:
    worst = worst_of_one(judge)
    bout = bout_on(judge, budget=worst * 2 + 1)
    held = claimed(bout)
    assert len(held) == 2
    again = claiming.claim(bout, 64)
    assert (again.questions, again.wait) == ((), claiming.LOOK_AGAIN_SECONDS)
    assert Run.objects.get(pk=bout.run.pk).state == RunState.RUNNING


def test_a_run_whose_next_request_does_not_fit_stops_once_nothing_is_in_flight(judge: Judge) -> None:
    worst = worst_of_one(judge)
    bout = bout_on(judge, budget=worst + COST - 1)
    storing.store(bout, [answered(bout, one, **TOKENS) for one in claimed(bout)])
    assert claiming.claim(bout, 64) == Claimed()
    bout.run.refresh_from_db()
    assert bout.run.state == RunState.STOPPED
    assert bout.run.stop_reason == (
        f"The budget is used up: USD {exact_usd(COST)} of {exact_usd(worst + COST - 1)} are spent, "
        f"and the next request may cost {exact_usd(worst)}. Give the run a larger budget and resume it."
    )
    running.resume(bout.run, user=None, budget=worst * 10)
    assert len(claimed(work_on(bout.run))) == 5


def lost(bout: Bout, held: Held) -> None:
    expire(held)
    lapsing.put_back_expired()


def found_after_all(bout: Bout, held: Held) -> None:
    lost(bout, held)
    storing.store(bout, [answered(bout, held, **TOKENS)])


def stored(**said: Any) -> Callable[[Bout, Held], None]:
    return lambda bout, held: storing.store(bout, [answered(bout, held, **said)])


def fault(**said: Any) -> Callable[[Bout, Held], None]:
    return lambda bout, held: storing.store(bout, [to_wait(held, 0, **said)])


def nobody_there(bout: Bout, held: Held) -> None:
    storing.store(bout, [replace(to_wait(held, 0, http_status=None), unsent=True)])


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
        (lambda _, held: claiming.give_back([held]), "nothing"),
    ],
    ids=["answered", "no-tokens", "lost", "late", "500", "429", "timeout", "nobody", "not-sent"],
)
def test_what_a_request_counts_as_spent(judge: Judge, what: Callable[[Bout, Held], None], spent: str) -> None:
    bout = bout_on(judge)
    held = claimed(bout, 1)[0]
    what(bout, held)
    assert account(bout.run) == ({"cost": COST, "worst": held.reserved, "nothing": 0}[spent], 0)
    assert recount(bout.run) == bout.run.spent


def test_without_a_bound_on_replies_what_is_known_is_spent_and_the_rest_stays_unknown() -> None:
    evaluation = make_evaluation()
    make_comparison(evaluation)
    judge = make_judge(evaluation, NOWHERE, mode="json_schema")
    priced(judge)
    bout = bout_on(judge)
    one, other = claimed(bout)
    assert (one.reserved, other.reserved) == (0, 0)
    storing.store(bout, [answered(bout, one, **TOKENS), answered(bout, other)])
    assert account(bout.run) == (COST, 0)
    assert set(Attempt.objects.values_list("cost", "cost_at_most")) == {(COST, None), (None, None)}


def test_without_a_price_nothing_is_known_of_a_cost() -> None:
    evaluation = make_evaluation()
    make_comparison(evaluation)
    bout = bout_on(make_judge(evaluation, NOWHERE, mode="json_schema", max_tokens=MAX_TOKENS))
    storing.store(bout, [answered(bout, one, **TOKENS) for one in claimed(bout)])
    assert account(bout.run) == (0, 0)
    assert set(Attempt.objects.values_list("cost", flat=True)) == {None}


def test_many_that_claim_at_once_keep_to_the_budget_together() -> None:
    judge = judge_with(comparisons=10)
    worst = worst_of_one(judge)
    bout = bout_on(judge, budget=worst * 5 + 1)
    with ThreadPoolExecutor(4) as pool:
        taken = sum(pool.map(claim_elsewhere, [bout.run] * 8))
    assert taken == 5
    assert account(bout.run) == (0, worst * 5)


def claim_elsewhere(run: Run) -> int:
    try:
        return len(claimed(work_on(run), 3))
    finally:
        connections.close_all()


# ---- from one run to another -----------------------------------------------------------------


def test_a_call_in_flight_is_paid_for_by_the_run_that_takes_it_over(judge: Judge) -> None:
    first = bout_on(judge)
    one, other = claimed(first, 2)
    running.cancel(first.run, user=None)
    second = bout_on(judge, budget=one.reserved * 6)
    assert account(first.run) == (0, 0)
    assert account(second.run) == (0, one.reserved + other.reserved)
    storing.store(first, [answered(first, one, **TOKENS)])
    expire(other)
    lapsing.put_back_expired()
    assert account(first.run) == (0, 0)
    assert account(second.run) == (COST + other.reserved, 0)
    assert recount(second.run) == second.run.spent


def test_a_call_in_flight_stays_where_it_is_if_the_new_budget_does_not_hold_it(judge: Judge) -> None:
    first = bout_on(judge)
    held = claimed(first, 2)
    running.cancel(first.run, user=None)
    second = bout_on(judge, budget=held[0].reserved)
    assert account(first.run) == (0, held[1].reserved)
    assert account(second.run) == (0, held[0].reserved)


# ---- whatever happens ------------------------------------------------------------------------

HAPPENINGS: dict[str, Callable[[Bout, Held], None]] = {
    "answered": stored(**TOKENS),
    "as dear as can be": lambda bout, held: storing.store(bout, [dearest(bout, held)]),
    "without tokens": stored(),
    "server error": fault(http_status=503),
    "busy": fault(http_status=429),
    "timeout": fault(http_status=None),
    "nobody there": nobody_there,
    "lost": lost,
    "late": found_after_all,
    "given back": lambda _, held: claiming.give_back([held]),
    "failed": lambda bout, held: storing.store(bout, [failed(held)]),
    "left in flight": lambda bout, held: None,
}


def dearest(bout: Bout, held: Held) -> Outcome:
    """As many tokens in as the prompt has bytes, and as many out as the judge allows."""
    tokens_in = held.reserved - MAX_TOKENS * 10
    return answered(bout, held, tokens_in=tokens_in, tokens_out=MAX_TOKENS)


def failed(held: Held) -> Outcome:
    return Outcome(held, CallState.FAILED, SAID | {"outcome": AttemptOutcome.FAILED, "http_status": 400})


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    script=st.lists(st.lists(st.sampled_from(sorted(HAPPENINGS)), min_size=1, max_size=5), min_size=1, max_size=6),
    budget=st.integers(2_000, 60_000),
)
def test_spent_and_kept_back_are_never_more_than_the_budget(script: list[list[str]], budget: int) -> None:
    bout = bout_on(judge_with(comparisons=4), budget=budget)
    for claim in script:
        for what, held in zip(claim, claimed(bout, len(claim)), strict=False):
            HAPPENINGS[what](bout, held)
            spent, reserved = account(bout.run)
            assert spent + reserved <= budget
        due_again()
    in_flight = Call.objects.filter(run=bout.run, state=CallState.RUNNING).values_list("reserved", flat=True)
    assert account(bout.run) == (recount(bout.run), sum(in_flight))


def test_a_budget_rests_on_the_longest_reply_of_the_model_where_the_judge_sets_no_limit() -> None:
    """Each request is bounded by 1,000 tokens out at ten nano-USD each, and nothing is claimed beyond the budget."""
    evaluation = make_evaluation()
    make_comparison(evaluation)
    judge = make_judge(evaluation, NOWHERE, mode="json_schema")
    priced(judge)
    Price.objects.update(most_tokens_out=1_000)
    one = worst_of_one(judge)
    assert one > 1_000 * 10
    bout = bout_on(judge, budget=2 * one - 1)
    assert len(claimed(bout)) == 1
    assert account(bout.run) == (0, one)


def test_a_run_stops_where_its_budget_rested_on_a_limit_that_the_model_does_not_take(judge: Judge) -> None:
    bout = bout_on(judge, budget=10**9)
    bout.judge.sent_as = SentAs(left_out=("max_tokens",)).as_json()
    assert claimed(bout) == []
    bout.run.refresh_from_db()
    assert (bout.run.state, bout.run.reserved) == (RunState.STOPPED, 0)
    assert "The budget cannot be guaranteed: “test-model” takes no limit of tokens" in bout.run.stop_reason
