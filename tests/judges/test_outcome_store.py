"""Storing: a paid answer is kept whoever holds the lease by then, and decides about its call once."""

import uuid
from dataclasses import replace
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evaluations.domain.choices import Choice
from evaluations.domain.judges import AttemptOutcome, AttemptStep, CallState, ReplyShape, RunState
from evaluations.judges.calls.lease_sweeper import return_expired_calls
from evaluations.judges.calls.outcome_store import store_outcomes
from evaluations.judges.calls.work_session import CallOutcome
from evaluations.judges.runs.planner import cancel_waiting_calls
from evaluations.judges.runs.selectors import count_calls_by_state
from evaluations.judges.runs.services import cancel_run, pause_run, resume_run
from evaluations.models.evaluations import Event
from evaluations.models.judges import Judge
from evaluations.models.runs import Attempt, Call, Run
from evaluations.models.verdicts import Score, Verdict
from evaluations.verdicts.changes import read_rater_states
from tests.factories.evaluations import make_comparison, make_evaluation
from tests.factories.judges import make_llm_judge
from tests.helpers.work_sessions import (
    ANSWERED_ATTEMPT,
    CLOSED_ADDRESS,
    answered_outcome,
    claim_session_calls,
    evaluated_outcome,
    expire_leases,
    make_rating_judge,
    start_run_session,
    waiting_outcome,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("consistent_packed_votes")]

ASPECTS = ("helpfulness", "factuality", "clarity", "depth", "engagement", "safety")


@pytest.fixture
def judge() -> Judge:
    evaluation = make_evaluation()
    for _ in range(3):
        make_comparison(evaluation)
    return make_llm_judge(evaluation, CLOSED_ADDRESS, mode="json_schema")


def test_an_answer_becomes_an_attempt_and_a_verdict_for_every_aspect(judge: Judge) -> None:
    session = start_run_session(judge)
    claimed = claim_session_calls(session, 1)[0]
    store_outcomes(session, [answered_outcome(session, claimed)])
    call = Call.objects.get(pk=claimed.call_id)
    assert (call.state, call.lease, call.rationale) == (CallState.ANSWERED, None, "Because.")
    assert (call.prompt_sha256, call.reuse_key) == (claimed.prompt_sha256, claimed.reuse_key)
    verdicts = Verdict.objects.filter(call=call).values_list("aspect__key", "choice", "stage", "shown", "rater__judge")
    assert set(verdicts) == {(key, "A", "first", call.shown, judge.pk) for key in ASPECTS}
    attempt = Attempt.objects.get(call=call)
    assert (attempt.number, attempt.step, attempt.lease) == (1, AttemptStep.ASK, claimed.lease)
    assert read_rater_states(judge.raters.all())[judge.raters.get().pk].changes


def test_an_attempt_holds_all_that_was_said(judge: Judge) -> None:
    session = start_run_session(judge)
    claimed = claim_session_calls(session, 1)[0]
    said: dict[str, Any] = {
        "raw": "“Tab\there”,\nnew line \\. and {braces} ✓",
        "finish_reason": "stop",
        "model_returned": "m-1",
        "tokens_in": 100,
        "tokens_out": 7,
        "tokens_cached": 64,
        "latency_ms": 12,
        "http_status": 200,
        "logprobs": [{"token": "A", "logprob": -0.1}],
        "error": "none",
    }
    store_outcomes(session, [answered_outcome(session, claimed, **said)])
    assert Attempt.objects.filter(call=claimed.call_id).values(*said).get() == said


def test_a_score_is_written_for_every_aspect_of_a_response() -> None:
    evaluation = make_evaluation()
    make_comparison(evaluation)
    judge = make_rating_judge(evaluation)
    session = start_run_session(judge)
    store_outcomes(session, [evaluated_outcome(one) for one in claim_session_calls(session)])
    claimed = claim_session_calls(session)
    outcomes = [
        replace(answered_outcome(session, one), scores={"overall": value}, weighted={"overall": value - 0.25})
        for one, value in zip(claimed, (4.0, 2.0), strict=True)
    ]
    store_outcomes(session, outcomes)
    scores = Score.objects.order_by("response_id").values_list("response", "aspect__key", "value", "weighted", "call")
    assert list(scores) == [
        (claimed[0].response_id, "overall", 4.0, 3.75, claimed[0].call_id),
        (claimed[1].response_id, "overall", 2.0, 1.75, claimed[1].call_id),
    ]
    assert not Verdict.objects.exists()
    assert read_rater_states(judge.raters.all())[judge.raters.get().pk].changes


def test_a_step_is_written_with_its_attempt_and_the_call_waits_for_the_next() -> None:
    evaluation = make_evaluation()
    make_comparison(evaluation)
    session = start_run_session(make_rating_judge(evaluation))
    first = claim_session_calls(session, 1)[0]
    store_outcomes(session, [evaluated_outcome(first)])
    call = Call.objects.get(pk=first.call_id)
    assert (call.state, call.step, call.lease) == (CallState.PENDING, AttemptStep.SCORE, None)
    second = claim_session_calls(session, 1)[0]
    store_outcomes(session, [waiting_outcome(second, 0)])
    assert Call.objects.get(pk=first.call_id).step == AttemptStep.SCORE
    third = claim_session_calls(session, 1)[0]
    store_outcomes(session, [replace(answered_outcome(session, third), repaired=True)])
    call.refresh_from_db()
    assert (call.state, call.step, call.repaired) == (CallState.ANSWERED, AttemptStep.SCORE, True)
    attempts = Attempt.objects.filter(call=call).order_by("number").values_list("number", "step", "outcome")
    assert list(attempts) == [(1, "ask", "answered"), (2, "score", "retry"), (3, "score", "answered")]


def test_probabilities_stand_beside_the_choices(judge: Judge) -> None:
    session = start_run_session(judge)
    claimed = claim_session_calls(session, 1)[0]
    store_outcomes(session, [replace(answered_outcome(session, claimed), weighted={"clarity": 0.75})])
    kept = dict(Verdict.objects.filter(call=claimed.call_id).values_list("aspect__key", "weighted"))
    assert kept == {key: 0.75 if key == "clarity" else None for key in ASPECTS}


# ---- leases ----------------------------------------------------------------------------------


def test_an_answer_whose_lease_another_worker_took_is_paid_for_but_decides_nothing(judge: Judge) -> None:
    session = start_run_session(judge)
    claimed = claim_session_calls(session, 1)[0]
    thief = uuid.uuid4()
    Call.objects.filter(pk=claimed.call_id).update(lease=thief)
    store_outcomes(session, [answered_outcome(session, claimed)])
    call = Call.objects.get(pk=claimed.call_id)
    assert (call.state, call.lease) == (CallState.RUNNING, thief)
    assert Attempt.objects.filter(call=call, outcome="answered").count() == 1
    assert not Verdict.objects.filter(call=call).exists()
    # The thief's own answer is numbered after it, and counts.
    store_outcomes(session, [answered_outcome(session, replace(claimed, lease=thief), Choice.B)])
    assert list(Attempt.objects.filter(call=call).order_by("number").values_list("number", flat=True)) == [1, 2]
    assert set(Verdict.objects.filter(call=call).values_list("choice", flat=True)) == {"B"}


def test_an_answer_that_comes_late_is_not_bought_again_while_nobody_else_asks(judge: Judge) -> None:
    session = start_run_session(judge)
    claimed = claim_session_calls(session, 1)[0]
    expire_leases(claimed)
    assert return_expired_calls() == 1
    store_outcomes(session, [answered_outcome(session, claimed)])
    assert Call.objects.get(pk=claimed.call_id).state == CallState.ANSWERED
    assert claimed.call_id not in {one.call_id for one in claim_session_calls(session)}


def test_an_answer_that_is_offered_twice_is_stored_once(judge: Judge) -> None:
    """The connection broke while the first commit ended, so that nobody knew whether it had."""
    session = start_run_session(judge)
    claimed = claim_session_calls(session, 1)[0]
    store_outcomes(session, [answered_outcome(session, claimed)])
    store_outcomes(session, [answered_outcome(session, claimed, Choice.B)])
    assert Attempt.objects.filter(call=claimed.call_id).count() == 1
    assert set(Verdict.objects.filter(call=claimed.call_id).values_list("choice", flat=True)) == {"A"}


def test_an_answer_for_a_run_that_was_cancelled_or_paused_meanwhile_is_stored(judge: Judge) -> None:
    session = start_run_session(judge)
    first, second, third = claim_session_calls(session, 3)
    pause_run(session.run, user=None)
    store_outcomes(session, [answered_outcome(session, first)])
    resume_run(session.run, user=None)
    cancel_run(session.run, user=None)
    store_outcomes(session, [answered_outcome(session, second), waiting_outcome(third, 1.0)])
    states = dict(Call.objects.filter(run=session.run).values_list("pk", "state"))
    assert [states[one.call_id] for one in (first, second, third)] == ["answered", "answered", "pending"]
    assert Attempt.objects.count() == 3
    cancel_waiting_calls()
    assert Call.objects.get(pk=third.call_id).state == CallState.CANCELLED


# ---- what may not be -------------------------------------------------------------------------


def test_a_fault_that_only_a_person_can_mend_stops_the_run_once(judge: Judge) -> None:
    session = start_run_session(judge)
    said = ANSWERED_ATTEMPT | {"outcome": AttemptOutcome.STOPPED}
    outcomes = [
        CallOutcome(one, CallState.PENDING, said, stop_reason="No key.") for one in claim_session_calls(session, 2)
    ]
    store_outcomes(session, outcomes)
    run = Run.objects.get(pk=session.run.pk)
    assert (run.state, run.stop_reason) == (RunState.STOPPED, "No key.")
    assert count_calls_by_state(run)["pending"] == 6
    assert Event.objects.filter(verb="stopped").count() == 1
    assert not claim_session_calls(session)


def test_a_choice_that_the_rubric_does_not_offer_is_never_written(judge: Judge) -> None:
    session = start_run_session(judge)
    claimed = claim_session_calls(session, 1)[0]
    with pytest.raises(ValueError, match="not offered"):
        store_outcomes(session, [answered_outcome(session, claimed, Choice.BOTH_BAD)])
    assert not Verdict.objects.exists()
    assert not Attempt.objects.exists()


def test_a_score_that_is_not_on_the_scale_is_never_written() -> None:
    evaluation = make_evaluation()
    make_comparison(evaluation)
    session = start_run_session(make_rating_judge(evaluation))
    claimed = claim_session_calls(session, 1)[0]
    for value in (0.0, 5.5, float("nan")):
        with pytest.raises(ValueError, match="not on the scale"):
            store_outcomes(session, [replace(answered_outcome(session, claimed), scores={"overall": value})])
    assert not Score.objects.exists()


def test_what_was_found_out_about_a_server_is_kept_with_the_judge_once() -> None:
    evaluation = make_evaluation()
    make_comparison(evaluation)
    judge = make_llm_judge(evaluation, CLOSED_ADDRESS)
    session = start_run_session(judge)
    first, second = claim_session_calls(session, 2)
    store_outcomes(session, [replace(answered_outcome(session, first), shape_found=ReplyShape.JSON_OBJECT)])
    store_outcomes(session, [replace(answered_outcome(session, second), shape_found=ReplyShape.TEXT)])
    judge.refresh_from_db()
    assert (judge.reply_shape, session.shape) == (ReplyShape.JSON_OBJECT, ReplyShape.JSON_OBJECT)
    assert Event.objects.filter(verb="found out").count() == 1
    assert len(Call.objects.get(pk=first.call_id).reuse_key) == 64


def test_however_many_answers_a_batch_has_the_statements_are_as_many(judge: Judge) -> None:
    session = start_run_session(judge)
    few, many = claim_session_calls(session, 1), claim_session_calls(session, 5)
    with CaptureQueriesContext(connection) as one:
        store_outcomes(session, [answered_outcome(session, claimed) for claimed in few])
    with CaptureQueriesContext(connection) as more:
        store_outcomes(session, [answered_outcome(session, claimed) for claimed in many])
    assert len(one) == len(more)
