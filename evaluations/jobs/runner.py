"""The job runner: claim a job, run one step, and send a message for the next one."""

import logging
from time import monotonic, sleep
from typing import Final

from django.db import transaction

from evaluations.domain.errors import InputRefused
from evaluations.domain.jobs import JobState
from evaluations.jobs.claims import FAULT_PAUSE, claim_job, end_claim, release_claim
from evaluations.jobs.kinds import JobClaim, LeaseLost, kind_of
from evaluations.jobs.nudges import WorkerTask, nudge
from evaluations.jobs.queue import enqueue_job
from evaluations.jobs.sweeper import put_back_lost_jobs, set_aside_job
from evaluations.models.evaluations import Evaluation
from evaluations.models.jobs import Job

STEP_SECONDS: Final = 20.0
LOOK_AGAIN_SECONDS: Final = 0.1

logger = logging.getLogger(__name__)


def work_for_a_while(job_id: int, *, seconds: float = STEP_SECONDS) -> bool:
    """One step of the job; whether more is left. A second message about a job that is being worked on does nothing."""
    claim = claim_job(job_id, until=monotonic() + seconds)
    return claim is not None and work_claimed(claim)


def work_to_the_end(kind: str, subject: int) -> None:
    """Work on the job in this process until nothing is left that is due, as commands do."""
    put_back_lost_jobs(kind, subject)
    job = Job.objects.filter(kind=kind, subject=subject).first()
    while job and (claim := claim_job(job.pk)) and work_claimed(claim):
        pass


def finish_job(kind: str, subject: int) -> None:
    """Work on the job in this process until it is over; where a worker was quicker, wait for it."""
    work_to_the_end(kind, subject)
    while Job.objects.open().filter(kind=kind, subject=subject).exists():
        sleep(LOOK_AGAIN_SECONDS)
        work_to_the_end(kind, subject)


def work_on_now(kind: str, subject: int, *, evaluation: Evaluation | None) -> bool:
    """One step in this process on a job that is made or begun anew where none is open; whether more is left."""
    job = Job.objects.open().filter(kind=kind, subject=subject).first()
    if job is None:
        job = enqueue_job(kind, subject, evaluation=evaluation)
    return work_for_a_while(job.pk)


def work_on_due(kind: str) -> None:
    """Work in this process on all jobs of a kind that are due, where no worker is there to do it."""
    put_back_lost_jobs(kind)
    for subject in Job.objects.due().filter(kind=kind).order_by("pk").values_list("subject", flat=True):
        work_to_the_end(kind, subject)


def work_claimed(claim: JobClaim) -> bool:
    """Whether more is left that somebody may go on with at once."""
    job, step = claim.job, kind_of(claim.job).step
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
        give_back_after_fault(claim, fault)
        raise
    if is_done:
        end_claim(claim)
        nudge_next_of_kind(job)
        return False
    with transaction.atomic():
        is_next = release_claim(claim, pause=claim.pause) and not claim.pause
        if is_next:
            nudge(WorkerTask.WORK_ON_JOB, job.pk)
    return is_next


def nudge_next_of_kind(job: Job) -> None:
    """Where a process works on few of a kind at a time, those that had to wait are not left to the sweep."""
    if kind_of(job).per_worker is not None:
        waiting = Job.objects.due().filter(kind=job.kind).order_by("pk")
        if (pk := waiting.values_list("pk", flat=True).first()) is not None:
            nudge(WorkerTask.WORK_ON_JOB, pk)


@transaction.atomic
def give_back_after_fault(claim: JobClaim, fault: BaseException) -> None:
    """The job is tried again later; where faults count, not for ever."""
    kind, reason = kind_of(claim.job), f"{type(fault).__name__}: {fault}"
    if not release_claim(claim, reason=reason, pause=FAULT_PAUSE, keeps_attempt=kind.counts_faults):
        return
    kind.on_loss(claim.job)
    job = Job.objects.get(pk=claim.job.pk)
    if job.attempts >= kind.attempts:
        set_aside_job(job)
