"""The worker of runs through the Batch API.

A batch is marked before it is sent, so that the successor of a killed worker finds it by its mark.
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from evaluations.audit.events import record_event
from evaluations.domain.judges import OPEN_BATCH_STATES, BatchState, CallState, RunState
from evaluations.domain.scratch_folders import open_scratch_folder
from evaluations.jobs.claims import end_claim, find_own_claim, release_claim
from evaluations.jobs.kinds import JobClaim
from evaluations.jobs.queue import delete_jobs, start_claimed_job
from evaluations.judges.calls.batch_jobs import POLL_BATCH
from evaluations.judges.calls.claims import claim_batch_calls, load_batch_calls, release_calls
from evaluations.judges.calls.outcome_store import store_outcomes
from evaluations.judges.calls.verdict_requests import (
    CallRequester,
    outcome_from_answer,
    outcome_from_error,
    session_server,
)
from evaluations.judges.calls.work_session import CallOutcome, ClaimedCall, WorkSession, make_work_session
from evaluations.judges.endpoints.grants import NOT_GRANTED, is_granted
from evaluations.judges.runs.transitions import finish_run, stop_run
from evaluations.llm.batch_client import (
    BatchLine,
    BatchServer,
    RemoteBatch,
    build_batch_line,
    connect_batches,
    parse_line_answer,
)
from evaluations.llm.exchange import LLMError, StopRun
from evaluations.llm.retry_policy import RetryPolicy
from evaluations.models.runs import Batch, Call, Run
from evaluations.models.transactions import SHORT_TRANSACTION_ROWS, is_time_up, pause_after_transaction

logger = logging.getLogger(__name__)

# Servers take 50,000 requests and 200 MB; smaller batches return sooner, and lose less if one expires.
MAX_BATCH_CALLS: Final = 10_000
MAX_BATCH_BYTES: Final = 90_000_000
CALL_ID_PREFIX: Final = "call-"


def send_run_batches(session: WorkSession, *, until: float, hand_over: Callable[[], None]) -> None:
    """Send pending calls in as many batches as needed; ``hand_over`` is called if time runs out first."""
    while not is_time_up(until):
        if not send_next_batch(session):
            return
    hand_over()


def send_next_batch(session: WorkSession) -> bool:
    """Send one batch; False if no call was pending or the upload failed."""
    batch = create_batch(session.run)
    with open_scratch_folder(settings.SCRATCH_DIR, "batch-") as folder:
        file = folder / f"{batch_mark(batch)}.jsonl"
        try:
            with file.open("wb") as out:
                batch.calls_sent = sum(len(claimed) for claimed in fill_batch(session, batch, out.write))
        except StopRun as error:  # a variable of the endpoint is not set, or not one that the judge may name
            fail_batch(batch, str(error))
            return False
        if not batch.calls_sent:
            delete_jobs(POLL_BATCH, [batch.pk])
            batch.delete()
            return False
        return upload_batch(session, batch, file)


@transaction.atomic
def create_batch(run: Run) -> Batch:
    batch = Batch.objects.create(run=run)
    start_claimed_job(POLL_BATCH, batch.pk, evaluation=run.evaluation)
    batch.refresh_from_db()
    return batch


def batch_mark(batch: Batch) -> str:
    return f"judgeweb-{batch.pk}-{batch.created_at:%Y%m%d%H%M%S%f}"


def fill_batch(session: WorkSession, batch: Batch, write: Callable[[bytes], int]) -> Iterator[Sequence[ClaimedCall]]:
    """Write pending calls to the batch, a few per transaction, until it is full or none is left."""
    requester, server = CallRequester(session), session_server(session)
    calls = size = 0
    while calls < MAX_BATCH_CALLS and size < MAX_BATCH_BYTES:
        with pause_after_transaction():
            claimed = claim_batch_calls(batch, session, SHORT_TRANSACTION_ROWS)
        if not claimed.calls and claimed.wait != 0:
            return
        size += sum(
            write(build_batch_line(f"{CALL_ID_PREFIX}{call.call_id}", requester.build_request(call), server))
            for call in claimed.calls
        )
        calls += len(claimed.calls)
        yield claimed.calls


def upload_batch(session: WorkSession, batch: Batch, file: Path) -> bool:
    if not is_granted(batch.run.judge.endpoint, batch.run.evaluation):  # withdrawn while the file was written
        fail_batch(batch, NOT_GRANTED)
        return False
    try:
        with connect_batches(session_server(session)) as server:
            mark_batch_submitted(batch, server.send(file, batch_mark(batch)))
        postpone_batch(batch)
    except StopRun as error:
        fail_batch(batch, str(error))
        return False
    except LLMError as error:
        # It may have arrived anyway: once the lease has expired, it is looked up.
        logger.warning("run %s: batch %s may not have been sent: %s", session.run.pk, batch.pk, error)
        Batch.objects.filter(pk=batch.pk).update(error=str(error))
        return False
    return True


def mark_batch_submitted(batch: Batch, remote: RemoteBatch) -> None:
    Batch.objects.filter(pk=batch.pk).update(
        state=BatchState.SUBMITTED,
        remote_id=remote.id,
        remote_state=remote.state,
        calls_sent=batch.calls_sent or batch.calls.count(),
        error="",
    )


def poll_batch(claim: JobClaim) -> bool:
    """Check the state of a batch, and store its answers once it has ended."""
    batch = Batch.objects.select_related("run").get(pk=claim.job.subject)
    if batch.state not in OPEN_BATCH_STATES:
        return True
    session = make_work_session(batch.run, RetryPolicy())
    error = ""
    try:
        with connect_batches(session_server(session)) as server:
            check_batch(session, batch, server, claim)
    except StopRun as stopped:
        stop_run(session.run, str(stopped))
        error = str(stopped)
    except LLMError as failed:
        error = str(failed)
    if not Batch.objects.filter(pk=batch.pk, state__in=OPEN_BATCH_STATES).update(error=error):
        return True
    claim.pause = timedelta(seconds=settings.BATCH_POLL_SECONDS)
    return False


def postpone_batch(batch: Batch) -> None:
    """Poll a batch that this process sent again after a while."""
    if claim := find_own_claim(POLL_BATCH, batch.pk):
        release_claim(claim, pause=timedelta(seconds=settings.BATCH_POLL_SECONDS))


def check_batch(session: WorkSession, batch: Batch, server: BatchServer, claim: JobClaim) -> None:
    if batch.state == BatchState.SENDING:
        recover_batch(batch, server)
        return
    remote = server.retrieve(batch.remote_id)
    if not remote.has_ended and session.run.state == RunState.CANCELLED:
        remote = server.cancel(batch.remote_id)
    Batch.objects.filter(pk=batch.pk).update(remote_state=remote.state, calls_answered=remote.answered)
    if remote.has_ended:
        collect_batch(session, batch, remote, server, claim)


def recover_batch(batch: Batch, server: BatchServer) -> None:
    """Recover a batch whose worker was killed while sending: the server has it, or nothing was bought."""
    if remote := server.find(batch_mark(batch)):
        mark_batch_submitted(batch, remote)
    else:
        return_batch_calls(batch)
        end_batch(batch, BatchState.FAILED, batch.error or "The worker was killed before it was sent.")


def collect_batch(
    session: WorkSession, batch: Batch, remote: RemoteBatch, server: BatchServer, claim: JobClaim
) -> None:
    """Store every answer; calls that the batch left unanswered become pending again, at no cost."""
    Batch.objects.filter(pk=batch.pk).update(
        state=BatchState.COLLECTING, output_file=remote.output_file, error_file=remote.error_file
    )
    for file_id in filter(None, (remote.output_file, remote.error_file)):
        lines = server.lines(file_id)
        while next_lines := list(islice(lines, SHORT_TRANSACTION_ROWS)):
            store_batch_lines(session, batch, next_lines, server, claim)
    return_batch_calls(batch)
    answered = batch.attempts.count()
    Batch.objects.filter(pk=batch.pk).update(calls_answered=answered)
    end_batch(batch, BatchState.DONE if answered else BatchState.FAILED, remote.error)
    if not answered and session.run.state == RunState.RUNNING:
        stop_run(session.run, unanswered_reason(remote))
    finish_run(session.run)


def unanswered_reason(remote: RemoteBatch) -> str:
    if remote.error:
        return f"The provider refused the batch: {remote.error}"
    return f"The provider answered none of the batch ({remote.state}). Resume later, or use the live channel."


def store_batch_lines(
    session: WorkSession, batch: Batch, lines: Iterable[BatchLine], server: BatchServer, claim: JobClaim
) -> None:
    """Store the answers whose calls still wait for this batch."""
    by_call = {number: line for line in lines if line.status and (number := line_call_id(line))}
    with pause_after_transaction(), transaction.atomic():
        claim.heartbeat()
        calls = load_batch_calls(batch, session, list(by_call))
        outcomes = [line_outcome(CallRequester(session), batch, call, by_call[call.call_id], server) for call in calls]
        if outcomes:
            store_outcomes(session, outcomes)


def line_call_id(line: BatchLine) -> int | None:
    number = line.custom_id.removeprefix(CALL_ID_PREFIX)
    return int(number) if number.isdecimal() and number.isascii() and len(number) < 19 else None


def line_outcome(
    requester: CallRequester, batch: Batch, call: ClaimedCall, line: BatchLine, server: BatchServer
) -> CallOutcome:
    request = requester.build_request(call)
    latency_ms = round((timezone.now() - batch.created_at).total_seconds() * 1000)
    try:
        answer = parse_line_answer(line, server.server, request, server.key)
    except LLMError as error:
        outcome = outcome_from_error(requester, call, error, latency_ms)
    else:
        outcome = outcome_from_answer(requester, call, request, answer, latency_ms)
    return replace(outcome, attempt={**(outcome.attempt or {}), "batch_id": batch.pk})


def return_batch_calls(batch: Batch) -> None:
    waiting = Call.all_rows.filter(batch=batch, state=CallState.RUNNING)
    while ids := list(waiting.values_list("pk", flat=True)[:SHORT_TRANSACTION_ROWS]):
        with pause_after_transaction(), transaction.atomic():
            release_calls(waiting.filter(pk__in=ids))


@transaction.atomic
def fail_batch(batch: Batch, reason: str) -> None:
    return_batch_calls(batch)
    end_batch(batch, BatchState.FAILED, reason)
    stop_run(batch.run, reason)


def end_batch(batch: Batch, state: BatchState, error: str) -> None:
    Batch.objects.filter(pk=batch.pk).update(state=state, error=error, finished_at=Now())
    if claim := find_own_claim(POLL_BATCH, batch.pk):
        end_claim(claim)
    batch.refresh_from_db()
    after = {"sent": batch.calls_sent, "answered": batch.calls_answered, "state": batch.state, "error": error}
    record_event("ended batch", batch, user=None, evaluation=batch.run.evaluation, after=after)
