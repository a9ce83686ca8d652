"""The job runner: claim a job, run one step, and send a message for the next one."""

import logging
from time import monotonic, sleep
from typing import Final

from django.db import transaction

from evaluations.domain.errors import InputRefused
from evaluations.domain.jobs import JobState
from evaluations.jobs.claims import FAULT_PAUSE, claim_job, end_claim, release_claim
from evaluations.jobs.kinds import JobClaim, LeaseLost, get_kind
from evaluations.jobs.nudges import WorkerTask, nudge
from evaluations.jobs.queue import enqueue_job, find_job, has_open_job
from evaluations.jobs.sweeper import handle_lost_job, put_back_lost_jobs
from evaluations.models.evaluations import Evaluation
from evaluations.models.jobs import Job

STEP_SECONDS: Final = 20.0
CHECK_AGAIN_SECONDS: Final = 0.1

logger = logging.getLogger(__name__)


def work_for_a_while(job_id: int, *, seconds: float = STEP_SECONDS) -> bool:
    """Run one step of the job; whether more is left. Does nothing if another worker has claimed it."""
    claim = claim_job(job_id, until=monotonic() + seconds)
    return claim is not None and run_step(claim)


def work_while_due(kind: str, subject: int) -> None:
    """Work on the job in this process until nothing of it is due, as commands do."""
    put_back_lost_jobs(kind, subject)
    job = find_job(kind, subject)
    while job and (claim := claim_job(job.pk)) and run_step(claim):
        pass


def finish_job(kind: str, subject: int) -> None:
    """Work on the job in this process until it is over; if a worker has claimed it, wait for that."""
    work_while_due(kind, subject)
    while has_open_job(kind, subject):
        sleep(CHECK_AGAIN_SECONDS)
        work_while_due(kind, subject)


def work_on_now(kind: str, subject: int, *, evaluation: Evaluation | None) -> bool:
    """Run one step of the job in this process, enqueued first unless it is open; whether more is left."""
    job = Job.objects.open().filter(kind=kind, subject=subject).first()
    return work_for_a_while((job or enqueue_job(kind, subject, evaluation=evaluation)).pk)


def work_on_due_jobs(kind: str) -> None:
    """Work in this process on all due jobs of a kind, without a worker."""
    put_back_lost_jobs(kind)
    for subject in Job.objects.due().filter(kind=kind).order_by("pk").values_list("subject", flat=True):
        work_while_due(kind, subject)


def run_step(claim: JobClaim) -> bool:
    """Run one step of the claimed job; whether another one may follow at once."""
    job, step = claim.job, get_kind(claim.job.kind).step
    assert step is not None, f"{job} waits for a worker, but no worker can go on with it"
    try:
        is_done = step(claim)
    except LeaseLost as lost:
        logger.info("%s", lost)
        return False
    except InputRefused as refused:
        end_claim(claim, JobState.FAILED, str(refused))
        return False
    except BaseException as fault:
        release_after_fault(claim, fault)
        raise
    if is_done:
        end_claim(claim)
        nudge_next_of_kind(job)
        return False
    with transaction.atomic():
        is_due = release_claim(claim, pause=claim.pause) and not claim.pause
        if is_due:
            nudge(WorkerTask.WORK_ON_JOB, job.pk)
    return is_due


def nudge_next_of_kind(job: Job) -> None:
    """Wake a worker for the next due job of a kind that each process works on few of at a time."""
    if get_kind(job.kind).per_worker is not None:
        waiting = Job.objects.due().filter(kind=job.kind).order_by("pk")
        if (pk := waiting.values_list("pk", flat=True).first()) is not None:
            nudge(WorkerTask.WORK_ON_JOB, pk)


@transaction.atomic
def release_after_fault(claim: JobClaim, fault: BaseException) -> None:
    """Release the job to be tried again later, or set it aside after too many faults that count."""
    keeps_attempt, reason = get_kind(claim.job.kind).counts_faults, f"{type(fault).__name__}: {fault}"
    if release_claim(claim, reason=reason, pause=FAULT_PAUSE, keeps_attempt=keeps_attempt):
        handle_lost_job(Job.objects.get(pk=claim.job.pk), reason)
