"""Celery tasks, each of which takes ids and makes one service call."""

import threading
from typing import Final

from celery import shared_task
from celery.contrib.django.task import DjangoTask
from django.conf import settings

from evaluations import rendered_texts
from evaluations.api.idempotency import drop_old_answers
from evaluations.comparisons import services as comparisons_services
from evaluations.comparisons.search import services as search_services
from evaluations.domain.jobs import PLAN_RUN
from evaluations.domain.judges import RunState
from evaluations.exports import services as exports_services
from evaluations.exports.services import remove_files_left_over
from evaluations.imports import storage, undo
from evaluations.imports.source_files import remove_stale_uploads
from evaluations.jobs.kinds import JobClaim
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
from evaluations.judges.endpoints.services import refresh_local_server
from evaluations.judges.runs import planner
from evaluations.judges.runs.planner import cancel_waiting_calls
from evaluations.models.jobs import Worker
from evaluations.models.runs import Run
from evaluations.rendered_texts import delete_outdated_renderings
from evaluations.reviews.queues import items
from evaluations.reviews.queues.reservations import release_expired_reservations
from evaluations.reviews.queues.services import release_departed_reservations
from evaluations.verdicts import label_updates
from evaluations.webhooks import deliveries
from evaluations.webhooks.deliveries import delete_old_deliveries, enqueue_due_deliveries
from evaluations.webhooks.messages import create_due_messages

SWEEP_SECONDS = 10
# How long other workers leave the sweep to one that was killed at it.
SWEEP_LEASE_SECONDS: Final = 20
# Every worker tries to sweep: once one has done it, none does it again for so long.
SWEEP_REST_SECONDS: Final = 4
SLOTS_AT_ONCE: Final = 500

# A message that comes to a process which is at that run already goes on to another, so often.
MAX_HANDOVERS: Final = 4

# Importing these registers their kinds of jobs.
JOB_MODULES: Final = (
    *(comparisons_services, storage, undo, search_services, label_updates, items, rendered_texts),
    *(planner, reply_reparse, deliveries, exports_services),
)

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


@shared_task(base=DjangoTask)
def work_on_job(job_id: int) -> None:
    """Work on a job for a while; another message follows where more is left."""
    work_for_a_while(job_id)


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
    if run := Run.objects.filter(pk=run_id, state=RunState.PLANNING).select_related("evaluation").first():
        work_on_now(PLAN_RUN, run_id, evaluation=run.evaluation)


def look_after_batch(claim: JobClaim) -> bool:
    from evaluations.judges.calls.batch_worker import poll_batch  # noqa: PLC0415 - openai once more

    return poll_batch(claim)


register_batch_jobs(look_after_batch)


@shared_task(base=DjangoTask)
def check_endpoint(check_id: int) -> None:
    """Test an endpoint for a page: keys are set where workers run."""
    from evaluations.judges.endpoints.checks import run_requested_check  # noqa: PLC0415 - openai once more

    run_requested_check(check_id)


@shared_task(base=DjangoTask)
def look_for_local_server() -> None:
    refresh_local_server(settings.OLLAMA_URL)


@shared_task(base=DjangoTask)
def sweep() -> bool:
    """Put back what a killed worker held, end what has ended, and wake what waits; whether this worker did it now."""
    with site_lease("sweep", SWEEP_LEASE_SECONDS, rest=SWEEP_REST_SECONDS) as is_ours:
        if is_ours:
            sweep_all()
    return is_ours


def sweep_all() -> None:
    return_expired_calls()
    release_expired_reservations(SLOTS_AT_ONCE)
    release_departed_reservations(SLOTS_AT_ONCE)
    cancel_waiting_calls(seconds=SWEEP_SECONDS)
    finish_ended_runs()
    for run_id in find_idle_runs():
        nudge(WorkerTask.WORK_RUN, run_id, expires=SWEEP_SECONDS)
    for run_id in find_runs_to_join():
        for _ in range(count_idle_workers()):
            nudge(WorkerTask.WORK_RUN, run_id, expires=SWEEP_SECONDS)
    sweep_jobs(expires=SWEEP_SECONDS)
    remove_files_left_over()
    delete_outdated_renderings()
    remove_stale_uploads()
    drop_old_answers()
    create_due_messages()
    delete_old_deliveries()
    enqueue_due_deliveries()
