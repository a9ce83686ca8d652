"""Leases: a call is one worker's at a time, and a paid answer is kept whoever holds the lease by then."""

import uuid
from datetime import timedelta

import pytest
from django.db.models.functions import Now

from evaluations.domain import AttemptOutcome, CallState, Choice, PairTexts, RunState
from evaluations.judge.retrying import Patience
from evaluations.models import Attempt, Call, Endpoint, Event, Judge, Run, Verdict
from evaluations.services.judging import claiming, lapsing, running, storing, working
from evaluations.services.judging.working import Bout, Held, Outcome
from tests.judges import make_baseline, make_judge
from tests.making import make_comparison, make_evaluation

pytestmark = pytest.mark.django_db(transaction=True)

ASPECTS = ("helpfulness", "factuality", "clarity", "depth", "engagement", "safety")
SAID = {"outcome": AttemptOutcome.ANSWERED, "latency_ms": 5, "raw": "{}"}


@pytest.fixture
def judge() -> Judge:
    evaluation = make_evaluation()
    for _ in range(3):
        make_comparison(evaluation)
    return make_judge(evaluation, "http://127.0.0.1:9/v1")


def bout_on(judge: Judge) -> Bout:
    run = running.start_run(judge, user=None)
    running.plan(run.pk, until=float("inf"))
    bout = working.begin(run.pk, Patience())
    assert bout is not None
    return bout


def answered(held: Held, choice: Choice = Choice.A) -> Outcome:
    return Outcome(held, CallState.ANSWERED, SAID, choices=dict.fromkeys(ASPECTS, choice), rationale="Because.")


def to_wait(held: Held, seconds: float, *, busy: bool = False) -> Outcome:
    attempt = SAID | {"outcome": AttemptOutcome.RETRY}
    return Outcome(held, CallState.PENDING, attempt, error="later", wait_seconds=seconds, busy=busy)


def claimed(bout: Bout, room: int = 64, held: int = 0) -> list[Held]:
    return list(claiming.claim(bout, room, held).questions)


def expire(*held: Held) -> None:
    ids = [one.call_id for one in held]
    Call.objects.filter(pk__in=ids).update(lease_until=Now() - timedelta(seconds=1))


def test_no_call_is_claimed_twice(judge: Judge) -> None:
    bout = bout_on(judge)
    first, second = claimed(bout, 4), claimed(bout, 4, held=4)
    assert (len(first), len(second)) == (4, 2)
    assert len({one.call_id for one in first + second}) == 6
    assert claiming.claim(bout, 4, 6).wait is None
    assert isinstance(first[0].texts, PairTexts)
    assert first[0].texts.response_a[0]["content"] == "Paris."


def test_an_answer_becomes_an_attempt_and_a_verdict_for_every_aspect(judge: Judge) -> None:
    bout = bout_on(judge)
    held = claimed(bout, 1)[0]
    storing.store(bout, [answered(held)])
    call = Call.objects.get(pk=held.call_id)
    assert (call.state, call.lease, call.rationale) == (CallState.ANSWERED, None, "Because.")
    verdicts = Verdict.objects.filter(call=call).values_list("aspect__key", "choice", "stage", "shown", "rater__judge")
    assert set(verdicts) == {(key, "A", "first", call.shown, judge.pk) for key in ASPECTS}
    assert Attempt.objects.get(call=call).number == 1
    assert judge.raters.get().verdicts_changed_at is not None


def test_an_answer_whose_lease_another_worker_took_is_paid_for_but_decides_nothing(judge: Judge) -> None:
    bout = bout_on(judge)
    held = claimed(bout, 1)[0]
    thief = uuid.uuid4()
    Call.objects.filter(pk=held.call_id).update(lease=thief)
    storing.store(bout, [answered(held)])
    call = Call.objects.get(pk=held.call_id)
    assert (call.state, call.lease) == (CallState.RUNNING, thief)
    assert Attempt.objects.filter(call=call, outcome="answered").count() == 1
    assert not Verdict.objects.filter(call=call).exists()
    # The thief's own answer is numbered after it, and counts.
    other = Held(held.call_id, held.comparison_id, thief, held.shown, 0, held.texts)
    storing.store(bout, [answered(other, Choice.B)])
    assert list(Attempt.objects.filter(call=call).order_by("number").values_list("number", flat=True)) == [1, 2]
    assert set(Verdict.objects.filter(call=call).values_list("choice", flat=True)) == {"B"}


def test_an_answer_that_comes_late_is_not_bought_again_while_nobody_else_asks(judge: Judge) -> None:
    bout = bout_on(judge)
    held = claimed(bout, 1)[0]
    expire(held)
    assert lapsing.put_back_expired() == 1
    storing.store(bout, [answered(held)])
    assert Call.objects.get(pk=held.call_id).state == CallState.ANSWERED
    assert held.call_id not in {one.call_id for one in claimed(bout)}


def test_an_answer_that_is_offered_twice_is_stored_once(judge: Judge) -> None:
    """The connection broke while the first commit ended, so that nobody knew whether it had."""
    bout = bout_on(judge)
    held = claimed(bout, 1)[0]
    storing.store(bout, [answered(held)])
    storing.store(bout, [answered(held, Choice.B)])
    assert Attempt.objects.filter(call=held.call_id).count() == 1
    assert set(Verdict.objects.filter(call=held.call_id).values_list("choice", flat=True)) == {"A"}


def test_what_a_killed_worker_held_waits_again_and_each_request_is_counted_as_lost(judge: Judge) -> None:
    bout = bout_on(judge)
    held = claimed(bout, 4)
    storing.store(bout, [answered(held[0])])
    assert lapsing.put_back_expired() == 0
    expire(*held)
    assert lapsing.put_back_expired() == 3
    lost = Attempt.objects.filter(run=bout.run, outcome=AttemptOutcome.LOST).values_list("call_id", flat=True)
    assert set(lost) == {one.call_id for one in held[1:]}
    assert len(claimed(bout)) == 5


def test_a_rule_has_no_requests_to_lose() -> None:
    evaluation = make_evaluation()
    make_comparison(evaluation)
    bout = bout_on(make_baseline(evaluation))
    expire(*claimed(bout))
    assert lapsing.put_back_expired() == 2
    assert not Attempt.objects.exists()


def test_a_call_that_takes_its_worker_down_every_time_is_given_up(judge: Judge) -> None:
    bout = bout_on(judge)
    held = claimed(bout, 1)
    for _ in range(lapsing.LOST_AT_MOST):
        expire(*held)
        lapsing.put_back_expired()
        held = [one for one in claimed(bout) if one.call_id == held[0].call_id] or held
    call = Call.objects.get(pk=held[0].call_id)
    assert (call.state, call.error) == (CallState.FAILED, "The worker died 8 times while this was asked.")


def test_a_lease_that_is_refreshed_does_not_run_out(judge: Judge) -> None:
    bout = bout_on(judge)
    kept, left = claimed(bout, 2)
    expire(kept, left)
    claiming.refresh({kept.call_id: kept.lease})
    lapsing.put_back_expired()
    assert Call.objects.get(pk=kept.call_id).state == CallState.RUNNING
    assert Call.objects.get(pk=left.call_id).state == CallState.PENDING


def test_a_call_that_is_to_wait_is_not_claimed_before_its_time(judge: Judge) -> None:
    bout = bout_on(judge)
    held = claimed(bout)
    storing.store(bout, [to_wait(held[0], 3.0), *(answered(one) for one in held[1:])])
    again = claiming.claim(bout, 4, 0)
    assert not again.questions
    assert again.wait is not None
    assert 2 < again.wait <= 3
    Call.objects.filter(pk=held[0].call_id).update(not_before=Now() - timedelta(seconds=1))
    (retried,) = claimed(bout)
    assert (retried.call_id, retried.tried) == (held[0].call_id, 1)


def test_a_long_wait_is_left_to_the_sweep(judge: Judge) -> None:
    bout = bout_on(judge)
    held = claimed(bout)
    storing.store(bout, [to_wait(one, 60.0) for one in held])
    assert claiming.claim(bout, 4, 0).wait is None
    assert lapsing.runs_to_nudge() == []
    Call.objects.update(not_before=Now())
    assert lapsing.runs_to_nudge() == [bout.run.pk]


def test_a_busy_server_is_left_alone_by_every_run_until_it_is_ready(judge: Judge) -> None:
    bout = bout_on(judge)
    held = claimed(bout, 1)
    storing.store(bout, [to_wait(held[0], 2.0, busy=True)])
    assert not claiming.claim(bout, 4, 0).questions
    assert lapsing.runs_to_nudge() == []
    Endpoint.objects.update(paused_until=Now())
    assert len(claimed(bout)) == 5


def test_workers_together_keep_to_the_limit_of_the_endpoint() -> None:
    evaluation = make_evaluation()
    for _ in range(5):
        make_comparison(evaluation)
    judge = make_judge(evaluation, "http://127.0.0.1:9/v1", max_in_flight=3)
    mine = bout_on(judge)
    other = working.begin(mine.run.pk, Patience())
    assert other is not None
    assert mine.in_flight == 3
    assert len(claimed(mine, 2)) == 2
    assert len(claimed(other, 3)) == 1
    full = claiming.claim(other, 2, 1)
    assert (full.questions, full.wait) == ((), 0.2)


def test_a_fault_that_only_a_person_can_mend_stops_the_run_once(judge: Judge) -> None:
    bout = bout_on(judge)
    held = claimed(bout, 2)
    said = SAID | {"outcome": AttemptOutcome.STOPPED}
    storing.store(bout, [Outcome(one, CallState.PENDING, said, stop_reason="No key.") for one in held])
    run = Run.objects.get(pk=bout.run.pk)
    assert (run.state, run.stop_reason) == (RunState.STOPPED, "No key.")
    assert running.counts_by_state(run)["pending"] == 6
    assert Event.objects.filter(verb="stopped").count() == 1
    assert not claimed(bout)


def test_a_choice_that_the_rubric_does_not_offer_is_never_written(judge: Judge) -> None:
    bout = bout_on(judge)
    held = claimed(bout, 1)[0]
    with pytest.raises(ValueError, match="not offered"):
        storing.store(bout, [answered(held, Choice.BOTH_BAD)])
    assert not Verdict.objects.exists()


def test_an_ended_run_is_found_and_closed(judge: Judge) -> None:
    bout = bout_on(judge)
    lapsing.finish_ended_runs()
    assert Run.objects.get(pk=bout.run.pk).state == RunState.RUNNING
    storing.store(bout, [answered(one) for one in claimed(bout)])
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
