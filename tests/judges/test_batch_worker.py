"""Runs through the Batch API, with a server that answers a batch when the test says so."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from unittest import mock

import pytest
from django.db.models.functions import Now

from evaluations.domain.judges import (
    AttemptOutcome,
    AttemptStep,
    BatchState,
    CallState,
    RequestShape,
    RunChannel,
    RunState,
)
from evaluations.jobs.runner import work_for_a_while
from evaluations.jobs.sweeper import put_back_lost_jobs
from evaluations.judges.calls import batch_worker
from evaluations.judges.calls.lease_sweeper import return_expired_calls
from evaluations.judges.runs.planner import cancel_waiting_calls
from evaluations.judges.runs.selectors import count_calls_by_state
from evaluations.judges.runs.services import cancel_run, pause_run, resume_run, start_run
from evaluations.models.evaluations import Event
from evaluations.models.jobs import Job
from evaluations.models.judges import Endpoint, Judge, Price
from evaluations.models.runs import Attempt, Batch, Call, Run
from evaluations.models.verdicts import Verdict
from tests.factories.evaluations import make_comparison, make_evaluation
from tests.factories.judges import FAST_RETRIES, make_llm_judge, work_run_here
from tests.helpers.llm_server import (
    LLMServer,
    answer_broken,
    answer_first,
    answer_well,
    fail_with,
    llm_server,
    refuse_setting,
    without_formats,
)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("consistent_packed_votes")]
COMPARISONS = 5
CALLS = 2 * COMPARISONS


@pytest.fixture
def server() -> Iterator[LLMServer]:
    with llm_server() as asked:
        yield asked


@pytest.fixture
def judge(server: LLMServer) -> Judge:
    evaluation = make_evaluation()
    for number in range(COMPARISONS):
        make_comparison(evaluation, query=f"Question {number}?")
    judge = make_llm_judge(evaluation, server.base_url, mode="json_schema", max_tokens=100)
    judge.request_shape = RequestShape().as_json()  # as after its first verdict
    judge.save(update_fields=["request_shape"])
    return judge


def sent(judge: Judge, **options: Any) -> Run:
    return work_run_here(start_run(judge, user=None, channel=RunChannel.BATCH, **options))


def look() -> None:
    """As a worker does at the next look, whenever that is due."""
    Job.objects.update(not_before=None)
    put_back_lost_jobs("poll_batch")
    with mock.patch.object(batch_worker, "RetryPolicy", return_value=FAST_RETRIES):
        for job in Job.objects.due().filter(kind="poll_batch"):
            work_for_a_while(job.pk)


def worked_again(run: Run) -> Run:
    Call.objects.update(not_before=None)
    return work_run_here(run)


def states(run: Run) -> dict[str, int]:
    return {state: count for state, count in count_calls_by_state(run).items() if count}


def test_calls_go_out_as_one_file_and_their_answers_become_verdicts(server: LLMServer, judge: Judge) -> None:
    run = sent(judge)
    batch = Batch.objects.get()
    assert (batch.state, batch.calls_sent, states(run)) == (BatchState.SUBMITTED, CALLS, {"running": CALLS})
    look()
    assert states(run) == {"running": CALLS}
    server.batches.work()
    look()
    batch.refresh_from_db()
    run.refresh_from_db()
    assert (batch.state, batch.calls_answered, run.state) == (BatchState.DONE, CALLS, RunState.DONE)
    assert states(run) == {"answered": CALLS}
    assert Verdict.objects.count() == CALLS * 6
    assert set(server.asked.values()) == {1}
    assert set(Attempt.objects.values_list("batch", "outcome")) == {(batch.pk, AttemptOutcome.ANSWERED)}
    ended = Event.objects.get(verb="ended batch")
    assert (ended.after["sent"], ended.after["answered"]) == (CALLS, CALLS)


def test_one_call_goes_by_itself_before_the_first_file_so_that_no_file_is_refused_line_by_line(
    server: LLMServer, judge: Judge
) -> None:
    Judge.objects.update(request_shape=None)
    server.script = refuse_setting("max_tokens")
    run = sent(Judge.objects.get(pk=judge.pk))
    assert states(run) == {"answered": 1, "pending": CALLS - 1}
    assert not Batch.objects.exists()
    work_run_here(run)
    assert Batch.objects.get().calls_sent == CALLS - 1
    server.batches.work()
    look()
    assert states(run) == {"answered": CALLS}


def test_a_batch_costs_its_share_of_the_price_and_keeps_the_worst_of_it_back(server: LLMServer, judge: Judge) -> None:
    assert judge.endpoint is not None
    for_million = {"tokens_in": 4 * 10**6, "tokens_cached": 0, "tokens_out": 8 * 10**6}
    Price.objects.create(endpoint=judge.endpoint, model=judge.model, **for_million)
    run = sent(judge, budget=10**9)
    assert run.reserved == sum(Call.objects.values_list("reserved", flat=True)) > 0
    server.batches.work()
    look()
    run.refresh_from_db()
    attempts = Attempt.objects.all()
    assert all(one.cost == (4 * (one.tokens_in or 0) + 8 * (one.tokens_out or 0)) / 2 for one in attempts)
    assert (run.spent, run.reserved) == (sum(one.cost or 0 for one in attempts), 0)


def test_what_the_batch_did_not_get_to_goes_out_again_alone(server: LLMServer, judge: Judge) -> None:
    run = sent(judge)
    server.batches.answers = lambda line: "Question 0?" not in str(line["body"])
    server.batches.work(status="expired")
    look()
    assert states(run) == {"pending": 2, "answered": CALLS - 2}
    assert Attempt.objects.count() == CALLS - 2
    server.batches.answers = lambda line: True
    run = worked_again(run)
    server.batches.work()
    look()
    assert states(run) == {"answered": CALLS}
    assert list(Batch.objects.order_by("pk").values_list("calls_sent", flat=True)) == [CALLS, 2]
    assert set(server.asked.values()) == {1}


def test_faults_of_single_lines_are_asked_again_and_what_is_final_is_recorded(server: LLMServer, judge: Judge) -> None:
    too_long = fail_with(400, "maximum context length is 8 tokens", code="context_length_exceeded")
    server.script = lambda question: (
        too_long(question) if "Question 0?" in question.prompt else answer_first([fail_with(500)])(question)
    )
    run = sent(judge)
    server.batches.work()
    look()
    assert states(run) == {"pending": CALLS - 2, "too_long": 2}
    worked_again(run)
    server.batches.work()
    look()
    assert states(run) == {"answered": CALLS - 2, "too_long": 2}


def test_an_unreadable_answer_is_repaired_in_the_next_batch(server: LLMServer, judge: Judge) -> None:
    server.script = lambda question: (
        answer_broken(question)
        if "Question 0?" in question.prompt and len(question.body["messages"]) == 2
        else answer_well(question)
    )
    run = sent(judge)
    server.batches.work()
    look()
    waiting = Call.objects.filter(state=CallState.PENDING)
    assert {(call.step, call.batch) for call in waiting} == {(AttemptStep.REPAIR, None)}
    worked_again(run)
    server.batches.work()
    look()
    assert states(run) == {"answered": CALLS}
    assert Call.objects.filter(repaired=True).count() == 2


def test_a_refused_file_stops_the_run_and_buys_nothing(server: LLMServer, judge: Judge) -> None:
    run = sent(judge)
    server.batches.refuse("The file has no model.")
    look()
    run.refresh_from_db()
    assert (run.state, run.stop_reason) == (RunState.STOPPED, "The provider refused the batch: The file has no model.")
    assert (states(run), Attempt.objects.count()) == ({"pending": CALLS}, 0)
    assert Batch.objects.get().state == BatchState.FAILED


def test_a_server_without_the_batch_api_stops_the_run(judge: Judge) -> None:
    with llm_server() as other:
        other.batches.is_missing = True
        judge.endpoint.base_url = other.base_url  # type: ignore[union-attr]
        judge.endpoint.save()  # type: ignore[union-attr]
        run = sent(judge)
    assert run.state == RunState.STOPPED
    assert "has no Batch API" in run.stop_reason
    assert states(run) == {"pending": CALLS}


@pytest.mark.parametrize("extra", ["extra_headers", "extra_body"])
def test_a_variable_that_is_not_set_where_the_worker_runs_stops_the_run(judge: Judge, extra: str) -> None:
    Endpoint.objects.update(**{extra: {"project": "$UNSET_API_KEY"}})
    run = sent(Judge.objects.get(pk=judge.pk))
    assert run.state == RunState.STOPPED
    assert "UNSET_API_KEY" in run.stop_reason
    assert states(run) == {"pending": CALLS}
    assert Batch.objects.get().state == BatchState.FAILED


# ---- workers that are killed ---------------------------------------------------------------


def test_a_batch_sent_by_a_worker_killed_right_then_is_found_and_not_sent_twice(
    server: LLMServer, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as killed:
        killed.setattr(batch_worker, "mark_batch_submitted", interrupted)
        with pytest.raises(KeyboardInterrupt):
            sent(judge)
    assert (Batch.objects.get().state, return_expired_calls()) == (BatchState.SENDING, 0)
    leases_run_out()
    look()
    assert Batch.objects.get().state == BatchState.SUBMITTED
    server.batches.work()
    look()
    assert states(Run.objects.get()) == {"answered": CALLS}
    assert (len(server.batches.sent), set(server.asked.values())) == (1, {1})


def test_a_batch_that_never_left_is_given_up_and_its_calls_wait(
    server: LLMServer, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as killed:
        killed.setattr(batch_worker, "upload_batch", interrupted)
        with pytest.raises(KeyboardInterrupt):
            sent(judge)
    leases_run_out()
    look()
    run = Run.objects.get()
    assert (Batch.objects.get().state, states(run)) == (BatchState.FAILED, {"pending": CALLS})
    assert (run.state, run.reserved) == (RunState.RUNNING, 0)


def test_answers_stored_before_a_kill_are_not_stored_again(
    server: LLMServer, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_worker, "SHORT_TRANSACTION_ROWS", 4)
    run = sent(judge)
    server.batches.work()
    with monkeypatch.context() as killed:
        stored = batch_worker.store_batch_lines
        killed.setattr(
            batch_worker,
            "store_batch_lines",
            lambda *given: stored(*given) if not Verdict.objects.exists() else interrupted(),
        )
        with pytest.raises(KeyboardInterrupt):
            look()
    assert states(run) == {"running": CALLS - 4, "answered": 4}
    leases_run_out()
    look()
    assert states(run) == {"answered": CALLS}
    assert Attempt.objects.count() == CALLS
    assert Batch.objects.get().calls_answered == CALLS


def interrupted(*given: Any) -> Any:
    raise KeyboardInterrupt


def leases_run_out() -> None:
    Job.objects.filter(lease_until__isnull=False).update(lease_until=Now() - timedelta(seconds=1))


# ---- people who change their minds ---------------------------------------------------------


def test_cancelling_a_run_cancels_its_batch_and_keeps_what_was_answered(server: LLMServer, judge: Judge) -> None:
    run = sent(judge)
    assert not Job.objects.due().filter(kind="poll_batch").exists()
    cancel_run(run, user=None)
    assert Job.objects.due().get(kind="poll_batch").subject == Batch.objects.get().pk
    look()  # asks the server to cancel it
    look()
    cancel_waiting_calls()
    assert states(run) == {"cancelled": CALLS}
    assert server.batches.sent["batch-1"].status == "cancelled"


def test_a_paused_run_sends_no_batch_and_still_takes_the_answers_of_one(server: LLMServer, judge: Judge) -> None:
    run = sent(judge)
    pause_run(run, user=None)
    server.batches.work()
    look()
    assert states(run) == {"answered": CALLS}
    resume_run(run, user=None)
    assert worked_again(run).state == RunState.DONE


def test_what_a_server_takes_is_found_out_by_one_call_that_goes_by_itself(server: LLMServer) -> None:
    server.script = without_formats
    evaluation = make_evaluation()
    for number in range(COMPARISONS):
        make_comparison(evaluation, query=f"Question {number}?")
    judge = make_llm_judge(evaluation, server.base_url)
    run = worked_again(sent(judge))
    judge.refresh_from_db()
    assert judge.reply_shape == "text"
    assert (Call.objects.filter(state=CallState.ANSWERED).count(), Batch.objects.get().calls_sent) == (1, CALLS - 1)
    server.batches.work()
    look()
    assert states(run) == {"answered": CALLS}
