"""Celery tasks, each of which takes ids and makes one service call."""

import threading
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Final

from celery import shared_task
from celery.contrib.django.task import DjangoTask
from django.conf import settings

from evaluations import rendered_texts
from evaluations.api.idempotency import drop_old_answers
from evaluations.audit.security import delete_old_security_events
from evaluations.comparisons import services as comparisons_services
from evaluations.comparisons.search import services as search_services
from evaluations.domain.jobs import CHECK_ENDPOINT, PLAN_RUN
from evaluations.domain.judges import RunState
from evaluations.exports import services as exports_services
from evaluations.imports import import_queue
from evaluations.imports.source_files import remove_orphaned_uploads, remove_stale_uploads
from evaluations.jobs.direct_work import take_unanswered
from evaluations.jobs.kinds import JobClaim, JobKind, register_job_kind
from evaluations.jobs.nudges import WorkerTask, nudge
from evaluations.jobs.runner import work_for_a_while, work_on_now
from evaluations.jobs.sweeper import site_lease, sweep_jobs
from evaluations.judges.calls import reply_reparse
from evaluations.judges.calls.batch_jobs import register_batch_jobs
from evaluations.judges.calls.lease_sweeper import (
    find_idle_runs,
    find_runs_to_join,
    finish_ended_runs,
    return_expired_calls,
)
from evaluations.judges.calls.worker_registry import count_idle_workers
from evaluations.judges.endpoints import outages
from evaluations.judges.endpoints.services import refresh_local_server
from evaluations.judges.runs import planner
from evaluations.members.services import delete_ended_sessions
from evaluations.models.jobs import Worker
from evaluations.models.runs import Run
from evaluations.operations.call_totals import add_new_attempts
from evaluations.overview import deletion, stored_results
from evaluations.reports import served_reports
from evaluations.reviews.queues import items
from evaluations.reviews.queues.reservations import release_expired_reservations
from evaluations.reviews.queues.services import release_departed_reservations
from evaluations.verdicts import label_updates, progress_recount
from evaluations.web.failures import is_database_away
from evaluations.web.throttle import delete_expired_throttles
from evaluations.webhooks import deliveries
from evaluations.webhooks.messages import create_due_messages
from judgeweb.broker import tidy_folder

SWEEP_SECONDS = 10
# How long other workers wait for a worker that was killed while it swept.
SWEEP_LEASE_SECONDS: Final = 20
# Every worker tries to sweep: after one has, none sweeps again for so long.
SWEEP_REST_SECONDS: Final = 4
SLOTS_AT_ONCE: Final = 500

# Longer than the few requests of a test may take: it has no heartbeat.
CHECK_LEASE: Final = timedelta(hours=1)

# How often a message is passed on by processes that work on its run already.
MAX_HANDOVERS: Final = 4

# Importing these registers their kinds of jobs.
JOB_MODULES: Final = (
    *(comparisons_services, import_queue, search_services, label_updates, items, rendered_texts),
    *(progress_recount, served_reports, stored_results, deletion),
    *(outages, planner, reply_reparse, deliveries, exports_services),
)

# The task of this process that works on each run: a second message for the run adds nothing.
RUNS_AT_WORK: dict[int, object] = {}
RUNS_AT_WORK_LOCK = threading.Lock()


def enter_run(run_id: int, task: object) -> bool:
    """Whether the task is now the one that works on this run."""
    with RUNS_AT_WORK_LOCK:
        return RUNS_AT_WORK.setdefault(run_id, task) is task


def leave_run(run_id: int, task: object) -> None:
    with RUNS_AT_WORK_LOCK:
        if RUNS_AT_WORK.get(run_id) is task:
            del RUNS_AT_WORK[run_id]


@shared_task(base=DjangoTask)
def work_on_job(job_id: int) -> None:
    """Work on a job for a while; another message follows if work is left."""
    work_for_a_while(job_id)


@shared_task(base=DjangoTask)
def work_run(run_id: int, passed_on: int = 0) -> None:
    """Work a run's calls for half a minute; a successor continues while this one drains.

    A process that works on the run already passes the message on to another process.
    """
    from evaluations.judges.calls.live_worker import work_run_calls  # noqa: PLC0415 - openai is slow to import

    task = object()

    def hand_over() -> None:
        leave_run(run_id, task)
        nudge(WorkerTask.WORK_RUN, run_id)

    if enter_run(run_id, task):
        try:
            plan_run(run_id)
            work_run_calls(run_id, hand_over=hand_over)
        finally:
            leave_run(run_id, task)
    elif passed_on < MAX_HANDOVERS and Worker.objects.alive().count() > 1:
        nudge(WorkerTask.WORK_RUN, run_id, passed_on + 1, expires=SWEEP_SECONDS)


def plan_run(run_id: int) -> None:
    """Plan the run for a while if it is not planned yet."""
    if run := Run.objects.filter(pk=run_id, state=RunState.PLANNING).select_related("evaluation").first():
        work_on_now(PLAN_RUN, run_id, evaluation=run.evaluation)


def look_after_batch(claim: JobClaim) -> bool:
    from evaluations.judges.calls.batch_worker import poll_batch  # noqa: PLC0415 - openai once more

    return poll_batch(claim)


register_batch_jobs(look_after_batch)


def check_endpoint(claim: JobClaim) -> bool:
    """Test an endpoint for a page: keys are set where workers run."""
    from evaluations.judges.endpoints.checks import run_requested_check  # noqa: PLC0415 - openai once more

    run_requested_check(claim.job.subject)
    return True


register_job_kind(JobKind(CHECK_ENDPOINT, check_endpoint, lease=CHECK_LEASE, counts_faults=True))


@shared_task(base=DjangoTask)
def look_for_local_server() -> None:
    refresh_local_server(settings.OLLAMA_URL)


@shared_task(base=DjangoTask)
def sweep() -> bool:
    """Release what killed workers held, finish what has ended and wake what waits. Returns whether this worker did."""
    with site_lease("sweep", SWEEP_LEASE_SECONDS, rest=SWEEP_REST_SECONDS) as is_ours:
        if is_ours:
            sweep_all()
    return is_ours


def sweep_all() -> None:
    """Take every step, also after one that failed: an error that comes back stops none of the others for good."""
    faults = []
    for step in SWEEP_STEPS:
        try:
            step()
        except Exception as fault:
            if is_database_away(fault):
                raise
            faults.append(fault)
    if faults:
        raise ExceptionGroup("Steps of the sweep failed", faults)


def wake_workers() -> None:
    """Send messages for runs and jobs that wait, and work on those for which none arrived."""
    idle_runs = find_idle_runs()
    for run_id in idle_runs:
        nudge(WorkerTask.WORK_RUN, run_id, expires=SWEEP_SECONDS)
    for run_id in find_runs_to_join():
        for _ in range(count_idle_workers()):
            nudge(WorkerTask.WORK_RUN, run_id, expires=SWEEP_SECONDS)
    due_jobs = sweep_jobs(expires=SWEEP_SECONDS)
    take_unanswered(
        [(WorkerTask.WORK_RUN, (pk,)) for pk in idle_runs] + [(WorkerTask.WORK_ON_JOB, (pk,)) for pk in due_jobs]
    )


def tidy_broker_folder() -> None:
    """Tidy the folder of the broker that is one of files."""
    if (folder := getattr(settings, "BROKER_DIR", None)) is not None:
        tidy_folder(folder)


SWEEP_STEPS: Final[tuple[Callable[[], object], ...]] = (
    import_queue.start_queued_imports,
    return_expired_calls,
    partial(release_expired_reservations, SLOTS_AT_ONCE),
    partial(release_departed_reservations, SLOTS_AT_ONCE),
    partial(planner.cancel_waiting_calls, seconds=SWEEP_SECONDS),
    finish_ended_runs,
    outages.restore_lost_probes,
    wake_workers,
    partial(progress_recount.count_all_changes, seconds=SWEEP_SECONDS / 2),
    exports_services.remove_files_left_over,
    rendered_texts.delete_outdated_renderings,
    remove_stale_uploads,
    remove_orphaned_uploads,
    tidy_broker_folder,
    drop_old_answers,
    delete_ended_sessions,
    delete_expired_throttles,
    delete_old_security_events,
    add_new_attempts,
    create_due_messages,
    deliveries.delete_old_deliveries,
    deliveries.enqueue_due_deliveries,
)
