"""Claims: a call is one worker's at a time, and comes with all that is to be sent."""

import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection, connections, transaction
from django.db.backends.utils import CursorWrapper
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from evaluations.domain.judges import AttemptStep, CallState
from evaluations.domain.texts import PairTexts, ResponseTexts
from evaluations.judge_prompts.prompt_builder import build_later_messages, build_messages, hash_prompt
from evaluations.judges.calls.claims import (
    MIN_WAIT_SECONDS,
    claim_calls,
    refresh_leases,
    return_calls,
    room_at_endpoint,
    seconds_until_due,
)
from evaluations.judges.calls.lease_sweeper import find_idle_runs, return_expired_calls
from evaluations.judges.calls.outcome_store import store_outcomes
from evaluations.judges.calls.work_session import LEASE_TIME, CallOutcome, ClaimedCall, WorkSession, begin_work_session
from evaluations.judges.endpoints.outages import set_endpoint_aside
from evaluations.judges.endpoints.sql import GrantKey, SpendingTotals, add_to_totals, utc_date
from evaluations.judges.runs.budget import grant_key
from evaluations.judges.runs.planner import cancel_waiting_calls
from evaluations.judges.runs.services import cancel_run, pause_run, resume_run
from evaluations.judges.sql import DueCall, find_due_calls
from evaluations.llm.request_loop import ClaimResult
from evaluations.llm.retry_policy import RetryPolicy
from evaluations.models.endpoint_grants import EndpointSpending
from evaluations.models.judges import Endpoint, Judge
from evaluations.models.runs import Attempt, Call, Run
from tests.factories.evaluations import make_comparison, make_evaluation
from tests.factories.judges import make_llm_judge
from tests.helpers.work_sessions import (
    ANSWERED_ATTEMPT,
    CLOSED_ADDRESS,
    answered_outcome,
    claim_session_calls,
    evaluated_outcome,
    expire_leases,
    make_calls_due,
    make_rating_judge,
    start_run_session,
    start_work_session,
    unreadable_outcome,
    waiting_outcome,
)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def judge() -> Judge:
    evaluation = make_evaluation()
    for _ in range(3):
        make_comparison(evaluation)
    return make_llm_judge(evaluation, CLOSED_ADDRESS, mode="json_schema")


@pytest.fixture
def rating() -> Judge:
    evaluation = make_evaluation()
    make_comparison(evaluation)
    return make_rating_judge(evaluation, mode="json_schema")


# ---- which -----------------------------------------------------------------------------------


def test_no_call_is_claimed_twice(judge: Judge) -> None:
    session = start_run_session(judge)
    first, second = claim_session_calls(session, 4), claim_session_calls(session, 4)
    assert (len(first), len(second)) == (4, 2)
    assert len({one.call_id for one in first + second}) == 6
    assert claim_calls(session, 4).wait is None


def test_a_call_that_is_to_wait_is_not_claimed_before_its_time(judge: Judge) -> None:
    session = start_run_session(judge)
    claimed = claim_session_calls(session)
    store_outcomes(
        session, [waiting_outcome(claimed[0], 3.0), *(answered_outcome(session, one) for one in claimed[1:])]
    )
    again = claim_calls(session, 4)
    assert not again.calls
    assert again.wait is not None
    assert 2 < again.wait <= 3
    make_calls_due()
    (retried,) = claim_session_calls(session)
    assert (retried.call_id, retried.failed_requests) == (claimed[0].call_id, 1)


def test_a_call_that_is_due_is_not_kept_waiting_by_one_that_waits_longer(judge: Judge) -> None:
    session = start_run_session(judge)
    store_outcomes(session, [waiting_outcome(claim_session_calls(session, 1)[0], 60.0)])
    assert seconds_until_due(session, timezone.now()) == MIN_WAIT_SECONDS  # another worker has the others locked


def test_a_long_wait_is_left_to_the_sweep(judge: Judge) -> None:
    session = start_run_session(judge)
    store_outcomes(session, [waiting_outcome(one, 60.0) for one in claim_session_calls(session)])
    assert claim_calls(session, 4).wait is None
    assert find_idle_runs() == []
    Call.objects.update(not_before=Now())
    assert find_idle_runs() == [session.run.pk]


def test_a_busy_server_is_left_alone_by_every_run_until_it_is_ready(judge: Judge) -> None:
    session = start_run_session(judge)
    store_outcomes(session, [waiting_outcome(claim_session_calls(session, 1)[0], 2.0, busy=True)])
    assert not claim_calls(session, 4).calls
    assert find_idle_runs() == []
    Endpoint.objects.update(paused_until=Now())
    assert len(claim_session_calls(session)) == 5


def test_a_run_that_is_paused_is_not_claimed_from_until_it_goes_on(judge: Judge) -> None:
    session = start_run_session(judge)
    pause_run(session.run, user=None)
    assert claim_calls(session, 4) == ClaimResult()
    resume_run(session.run, user=None)
    assert len(claim_session_calls(session)) == 6


def test_what_waits_is_found_by_its_index_however_much_is_over(judge: Judge) -> None:
    """The primary key must not have the order of the statement: by it every call that is over would be read first.

    Other plans are priced out, because what is cheapest for a few calls depends on what other tests left in the tables.
    """
    if connection.vendor != "postgresql":
        pytest.skip("SQLite uses the index that begins with what is compared")
    session = start_run_session(judge)
    with transaction.atomic(), connection.cursor() as cursor:
        with CaptureQueriesContext(connection) as statements:
            assert len(find_due_calls(session.run, session.spec.kind, 4, timezone.now())) == 4
        explain = f"EXPLAIN {statements.captured_queries[-1]['sql']}"
        for kind_of_plan in ("seqscan", "bitmapscan", "sort"):
            cursor.execute(f"SET LOCAL enable_{kind_of_plan} = off")
        plan = explain_plan(cursor, explain)
        cursor.execute("DROP INDEX call_of_run")
        plan_without_index = explain_plan(cursor, explain)
        transaction.set_rollback(True)
    assert "Index Scan using call_of_run" in plan
    assert "Sort" not in plan
    assert "Sort" in plan_without_index


def explain_plan(cursor: CursorWrapper, explain: str) -> str:
    cursor.execute(explain)
    return "\n".join(line for (line,) in cursor.fetchall())


def test_two_that_claim_at_once_share_what_waits_and_neither_comes_back_empty(judge: Judge) -> None:
    """This worker's claim is not committed yet while the other one claims."""
    if connection.vendor != "postgresql":
        pytest.skip("SQLite lets one write at a time: nobody sees a claim half made")
    session = start_run_session(judge)
    with transaction.atomic():
        mine = {row.call_id for row in find_due_calls(session.run, session.spec.kind, 4, timezone.now())}
        with ThreadPoolExecutor(1) as elsewhere:
            theirs = {row.call_id for row in elsewhere.submit(due_elsewhere, session).result()}
    assert (len(mine), len(theirs)) == (4, 2)
    assert not mine & theirs


def due_elsewhere(session: WorkSession) -> list[DueCall]:
    try:
        with transaction.atomic():
            return find_due_calls(session.run, session.spec.kind, 4, timezone.now())
    finally:
        connections.close_all()


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite lets one write at a time")
@pytest.mark.parametrize(
    "hold",
    [
        lambda session: room_at_endpoint(session, 4, 0),
        lambda session: set_endpoint_aside(session.judge.endpoint, "It does not answer."),
    ],
    ids=["a claim", "an outage"],
)
def test_whoever_locks_an_endpoint_holds_up_no_booking(judge: Judge, hold: Callable[[WorkSession], object]) -> None:
    """The first booking of a day refers to the endpoint, and holds the run's row for which a claim waits."""
    Endpoint.objects.update(max_in_flight=8)
    session = start_run_session(judge)
    key = grant_key(session.run)
    assert key is not None
    with transaction.atomic():
        hold(session)
        with ThreadPoolExecutor(1) as elsewhere:
            elsewhere.submit(book_elsewhere, key).result()
    assert EndpointSpending.objects.get().requests == 1


def book_elsewhere(key: GrantKey) -> None:
    now, one = timezone.now(), SpendingTotals(requests=1)
    try:
        with transaction.atomic():
            connection.cursor().execute("SET LOCAL lock_timeout = '2s'")
            add_to_totals({(key, utc_date(now)): one}, now)
    finally:
        connections.close_all()


def test_many_that_claim_at_once_take_every_call_once() -> None:
    evaluation = make_evaluation()
    for _ in range(20):
        make_comparison(evaluation)
    session = start_run_session(make_llm_judge(evaluation, CLOSED_ADDRESS, max_in_flight=1000))
    with ThreadPoolExecutor(4) as pool:
        taken = [pk for found in pool.map(claim_until_none_is_left, [session.run] * 4) for pk in found]
    assert sorted(taken) == sorted(Call.objects.filter(run=session.run).values_list("pk", flat=True))


def claim_until_none_is_left(run: Run) -> list[int]:
    taken: list[int] = []
    try:
        session = start_work_session(run)
        while found := claim_session_calls(session, 5):
            taken += [one.call_id for one in found]
    finally:
        connections.close_all()
    return taken


# ---- what is to be sent ----------------------------------------------------------------------


def test_a_claim_brings_the_messages_in_the_order_shown_and_their_sum(judge: Judge) -> None:
    session = start_run_session(judge)
    one, other = claim_session_calls(session, 2)
    assert isinstance(one.texts, PairTexts)
    assert one.texts.response_a[0]["content"] == "Paris."
    for claimed in (one, other):
        assert isinstance(claimed.texts, PairTexts)
        messages = build_messages(session.spec, claimed.texts, claimed.shown, judge.fence_key)
        assert claimed.messages == messages
        assert claimed.prompt_sha256 == hash_prompt(messages, session.schema(alone=False, aspect=""))
    assert one.messages != other.messages


def test_before_it_is_known_what_a_server_takes_a_prompt_has_no_sum() -> None:
    evaluation = make_evaluation()
    make_comparison(evaluation)
    (claimed, _) = claim_session_calls(start_run_session(make_llm_judge(evaluation, CLOSED_ADDRESS)))
    assert claimed.messages
    assert (claimed.prompt_sha256, claimed.reuse_key) == ("", "")


def test_a_response_comes_with_its_own_texts(rating: Judge) -> None:
    one, other = claim_session_calls(start_run_session(rating))
    assert isinstance(one.texts, ResponseTexts)
    assert isinstance(other.texts, ResponseTexts)
    assert {one.texts.response[0]["content"], other.texts.response[0]["content"]} == {
        "Paris.",
        "The capital of France is Lyon.",
    }
    assert (one.comparison_id, one.step, one.earlier_replies) == (None, AttemptStep.ASK, ())
    assert one.response_id != other.response_id


# ---- steps -----------------------------------------------------------------------------------


def test_the_second_step_carries_on_what_the_first_said(rating: Judge) -> None:
    session = start_run_session(rating)
    first = claim_session_calls(session, 1)[0]
    store_outcomes(session, [evaluated_outcome(first)])
    second = claim_session_calls(session, 1)[0]
    assert (second.call_id, second.step, second.earlier_replies) == (
        first.call_id,
        AttemptStep.SCORE,
        ("It is concise.",),
    )
    assert second.messages == build_later_messages(
        session.spec, first.messages, second.earlier_replies, AttemptStep.SCORE
    )
    assert second.prompt_sha256 == hash_prompt(second.messages, session.schema(alone=True, aspect=""))
    assert second.reuse_key == first.reuse_key


def test_a_repair_says_what_was_wrong_with_the_reply_before_it(judge: Judge) -> None:
    session = start_run_session(judge)
    first = claim_session_calls(session, 1)[0]
    store_outcomes(session, [to_repair(first)])
    repair = claim_session_calls(session, 1)[0]
    assert (repair.step, repair.earlier_replies, repair.unread) == (
        AttemptStep.REPAIR,
        ("Hm.",),
        "There is no verdict.",
    )
    assert repair.messages[-2] == {"role": "assistant", "content": "Hm."}
    assert "There is no verdict." in repair.messages[-1]["content"]


def test_the_repair_of_a_second_step_stands_after_both(rating: Judge) -> None:
    session = start_run_session(rating)
    store_outcomes(session, [evaluated_outcome(claim_session_calls(session, 1)[0])])
    store_outcomes(session, [to_repair(claim_session_calls(session, 1)[0])])
    repair = claim_session_calls(session, 1)[0]
    assert (repair.step, repair.earlier_replies) == (AttemptStep.REPAIR, ("It is concise.", "Hm."))


Interruption = Callable[[WorkSession, ClaimedCall], WorkSession]


def to_repair(claimed: ClaimedCall) -> CallOutcome:
    attempt = ANSWERED_ATTEMPT | {"outcome": "unreadable", "raw": "Hm.", "error": "There is no verdict."}
    return CallOutcome(claimed, CallState.PENDING, attempt, next_step=AttemptStep.REPAIR)


def after_a_fault(session: WorkSession, claimed: ClaimedCall) -> WorkSession:
    store_outcomes(session, [waiting_outcome(claimed, 1.0)])
    make_calls_due()
    return session


def after_a_kill(session: WorkSession, claimed: ClaimedCall) -> WorkSession:
    expire_leases(claimed)
    return_expired_calls()
    return session


def after_a_pause(session: WorkSession, claimed: ClaimedCall) -> WorkSession:
    pause_run(session.run, user=None)
    return_calls([claimed])
    resume_run(session.run, user=None)
    return session


def after_a_cancelled_run(session: WorkSession, claimed: ClaimedCall) -> WorkSession:
    return_calls([claimed])
    cancel_run(session.run, user=None)
    cancel_waiting_calls()
    return start_run_session(session.judge)


def after_all_tries(session: WorkSession, claimed: ClaimedCall) -> WorkSession:
    store_outcomes(
        session,
        [CallOutcome(claimed, CallState.FAILED, ANSWERED_ATTEMPT | {"outcome": "failed"}, error="Asked 8 times.")],
    )
    cancel_run(session.run, user=None)
    cancel_waiting_calls()
    return start_run_session(session.judge)


def after_asking_failures_again(session: WorkSession, claimed: ClaimedCall) -> WorkSession:
    store_outcomes(session, [unreadable_outcome(claimed)])
    cancel_run(session.run, user=None)
    cancel_waiting_calls()
    return start_run_session(session.judge, ask_failures_again=True)


@pytest.mark.parametrize(
    "interrupted",
    [
        *(after_a_fault, after_a_kill, after_a_pause),
        *(after_a_cancelled_run, after_all_tries, after_asking_failures_again),
    ],
)
def test_a_first_step_is_bought_once_whatever_becomes_of_the_second(rating: Judge, interrupted: Interruption) -> None:
    session = start_run_session(rating)
    store_outcomes(session, [evaluated_outcome(claim_session_calls(session, 1)[0])])
    second = claim_session_calls(session, 1)[0]
    session = interrupted(session, second)
    again = next(one for one in claim_session_calls(session) if one.call_id == second.call_id)
    assert (again.step, again.earlier_replies) == (AttemptStep.SCORE, ("It is concise.",))
    assert again.messages == second.messages
    assert Attempt.objects.filter(call=second.call_id, step=AttemptStep.ASK).count() == 1


def test_what_stayed_unreadable_is_asked_from_the_start_where_that_is_wanted(judge: Judge) -> None:
    session = start_run_session(judge)
    store_outcomes(session, [to_repair(claim_session_calls(session, 1)[0])])
    repair = claim_session_calls(session, 1)[0]
    store_outcomes(session, [unreadable_outcome(repair)])
    cancel_run(session.run, user=None)
    again = next(
        one
        for one in claim_session_calls(start_run_session(judge, ask_failures_again=True))
        if one.call_id == repair.call_id
    )
    assert (again.step, again.earlier_replies, len(again.messages)) == (AttemptStep.ASK, (), 2)


# ---- leases ----------------------------------------------------------------------------------


def test_workers_together_keep_to_the_limit_of_the_endpoint() -> None:
    evaluation = make_evaluation()
    for _ in range(5):
        make_comparison(evaluation)
    mine = start_run_session(make_llm_judge(evaluation, CLOSED_ADDRESS, max_in_flight=3))
    other = begin_work_session(mine.run.pk, RetryPolicy())
    assert other is not None
    assert len(claim_session_calls(mine, 2)) == 2
    assert len(claim_session_calls(other, 3)) == 1
    full = claim_calls(other, 2)
    assert (full.calls, full.wait) == ((), 0.2)


def test_a_lease_that_is_refreshed_does_not_run_out(judge: Judge) -> None:
    session = start_run_session(judge)
    kept, left = claim_session_calls(session, 2)
    expire_leases(kept, left)
    refresh_leases({kept.call_id: kept.lease})
    return_expired_calls()
    assert Call.objects.get(pk=kept.call_id).state == CallState.RUNNING
    assert Call.objects.get(pk=left.call_id).state == CallState.PENDING


def test_what_was_claimed_and_not_sent_waits_again_at_once_and_is_not_lost(judge: Judge) -> None:
    session = start_run_session(judge)
    claimed = claim_session_calls(session, 3)
    stolen = uuid.uuid4()
    Call.objects.filter(pk=claimed[0].call_id).update(lease=stolen)
    return_calls(claimed)
    states = dict(Call.objects.filter(pk__in=[one.call_id for one in claimed]).values_list("pk", "state"))
    assert [states[one.call_id] for one in claimed] == [CallState.RUNNING, CallState.PENDING, CallState.PENDING]
    assert not Attempt.objects.exists()
    assert len(claim_session_calls(session)) == 5


def test_leases_last_by_the_clock_of_the_database(judge: Judge) -> None:
    claimed = claim_session_calls(start_run_session(judge), 1)[0]
    soon, late = LEASE_TIME - timedelta(seconds=5), LEASE_TIME + timedelta(seconds=1)
    assert Call.objects.filter(pk=claimed.call_id, lease_until__gt=Now() + soon, lease_until__lt=Now() + late).exists()
