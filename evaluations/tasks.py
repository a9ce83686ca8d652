"""Celery tasks, each of which takes ids and makes one service call."""

import threading
import time
from contextlib import AbstractContextManager
from typing import Final

from celery import shared_task
from celery.contrib.django.task import DjangoTask
from django.conf import settings

from evaluations.api.idempotency import drop_old_answers
from evaluations.comparisons.search.services import continue_indexing, list_open_indexing
from evaluations.comparisons.services import continue_tag_job, list_open_tag_jobs
from evaluations.domain.files import ImportState
from evaluations.domain.judges import RunState
from evaluations.exports.services import continue_export, sweep_exports
from evaluations.imports.lifecycle import sweep_imports
from evaluations.imports.services import continue_import
from evaluations.imports.source_files import remove_stale_uploads
from evaluations.imports.undo import continue_undo
from evaluations.jobs.crashes import SET_ASIDE_REASON, JobSession, forget_deaths, watch_job
from evaluations.jobs.nudges import WorkerTask, nudge
from evaluations.judges.calls.lease_sweeper import (
    find_due_batches,
    find_idle_runs,
    find_runs_to_join,
    finish_ended_runs,
    return_expired_calls,
)
from evaluations.judges.calls.reply_reparse import continue_reparse, judges_with_stalled_reparse
from evaluations.judges.calls.worker_registry import list_idle_workers, own_worker_name
from evaluations.judges.endpoints.services import refresh_local_server
from evaluations.judges.runs.planner import cancel_waiting_calls, plan_run_calls
from evaluations.judges.runs.run_states import stop_run
from evaluations.models.evaluations import Evaluation
from evaluations.models.exports import Export
from evaluations.models.imports import Import
from evaluations.models.jobs import Worker
from evaluations.models.runs import Run
from evaluations.rendered_texts import delete_outdated_renderings, render_next_comparisons
from evaluations.reviews.queues.items import ensure_queue_is_filled
from evaluations.reviews.queues.reservations import release_expired_reservations
from evaluations.reviews.queues.services import release_departed_reservations
from evaluations.verdicts.label_counts import count_import_labels, find_uncounted_imports
from evaluations.webhooks.deliveries import delete_old_deliveries, has_due_deliveries, send_due_deliveries
from evaluations.webhooks.messages import create_due_messages

STORE_SECONDS = 20
SWEEP_SECONDS = 10
SLOTS_AT_ONCE: Final = 500

# A message that comes to a process which is at that run already goes on to another, so often.
MAX_HANDOVERS: Final = 4

# What stands for the webhooks where tasks come to runs, which count from 1.
WEBHOOKS_SUBJECT: Final = 0

# Which task of this process is at which run: a second message for a run adds nothing to it.
RUNS_AT_WORK: dict[int, object] = {}
RUNS_AT_WORK_LOCK = threading.Lock()


def enter_run(run_id: int, comer: object) -> bool:
    """Whether the comer is now the one at this run."""
    with RUNS_AT_WORK_LOCK:
        return RUNS_AT_WORK.setdefault(run_id, comer) is comer


def leave_run(run_id: int, comer: object) -> None:
    with RUNS_AT_WORK_LOCK:
        if RUNS_AT_WORK.get(run_id) is comer:
            del RUNS_AT_WORK[run_id]


def start_job_session(kind: str, subject: int) -> AbstractContextManager[JobSession | None]:
    return watch_job(kind, subject, own_worker_name())


@shared_task(base=DjangoTask)
def work_run(run_id: int, passed_on: int = 0) -> None:
    """Work a run's calls for half a minute; a successor goes on while this one drains.

    A process that is at this run already passes the message on: it may be meant for another.
    """
    from evaluations.judges.calls.live_worker import work_run_calls  # noqa: PLC0415 - openai is slow to import

    me = object()

    def hand_over() -> None:
        leave_run(run_id, me)
        nudge(WorkerTask.WORK_RUN, run_id)

    if enter_run(run_id, me):
        try:
            plan_run(run_id)
            work_run_calls(run_id, hand_over=hand_over)
        finally:
            leave_run(run_id, me)
    elif passed_on < MAX_HANDOVERS and Worker.objects.alive().count() > 1:
        nudge(WorkerTask.WORK_RUN, run_id, passed_on + 1, expires=SWEEP_SECONDS)


def plan_run(run_id: int) -> None:
    """Plan the run for a while where it is not planned; its calls have leases of their own."""
    run = Run.objects.filter(pk=run_id, state=RunState.PLANNING).first()
    if run is None:
        return
    with start_job_session("plan_run", run_id) as stretch:
        if stretch:
            plan_run_calls(run_id, until=time.monotonic() + STORE_SECONDS)
            stretch.goes_on = Run.objects.filter(pk=run_id, state=RunState.PLANNING).exists()
        else:
            stop_run(run, SET_ASIDE_REASON)
            forget_deaths("plan_run", run_id)  # the run says so itself, and may be resumed


@shared_task(base=DjangoTask)
def look_after_batch(batch_id: int) -> None:
    """See how far a batch is, and store its answers once its server has ended it."""
    from evaluations.judges.calls.batch_worker import poll_batch  # noqa: PLC0415 - openai once more

    with start_job_session("look_after_batch", batch_id) as stretch:
        if stretch:
            poll_batch(batch_id)


@shared_task(base=DjangoTask)
def store_import(import_id: int) -> None:
    """Check, store or undo a file, or count the votes in it, for a while; a successor goes on where this one stops."""
    with start_job_session("store_import", import_id) as stretch:
        if stretch is None:
            return
        row = Import.objects.get(pk=import_id)
        if row.state == ImportState.UNDOING:
            more = continue_undo(row, seconds=STORE_SECONDS)
        else:
            more = continue_import(row, seconds=STORE_SECONDS) or count_import_labels(row, seconds=STORE_SECONDS)
        stretch.goes_on = more
    if more:
        nudge(WorkerTask.STORE_IMPORT, import_id)
    elif row.state == ImportState.DONE:
        nudge(WorkerTask.FILL_QUEUE, row.evaluation_id)
        nudge(WorkerTask.RENDER_AHEAD, row.evaluation_id)
        nudge(WorkerTask.READ_TEXTS)


@shared_task(base=DjangoTask)
def write_export(export_id: int) -> None:
    """Write a long export; another worker restarts it if this process stops."""
    if continue_export(Export.objects.get(pk=export_id)):
        nudge(WorkerTask.WRITE_EXPORT, export_id)


@shared_task(base=DjangoTask)
def fill_queue(evaluation_id: int) -> None:
    """Add queue items for newly imported comparisons before a reviewer waits for them."""
    with start_job_session("fill_queue", evaluation_id) as stretch:
        if stretch:
            ensure_queue_is_filled(Evaluation.objects.get(pk=evaluation_id))


@shared_task(base=DjangoTask)
def render_ahead(evaluation_id: int) -> None:
    """Render what reviewers meet first, so that the first to open it need not wait; pages render the rest."""
    with start_job_session("render_ahead", evaluation_id) as stretch:
        if stretch and render_next_comparisons(Evaluation.objects.get(pk=evaluation_id), seconds=STORE_SECONDS):
            stretch.goes_on = True
            nudge(WorkerTask.RENDER_AHEAD, evaluation_id)


@shared_task(base=DjangoTask)
def read_texts() -> None:
    """Read stored texts for searching for a while; a successor goes on where this one stops."""
    with start_job_session("read_texts", 0) as stretch:
        if stretch and continue_indexing(seconds=STORE_SECONDS):
            stretch.goes_on = True
            nudge(WorkerTask.READ_TEXTS)


@shared_task(base=DjangoTask)
def tag_all(work_id: int) -> None:
    """Put a tag on what a filter means, or take it away, for a while; a successor goes on where this one stops."""
    with start_job_session("tag_all", work_id) as stretch:
        if stretch and continue_tag_job(work_id, seconds=STORE_SECONDS):
            stretch.goes_on = True
            nudge(WorkerTask.TAG_ALL, work_id)


@shared_task(base=DjangoTask)
def reread_replies(judge_id: int) -> None:
    """Read a judge's stored replies again for a while; a successor goes on where this one stops."""
    with start_job_session("reread_replies", judge_id) as stretch:
        if stretch and continue_reparse(judge_id, seconds=STORE_SECONDS):
            stretch.goes_on = True
            nudge(WorkerTask.REREAD_REPLIES, judge_id)


@shared_task(base=DjangoTask)
def deliver_hooks() -> None:
    """Send the messages that are due for a while; a successor goes on where this one stops.

    One task of a process at a time: receivers that hang must not take all its threads.
    """
    me = object()
    if enter_run(WEBHOOKS_SUBJECT, me):
        try:
            more = send_due_deliveries(seconds=STORE_SECONDS)
        finally:
            leave_run(WEBHOOKS_SUBJECT, me)
        if more:
            nudge(WorkerTask.DELIVER_HOOKS)


@shared_task(base=DjangoTask)
def check_endpoint(handshake_id: int) -> None:
    """Test an endpoint for a page: keys are set where workers run."""
    from evaluations.judges.endpoints.handshake import run_requested_handshake  # noqa: PLC0415 - openai once more

    run_requested_handshake(handshake_id)


@shared_task(base=DjangoTask)
def look_for_local_server() -> None:
    refresh_local_server(settings.OLLAMA_URL)


@shared_task(base=DjangoTask)
def sweep() -> None:
    """Put back what a killed worker held, end what has ended, and wake what waits."""
    return_expired_calls()
    release_expired_reservations(SLOTS_AT_ONCE)
    release_departed_reservations(SLOTS_AT_ONCE)
    cancel_waiting_calls(seconds=SWEEP_SECONDS)
    finish_ended_runs()
    for run_id in find_idle_runs():
        nudge(WorkerTask.WORK_RUN, run_id, expires=SWEEP_SECONDS)
    for run_id in find_runs_to_join():
        for _ in range(list_idle_workers()):
            nudge(WorkerTask.WORK_RUN, run_id, expires=SWEEP_SECONDS)
    for batch_id in find_due_batches():
        nudge(WorkerTask.LOOK_AFTER_BATCH, batch_id, expires=SWEEP_SECONDS)
    for judge_id in judges_with_stalled_reparse():
        nudge(WorkerTask.REREAD_REPLIES, judge_id)
    for import_id in (*sweep_imports(seconds=SWEEP_SECONDS), *find_uncounted_imports()):
        nudge(WorkerTask.STORE_IMPORT, import_id)
    if list_open_indexing():
        nudge(WorkerTask.READ_TEXTS, expires=SWEEP_SECONDS)
    for work_id in list_open_tag_jobs():
        nudge(WorkerTask.TAG_ALL, work_id, expires=SWEEP_SECONDS)
    for export_id in sweep_exports():
        nudge(WorkerTask.WRITE_EXPORT, export_id, expires=SWEEP_SECONDS)
    delete_outdated_renderings()
    remove_stale_uploads()
    drop_old_answers()
    create_due_messages()
    delete_old_deliveries()
    if has_due_deliveries():
        nudge(WorkerTask.DELIVER_HOOKS, expires=SWEEP_SECONDS)
