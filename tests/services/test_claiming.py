"""Claims: a call is one worker's at a time, and comes with all that is to be sent."""

import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection, connections, transaction
from django.db.models.functions import Now
from django.utils import timezone

from evaluations.domain import AttemptStep, CallState, PairTexts, ResponseTexts
from evaluations.judge.asking import Claimed
from evaluations.judge.prompting import later_messages, messages_for, prompt_sha256
from evaluations.judge.retrying import Patience
from evaluations.models import Attempt, Call, Endpoint, Judge, Run
from evaluations.services.judging import claiming, lapsing, running, storing, working
from evaluations.services.judging.working import Bout, Held, Outcome
from tests.bouts import (
    NOWHERE,
    SAID,
    answered,
    bout_on,
    claimed,
    due_again,
    evaluated,
    expire,
    rating_judge,
    to_wait,
    unreadable,
    work_on,
)
from tests.judges import make_judge
from tests.making import make_comparison, make_evaluation

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def judge() -> Judge:
    evaluation = make_evaluation()
    for _ in range(3):
        make_comparison(evaluation)
    return make_judge(evaluation, NOWHERE, mode="json_schema")


@pytest.fixture
def rating() -> Judge:
    evaluation = make_evaluation()
    make_comparison(evaluation)
    return rating_judge(evaluation, mode="json_schema")


# ---- which -----------------------------------------------------------------------------------


def test_no_call_is_claimed_twice(judge: Judge) -> None:
    bout = bout_on(judge)
    first, second = claimed(bout, 4), claimed(bout, 4)
    assert (len(first), len(second)) == (4, 2)
    assert len({one.call_id for one in first + second}) == 6
    assert claiming.claim(bout, 4).wait is None


def test_a_call_that_is_to_wait_is_not_claimed_before_its_time(judge: Judge) -> None:
    bout = bout_on(judge)
    held = claimed(bout)
    storing.store(bout, [to_wait(held[0], 3.0), *(answered(bout, one) for one in held[1:])])
    again = claiming.claim(bout, 4)
    assert not again.questions
    assert again.wait is not None
    assert 2 < again.wait <= 3
    due_again()
    (retried,) = claimed(bout)
    assert (retried.call_id, retried.tried) == (held[0].call_id, 1)


def test_a_long_wait_is_left_to_the_sweep(judge: Judge) -> None:
    bout = bout_on(judge)
    storing.store(bout, [to_wait(one, 60.0) for one in claimed(bout)])
    assert claiming.claim(bout, 4).wait is None
    assert lapsing.runs_to_nudge() == []
    Call.objects.update(not_before=Now())
    assert lapsing.runs_to_nudge() == [bout.run.pk]


def test_a_busy_server_is_left_alone_by_every_run_until_it_is_ready(judge: Judge) -> None:
    bout = bout_on(judge)
    storing.store(bout, [to_wait(claimed(bout, 1)[0], 2.0, busy=True)])
    assert not claiming.claim(bout, 4).questions
    assert lapsing.runs_to_nudge() == []
    Endpoint.objects.update(paused_until=Now())
    assert len(claimed(bout)) == 5


def test_a_run_that_is_paused_is_not_claimed_from_until_it_goes_on(judge: Judge) -> None:
    bout = bout_on(judge)
    running.pause(bout.run, user=None)
    assert claiming.claim(bout, 4) == Claimed()
    running.resume(bout.run, user=None)
    assert len(claimed(bout)) == 6


def test_two_that_claim_at_once_share_what_waits_and_neither_comes_back_empty(judge: Judge) -> None:
    """This worker's claim is not committed yet while the other one claims."""
    if connection.vendor != "postgresql":
        pytest.skip("SQLite lets one write at a time: nobody sees a claim half made")
    bout = bout_on(judge)
    with transaction.atomic():
        mine = {row.call_id for row in claiming.due(bout, 4, timezone.now())}
        with ThreadPoolExecutor(1) as elsewhere:
            theirs = {row.call_id for row in elsewhere.submit(due_elsewhere, bout).result()}
    assert (len(mine), len(theirs)) == (4, 2)
    assert not mine & theirs


def due_elsewhere(bout: Bout) -> list[claiming.Due]:
    try:
        with transaction.atomic():
            return claiming.due(bout, 4, timezone.now())
    finally:
        connections.close_all()


def test_many_that_claim_at_once_take_every_call_once() -> None:
    evaluation = make_evaluation()
    for _ in range(20):
        make_comparison(evaluation)
    bout = bout_on(make_judge(evaluation, NOWHERE, max_in_flight=1000))
    with ThreadPoolExecutor(4) as pool:
        taken = [pk for found in pool.map(claim_until_none_is_left, [bout.run] * 4) for pk in found]
    assert sorted(taken) == sorted(Call.objects.filter(run=bout.run).values_list("pk", flat=True))


def claim_until_none_is_left(run: Run) -> list[int]:
    taken: list[int] = []
    try:
        bout = work_on(run)
        while found := claimed(bout, 5):
            taken += [one.call_id for one in found]
    finally:
        connections.close_all()
    return taken


# ---- what is to be sent ----------------------------------------------------------------------


def test_a_claim_brings_the_messages_in_the_order_shown_and_their_sum(judge: Judge) -> None:
    bout = bout_on(judge)
    one, other = claimed(bout, 2)
    assert isinstance(one.texts, PairTexts)
    assert one.texts.response_a[0]["content"] == "Paris."
    for held in (one, other):
        assert isinstance(held.texts, PairTexts)
        messages = messages_for(bout.spec, held.texts, held.shown, judge.fence_key)
        assert held.messages == messages
        assert held.prompt_sha256 == prompt_sha256(messages, bout.schema(alone=False))
    assert one.messages != other.messages


def test_before_it_is_known_what_a_server_takes_a_prompt_has_no_sum() -> None:
    evaluation = make_evaluation()
    make_comparison(evaluation)
    (held, _) = claimed(bout_on(make_judge(evaluation, NOWHERE)))
    assert held.messages
    assert (held.prompt_sha256, held.reuse_key) == ("", "")


def test_a_response_comes_with_its_own_texts(rating: Judge) -> None:
    one, other = claimed(bout_on(rating))
    assert isinstance(one.texts, ResponseTexts)
    assert isinstance(other.texts, ResponseTexts)
    assert {one.texts.response[0]["content"], other.texts.response[0]["content"]} == {
        "Paris.",
        "The capital of France is Lyon.",
    }
    assert (one.comparison_id, one.step, one.before) == (None, AttemptStep.ASK, ())
    assert one.response_id != other.response_id


# ---- steps -----------------------------------------------------------------------------------


def test_the_second_step_carries_on_what_the_first_said(rating: Judge) -> None:
    bout = bout_on(rating)
    first = claimed(bout, 1)[0]
    storing.store(bout, [evaluated(first)])
    second = claimed(bout, 1)[0]
    assert (second.call_id, second.step, second.before) == (first.call_id, AttemptStep.SCORE, ("It is concise.",))
    assert second.messages == later_messages(bout.spec, first.messages, second.before, AttemptStep.SCORE)
    assert second.prompt_sha256 == prompt_sha256(second.messages, bout.schema(alone=True))
    assert second.reuse_key == first.reuse_key


def test_a_repair_says_what_was_wrong_with_the_reply_before_it(judge: Judge) -> None:
    bout = bout_on(judge)
    first = claimed(bout, 1)[0]
    storing.store(bout, [to_repair(first)])
    repair = claimed(bout, 1)[0]
    assert (repair.step, repair.before, repair.unread) == (AttemptStep.REPAIR, ("Hm.",), "There is no verdict.")
    assert repair.messages[-2] == {"role": "assistant", "content": "Hm."}
    assert "There is no verdict." in repair.messages[-1]["content"]


def test_the_repair_of_a_second_step_stands_after_both(rating: Judge) -> None:
    bout = bout_on(rating)
    storing.store(bout, [evaluated(claimed(bout, 1)[0])])
    storing.store(bout, [to_repair(claimed(bout, 1)[0])])
    repair = claimed(bout, 1)[0]
    assert (repair.step, repair.before) == (AttemptStep.REPAIR, ("It is concise.", "Hm."))


Interruption = Callable[[Bout, Held], Bout]


def to_repair(held: Held) -> Outcome:
    attempt = SAID | {"outcome": "unreadable", "raw": "Hm.", "error": "There is no verdict."}
    return Outcome(held, CallState.PENDING, attempt, next_step=AttemptStep.REPAIR)


def after_a_fault(bout: Bout, held: Held) -> Bout:
    storing.store(bout, [to_wait(held, 1.0)])
    due_again()
    return bout


def after_a_kill(bout: Bout, held: Held) -> Bout:
    expire(held)
    lapsing.put_back_expired()
    return bout


def after_a_pause(bout: Bout, held: Held) -> Bout:
    running.pause(bout.run, user=None)
    claiming.give_back([held])
    running.resume(bout.run, user=None)
    return bout


def after_a_cancelled_run(bout: Bout, held: Held) -> Bout:
    claiming.give_back([held])
    running.cancel(bout.run, user=None)
    running.cancel_waiting_calls()
    return bout_on(bout.judge)


def after_all_tries(bout: Bout, held: Held) -> Bout:
    storing.store(bout, [Outcome(held, CallState.FAILED, SAID | {"outcome": "failed"}, error="Asked 8 times.")])
    running.cancel(bout.run, user=None)
    running.cancel_waiting_calls()
    return bout_on(bout.judge)


def after_asking_failures_again(bout: Bout, held: Held) -> Bout:
    storing.store(bout, [unreadable(held)])
    running.cancel(bout.run, user=None)
    running.cancel_waiting_calls()
    return bout_on(bout.judge, ask_failures_again=True)


@pytest.mark.parametrize(
    "interrupted",
    [
        *(after_a_fault, after_a_kill, after_a_pause),
        *(after_a_cancelled_run, after_all_tries, after_asking_failures_again),
    ],
)
def test_a_first_step_is_bought_once_whatever_becomes_of_the_second(rating: Judge, interrupted: Interruption) -> None:
    bout = bout_on(rating)
    storing.store(bout, [evaluated(claimed(bout, 1)[0])])
    second = claimed(bout, 1)[0]
    bout = interrupted(bout, second)
    again = next(one for one in claimed(bout) if one.call_id == second.call_id)
    assert (again.step, again.before) == (AttemptStep.SCORE, ("It is concise.",))
    assert again.messages == second.messages
    assert Attempt.objects.filter(call=second.call_id, step=AttemptStep.ASK).count() == 1


def test_what_stayed_unreadable_is_asked_from_the_start_where_that_is_wanted(judge: Judge) -> None:
    bout = bout_on(judge)
    storing.store(bout, [to_repair(claimed(bout, 1)[0])])
    repair = claimed(bout, 1)[0]
    storing.store(bout, [unreadable(repair)])
    running.cancel(bout.run, user=None)
    again = next(one for one in claimed(bout_on(judge, ask_failures_again=True)) if one.call_id == repair.call_id)
    assert (again.step, again.before, len(again.messages)) == (AttemptStep.ASK, (), 2)


# ---- leases ----------------------------------------------------------------------------------


def test_workers_together_keep_to_the_limit_of_the_endpoint() -> None:
    evaluation = make_evaluation()
    for _ in range(5):
        make_comparison(evaluation)
    mine = bout_on(make_judge(evaluation, NOWHERE, max_in_flight=3))
    other = working.begin(mine.run.pk, Patience())
    assert other is not None
    assert len(claimed(mine, 2)) == 2
    assert len(claimed(other, 3)) == 1
    full = claiming.claim(other, 2)
    assert (full.questions, full.wait) == ((), 0.2)


def test_a_lease_that_is_refreshed_does_not_run_out(judge: Judge) -> None:
    bout = bout_on(judge)
    kept, left = claimed(bout, 2)
    expire(kept, left)
    claiming.refresh({kept.call_id: kept.lease})
    lapsing.put_back_expired()
    assert Call.objects.get(pk=kept.call_id).state == CallState.RUNNING
    assert Call.objects.get(pk=left.call_id).state == CallState.PENDING


def test_what_was_claimed_and_not_sent_waits_again_at_once_and_is_not_lost(judge: Judge) -> None:
    bout = bout_on(judge)
    held = claimed(bout, 3)
    stolen = uuid.uuid4()
    Call.objects.filter(pk=held[0].call_id).update(lease=stolen)
    claiming.give_back(held)
    states = dict(Call.objects.filter(pk__in=[one.call_id for one in held]).values_list("pk", "state"))
    assert [states[one.call_id] for one in held] == [CallState.RUNNING, CallState.PENDING, CallState.PENDING]
    assert not Attempt.objects.exists()
    assert len(claimed(bout)) == 5


def test_leases_last_by_the_clock_of_the_database(judge: Judge) -> None:
    held = claimed(bout_on(judge), 1)[0]
    soon, late = working.LEASE - timedelta(seconds=5), working.LEASE + timedelta(seconds=1)
    assert Call.objects.filter(pk=held.call_id, lease_until__gt=Now() + soon, lease_until__lt=Now() + late).exists()
