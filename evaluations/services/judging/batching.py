"""Runs through the Batch API: calls go out as one file, and their answers come back as one, within a day.

A batch is known to its server by a mark that is made before it is sent. So a worker that is killed
between sending and writing that down costs nothing: the next one finds the batch by its mark.
"""

import logging
import tempfile
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from evaluations.domain import OPEN_BATCH_STATES, BatchState, CallState, RunState
from evaluations.judge.retrying import Patience
from evaluations.models import Batch, Call, Run
from evaluations.outside.batches import BatchServer, Line, Remote, answer_in, connected, line_for
from evaluations.outside.llm import LLMError, StopRun
from evaluations.services.judging import claiming, running, storing
from evaluations.services.judging.conversing import Asker, from_answer, from_error, server_of
from evaluations.services.judging.working import Bout, Held, Outcome, bout_of
from evaluations.services.pacing import ROWS_AT_ONCE, paced, time_is_up
from evaluations.services.recording import record

logger = logging.getLogger(__name__)

# Servers take 50,000 requests and 200 MB; smaller batches come back sooner, and lose less where one expires.
MOST_CALLS: Final = 10_000
MOST_BYTES: Final = 90_000_000
LEASE: Final = timedelta(minutes=15)  # longer than any upload may take, its repetitions included
CALL: Final = "call-"


# ---- sending -------------------------------------------------------------------------------


def send(bout: Bout, *, until: float, hand_over: Callable[[], None]) -> None:
    """Send what waits, in as many batches as it takes; ``hand_over`` if time is up first."""
    while not time_is_up(until):
        if not send_one(bout):
            return
    hand_over()


def send_one(bout: Bout) -> bool:
    """Whether a batch was sent, so that there may be another one."""
    batch = begin(bout.run)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / f"{mark_of(batch)}.jsonl"
        with file.open("wb") as out:
            batch.calls_sent = sum(len(held) for held in filled(bout, batch, out.write))
        if not batch.calls_sent:
            batch.delete()
            return False
        return is_sent(bout, batch, file)


def begin(run: Run) -> Batch:
    batch = Batch.objects.create(run=run, lease=uuid.uuid4(), lease_until=Now() + LEASE)
    batch.refresh_from_db()
    return batch


def mark_of(batch: Batch) -> str:
    return f"judgeweb-{batch.pk}-{batch.created_at:%Y%m%d%H%M%S%f}"


def filled(bout: Bout, batch: Batch, write: Callable[[bytes], int]) -> Iterator[Sequence[Held]]:
    """Put calls that wait into the batch, some at a time, until it is full or none is left."""
    asker, server = Asker(bout), server_of(bout)
    calls = size = 0
    while calls < MOST_CALLS and size < MOST_BYTES:
        with paced():
            claimed = claiming.claim_for(batch, bout, ROWS_AT_ONCE)
        if not claimed.questions and claimed.wait != 0:
            return
        held = claimed.questions
        size += sum(write(line_for(f"{CALL}{one.call_id}", asker.request_for(one), server)) for one in held)
        calls += len(held)
        yield held


def is_sent(bout: Bout, batch: Batch, file: Path) -> bool:
    try:
        with connected(server_of(bout)) as server:
            submitted(batch, server.send(file, mark_of(batch)))
    except StopRun as error:
        give_up(batch, str(error))
        return False
    except LLMError as error:
        # It may arrive all the same: once the lease has run out, it is looked for.
        logger.warning("run %s: batch %s may not have been sent: %s", bout.run.pk, batch.pk, error)
        Batch.objects.filter(pk=batch.pk).update(error=str(error))
        return False
    return True


def submitted(batch: Batch, remote: Remote) -> None:
    Batch.objects.filter(pk=batch.pk).update(
        state=BatchState.SUBMITTED,
        remote_id=remote.id,
        remote_state=remote.state,
        calls_sent=batch.calls_sent or batch.calls.count(),
        error="",
    )
    leave_for_later(batch)


# ---- looking after what was sent -----------------------------------------------------------


def look_after(batch_id: int, patience: Patience | None = None) -> None:
    """See how far a batch is, and store its answers once it has ended."""
    batch = taken(batch_id)
    if batch is None:
        return
    bout = bout_of(batch.run, patience or Patience())
    try:
        with connected(server_of(bout)) as server:
            look_with(bout, batch, server)
    except StopRun as error:
        running.stop(bout.run, str(error))
        leave_for_later(batch, str(error))
    except LLMError as error:
        leave_for_later(batch, str(error))


def taken(batch_id: int) -> Batch | None:
    """The batch under a lease of ours; None where somebody else is at it, or it is done."""
    free = Q(lease_until__isnull=True) | Q(lease_until__lt=Now())
    lease = uuid.uuid4()
    Batch.objects.filter(free, pk=batch_id, state__in=OPEN_BATCH_STATES).update(lease=lease, lease_until=Now() + LEASE)
    return Batch.objects.select_related("run").filter(pk=batch_id, lease=lease).first()


def leave_for_later(batch: Batch, error: str = "") -> None:
    later = Now() + timedelta(seconds=settings.BATCH_POLL_SECONDS)
    Batch.objects.filter(pk=batch.pk).update(error=error, lease=None, lease_until=None, not_before=later)


def look_with(bout: Bout, batch: Batch, server: BatchServer) -> None:
    if batch.state == BatchState.SENDING:
        find_again(batch, server)
        return
    remote = server.look(batch.remote_id)
    if not remote.has_ended and bout.run.state == RunState.CANCELLED:
        remote = server.cancel(batch.remote_id)
    Batch.objects.filter(pk=batch.pk).update(remote_state=remote.state, calls_answered=remote.answered)
    if remote.has_ended:
        collect(bout, batch, remote, server)
    else:
        leave_for_later(batch)


def find_again(batch: Batch, server: BatchServer) -> None:
    """What a killed worker was sending: either the server has it, or nothing was bought."""
    if remote := server.find(mark_of(batch)):
        submitted(batch, remote)
    else:
        put_back(batch)
        end(batch, BatchState.FAILED, batch.error or "The worker was killed before it was sent.")


# ---- collecting ----------------------------------------------------------------------------


def collect(bout: Bout, batch: Batch, remote: Remote, server: BatchServer) -> None:
    """Store every answer; what the batch did not get to waits again, and was not charged."""
    Batch.objects.filter(pk=batch.pk).update(
        state=BatchState.COLLECTING, output_file=remote.output_file, error_file=remote.error_file
    )
    for file_id in filter(None, (remote.output_file, remote.error_file)):
        lines = server.lines(file_id)
        while some := list(islice(lines, ROWS_AT_ONCE)):
            store_lines(bout, batch, some, server)
    put_back(batch)
    answered = batch.attempts.count()
    Batch.objects.filter(pk=batch.pk).update(calls_answered=answered)
    end(batch, BatchState.DONE if answered else BatchState.FAILED, remote.error)
    if not answered and bout.run.state == RunState.RUNNING:
        running.stop(bout.run, unanswered(remote))
    running.finish(bout.run)


def unanswered(remote: Remote) -> str:
    if remote.error:
        return f"The server refused the batch: {remote.error}"
    return f"The server answered nothing of the batch ({remote.state}): go on later, or ask each call by itself."


def store_lines(bout: Bout, batch: Batch, lines: Iterable[Line], server: BatchServer) -> None:
    """Take these answers, those whose calls still wait for this batch."""
    by_call = {number: line for line in lines if line.status and (number := call_in(line))}
    with paced(), transaction.atomic():
        Batch.objects.filter(pk=batch.pk).update(lease_until=Now() + LEASE)
        held = claiming.sent_in(batch, bout, list(by_call))
        said = [(one, by_call[one.call_id]) for one in held]
        if said:
            storing.store(bout, [outcome_of(Asker(bout), batch, one, line, server) for one, line in said])


def call_in(line: Line) -> int | None:
    number = line.custom_id.removeprefix(CALL)
    return int(number) if number.isdecimal() and number.isascii() and len(number) < 19 else None


def outcome_of(asker: Asker, batch: Batch, held: Held, line: Line, server: BatchServer) -> Outcome:
    request = asker.request_for(held)
    took = round((timezone.now() - batch.created_at).total_seconds() * 1000)
    try:
        answer = answer_in(line, server.server, request, server.key)
    except LLMError as error:
        outcome = from_error(asker, held, request, error, took)
    else:
        outcome = from_answer(asker, held, request, answer, took)
    return replace(outcome, attempt={**(outcome.attempt or {}), "batch_id": batch.pk})


# ---- ending --------------------------------------------------------------------------------


def put_back(batch: Batch) -> None:
    """What was not answered waits again, and no money is kept back for it."""
    waiting = Call.all_rows.filter(batch=batch, state=CallState.RUNNING)
    while ids := list(waiting.values_list("pk", flat=True)[:ROWS_AT_ONCE]):
        with paced(), transaction.atomic():
            claiming.free(waiting.filter(pk__in=ids))


@transaction.atomic
def give_up(batch: Batch, reason: str) -> None:
    put_back(batch)
    end(batch, BatchState.FAILED, reason)
    running.stop(batch.run, reason)


def end(batch: Batch, state: BatchState, error: str) -> None:
    Batch.objects.filter(pk=batch.pk).update(
        state=state, error=error, lease=None, lease_until=None, not_before=None, finished_at=Now()
    )
    batch.refresh_from_db()
    after = {"sent": batch.calls_sent, "answered": batch.calls_answered, "state": batch.state, "error": error}
    record("ended batch", batch, user=None, evaluation=batch.run.evaluation, after=after)
