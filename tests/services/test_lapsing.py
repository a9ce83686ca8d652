"""Leases that ran out, and runs that ended or wait with nobody at work."""

import pytest

from evaluations.domain import AttemptOutcome, AttemptStep, CallState, RunState
from evaluations.models import Attempt, Call, Judge, Run
from evaluations.services.judging import lapsing, running, storing
from tests.bouts import NOWHERE, answered, bout_on, claimed, due_again, evaluated, expire, rating_judge
from tests.judges import make_baseline, make_judge
from tests.making import make_comparison, make_evaluation

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def judge() -> Judge:
    evaluation = make_evaluation()
    for _ in range(3):
        make_comparison(evaluation)
    return make_judge(evaluation, NOWHERE)


def test_what_a_killed_worker_held_waits_again_and_each_request_is_counted_as_lost(judge: Judge) -> None:
    bout = bout_on(judge)
    held = claimed(bout, 4)
    storing.store(bout, [answered(bout, held[0])])
    assert lapsing.put_back_expired() == 0
    expire(*held)
    assert lapsing.put_back_expired() == 3
    lost = Attempt.objects.filter(run=bout.run, outcome=AttemptOutcome.LOST).values_list("call_id", "lease")
    assert set(lost) == {(one.call_id, one.lease) for one in held[1:]}
    assert len(claimed(bout)) == 3  # two that are fresh, and of the three one at a time


def test_of_a_killed_conversation_only_the_step_in_flight_is_lost() -> None:
    evaluation = make_evaluation()
    make_comparison(evaluation)
    bout = bout_on(rating_judge(evaluation))
    storing.store(bout, [evaluated(one) for one in claimed(bout, 1)])
    second = claimed(bout, 1)[0]
    expire(second)
    lapsing.put_back_expired()
    attempts = Attempt.objects.filter(call=second.call_id).order_by("number").values_list("step", "outcome")
    assert list(attempts) == [("ask", "answered"), ("score", "lost")]
    assert Call.objects.get(pk=second.call_id).step == AttemptStep.SCORE


def test_a_rule_has_no_requests_to_lose() -> None:
    evaluation = make_evaluation()
    make_comparison(evaluation)
    bout = bout_on(make_baseline(evaluation))
    expire(*claimed(bout))
    assert lapsing.put_back_expired() == 2
    assert not Attempt.objects.exists()


def test_a_call_that_takes_its_worker_down_twice_is_set_aside_with_the_reason(judge: Judge) -> None:
    bout = bout_on(judge)
    held = claimed(bout, 1)
    for _ in range(lapsing.LOST_AT_MOST):
        expire(*held)
        lapsing.put_back_expired()
        held = [one for one in claimed(bout) if one.call_id == held[0].call_id] or held
    call = Call.objects.get(pk=held[0].call_id)
    assert call.state == CallState.FAILED
    assert call.error.startswith("Set aside: the worker died 2 times while this call was in flight.")


def test_calls_that_were_in_flight_at_a_death_go_out_one_at_a_time_so_that_only_the_guilty_is_set_aside(
    judge: Judge,
) -> None:
    """Six calls, of which the third kills its worker whenever it is in flight."""
    bout = bout_on(judge)
    held = claimed(bout, 6)
    guilty = held[2].call_id
    expire(*held)
    lapsing.put_back_expired()
    for _ in range(20):
        due_again()
        together = claimed(bout)
        if guilty in {one.call_id for one in together}:
            assert len(together) == 1
            expire(*together)
            lapsing.put_back_expired()
        elif together:
            storing.store(bout, [answered(bout, one) for one in together])
    states = {call.pk: call.state for call in Call.objects.filter(run=bout.run)}
    assert {pk for pk, state in states.items() if state == CallState.FAILED} == {guilty}
    assert set(states.values()) == {CallState.FAILED, CallState.ANSWERED}


def test_fresh_calls_do_not_wait_for_one_that_is_tried_again(judge: Judge) -> None:
    bout = bout_on(judge)
    first = claimed(bout, 2)
    expire(*first)
    lapsing.put_back_expired()
    again = claimed(bout, 4)
    assert len({one.call_id for one in again} & {one.call_id for one in first}) == 1
    assert len(again) == 3


def test_an_ended_run_is_found_and_closed(judge: Judge) -> None:
    bout = bout_on(judge)
    lapsing.finish_ended_runs()
    assert Run.objects.get(pk=bout.run.pk).state == RunState.RUNNING
    storing.store(bout, [answered(bout, one) for one in claimed(bout)])
    lapsing.finish_ended_runs()
    assert Run.objects.get(pk=bout.run.pk).state == RunState.DONE


def test_runs_that_wait_are_nudged_and_those_at_work_are_left_alone(judge: Judge) -> None:
    planning = running.start_run(make_baseline(judge.evaluation), user=None)
    bout = bout_on(judge)
    assert lapsing.runs_to_nudge() == [planning.pk, bout.run.pk]
    held = claimed(bout, 1)
    assert lapsing.runs_to_nudge() == [planning.pk]
    expire(*held)
    assert lapsing.runs_to_nudge() == [planning.pk, bout.run.pk]
