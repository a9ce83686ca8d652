"""Leases that ran out, and runs that ended or wait with nobody at work."""

import pytest

from evaluations.domain.judges import AttemptOutcome, AttemptStep, CallState, RunState
from evaluations.judges.calls.lease_sweeper import (
    MAX_LOST_ATTEMPTS,
    find_idle_runs,
    finish_ended_runs,
    return_expired_calls,
)
from evaluations.judges.calls.outcome_store import store_outcomes
from evaluations.judges.runs.services import start_run
from evaluations.models.judges import Judge
from evaluations.models.runs import Attempt, Call, Run
from tests.factories.evaluations import make_comparison, make_evaluation
from tests.factories.judges import make_baseline_judge, make_llm_judge
from tests.helpers.work_sessions import (
    CLOSED_ADDRESS,
    answered_outcome,
    claim_session_calls,
    evaluated_outcome,
    expire_leases,
    make_calls_due,
    make_rating_judge,
    start_run_session,
)

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def judge() -> Judge:
    evaluation = make_evaluation()
    for _ in range(3):
        make_comparison(evaluation)
    return make_llm_judge(evaluation, CLOSED_ADDRESS)


def test_what_a_killed_worker_held_waits_again_and_each_request_is_counted_as_lost(judge: Judge) -> None:
    session = start_run_session(judge)
    claimed = claim_session_calls(session, 4)
    store_outcomes(session, [answered_outcome(session, claimed[0])])
    assert return_expired_calls() == 0
    expire_leases(*claimed)
    assert return_expired_calls() == 3
    lost = Attempt.objects.filter(run=session.run, outcome=AttemptOutcome.LOST).values_list("call_id", "lease")
    assert set(lost) == {(one.call_id, one.lease) for one in claimed[1:]}
    assert len(claim_session_calls(session)) == 3  # two that are fresh, and of the three one at a time


def test_of_a_killed_conversation_only_the_step_in_flight_is_lost() -> None:
    evaluation = make_evaluation()
    make_comparison(evaluation)
    session = start_run_session(make_rating_judge(evaluation))
    store_outcomes(session, [evaluated_outcome(one) for one in claim_session_calls(session, 1)])
    second = claim_session_calls(session, 1)[0]
    expire_leases(second)
    return_expired_calls()
    attempts = Attempt.objects.filter(call=second.call_id).order_by("number").values_list("step", "outcome")
    assert list(attempts) == [("ask", "answered"), ("score", "lost")]
    assert Call.objects.get(pk=second.call_id).step == AttemptStep.SCORE


def test_a_rule_has_no_requests_to_lose() -> None:
    evaluation = make_evaluation()
    make_comparison(evaluation)
    session = start_run_session(make_baseline_judge(evaluation))
    expire_leases(*claim_session_calls(session))
    assert return_expired_calls() == 2
    assert not Attempt.objects.exists()


def test_a_call_that_takes_its_worker_down_twice_is_set_aside_with_the_reason(judge: Judge) -> None:
    session = start_run_session(judge)
    claimed = claim_session_calls(session, 1)
    for _ in range(MAX_LOST_ATTEMPTS):
        expire_leases(*claimed)
        return_expired_calls()
        claimed = [one for one in claim_session_calls(session) if one.call_id == claimed[0].call_id] or claimed
    call = Call.objects.get(pk=claimed[0].call_id)
    assert call.state == CallState.FAILED
    assert call.error.startswith("Failed: the worker died 2 times while this call was in flight.")


def test_calls_that_were_in_flight_at_a_death_go_out_one_at_a_time_so_that_only_the_guilty_is_set_aside(
    judge: Judge,
) -> None:
    """Six calls, of which the third kills its worker whenever it is in flight."""
    session = start_run_session(judge)
    claimed = claim_session_calls(session, 6)
    guilty = claimed[2].call_id
    expire_leases(*claimed)
    return_expired_calls()
    for _ in range(20):
        make_calls_due()
        together = claim_session_calls(session)
        if guilty in {one.call_id for one in together}:
            assert len(together) == 1
            expire_leases(*together)
            return_expired_calls()
        elif together:
            store_outcomes(session, [answered_outcome(session, one) for one in together])
    states = {call.pk: call.state for call in Call.objects.filter(run=session.run)}
    assert {pk for pk, state in states.items() if state == CallState.FAILED} == {guilty}
    assert set(states.values()) == {CallState.FAILED, CallState.ANSWERED}


def test_fresh_calls_do_not_wait_for_one_that_is_tried_again(judge: Judge) -> None:
    session = start_run_session(judge)
    first = claim_session_calls(session, 2)
    expire_leases(*first)
    return_expired_calls()
    again = claim_session_calls(session, 4)
    assert len({one.call_id for one in again} & {one.call_id for one in first}) == 1
    assert len(again) == 3


def test_an_ended_run_is_found_and_closed(judge: Judge) -> None:
    session = start_run_session(judge)
    finish_ended_runs()
    assert Run.objects.get(pk=session.run.pk).state == RunState.RUNNING
    store_outcomes(session, [answered_outcome(session, one) for one in claim_session_calls(session)])
    finish_ended_runs()
    assert Run.objects.get(pk=session.run.pk).state == RunState.DONE


def test_runs_that_wait_are_nudged_and_those_at_work_are_left_alone(judge: Judge) -> None:
    planning = start_run(make_baseline_judge(judge.evaluation), user=None)
    session = start_run_session(judge)
    assert find_idle_runs() == [planning.pk, session.run.pk]
    claimed = claim_session_calls(session, 1)
    assert find_idle_runs() == [planning.pk]
    expire_leases(*claimed)
    assert find_idle_runs() == [planning.pk, session.run.pk]
