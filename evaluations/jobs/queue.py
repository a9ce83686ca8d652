"""The queue of jobs: enqueue, look up, cancel; each new job wakes a worker."""

import uuid
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from django.db.models.functions import Now
from django.utils import timezone

from evaluations.domain.jobs import OPEN_JOB_STATES, JobState
from evaluations.jobs.kinds import JobClaim, get_kind
from evaluations.jobs.nudges import WorkerTask, nudge
from evaluations.models.evaluations import Evaluation
from evaluations.models.jobs import Job, process_name

# The columns that are reset when a job is enqueued again.
RESET_COLUMNS: Final = (
    *("claim", "claimed_by", "lease_until", "heartbeat_at", "not_before", "queued_at"),
    *("position", "reason", "begun_at", "finished_at"),
)


def enqueue_job(
    kind: str, subject: int, *, evaluation: Evaluation | None, total: int | None = None, retry: bool = True
) -> Job:
    """Enqueue the job from its beginning; a worker that has it stops at the next heartbeat.

    Without ``retry`` earlier lost claims still count: one more, and the job is set aside again.
    """
    enqueue_jobs([Job(kind=kind, subject=subject, evaluation=evaluation, total=total)], retry=retry)
    return Job.objects.get(kind=kind, subject=subject)


def enqueue_jobs(jobs: Sequence[Job], *, retry: bool = True) -> None:
    """Enqueue many jobs by one statement."""
    columns = ["state", "total", *RESET_COLUMNS, *(["attempts"] if retry else [])]
    keys = ["kind", "subject"]
    for job in Job.objects.bulk_create(jobs, update_conflicts=True, unique_fields=keys, update_fields=columns):
        nudge(WorkerTask.WORK_ON_JOB, job.pk)


def start_claimed_job(kind: str, subject: int, *, evaluation: Evaluation | None, total: int | None = None) -> JobClaim:
    """Create a job that this process works on itself; no worker is woken for it while the lease lasts."""
    job = Job.objects.create(
        kind=kind,
        subject=subject,
        evaluation=evaluation,
        total=total,
        state=JobState.RUNNING,
        claim=uuid.uuid4(),
        claimed_by=process_name(),
        lease_until=Now() + get_kind(kind).lease,
        heartbeat_at=Now(),
        begun_at=Now(),
        attempts=1,
    )
    job.refresh_from_db()
    return JobClaim(job)


def cancel_job(kind: str, subject: int, reason: str = "Cancelled.") -> bool:
    """Cancel the job; its worker stops at the next heartbeat. Return whether there was one to cancel."""
    jobs = Job.objects.open().filter(kind=kind, subject=subject)
    columns = {"claim": None, "claimed_by": "", "lease_until": None, "finished_at": Now()}
    return bool(jobs.update(state=JobState.CANCELLED, reason=reason, **columns))


def hasten_jobs(kind: str, subjects: Iterable[int]) -> None:
    """Make jobs due now that wait for a later time."""
    waiting = Job.objects.filter(kind=kind, subject__in=list(subjects), state=JobState.WAITING)
    if waiting.update(not_before=None):
        for pk in waiting.values_list("pk", flat=True):
            nudge(WorkerTask.WORK_ON_JOB, pk)


def delete_jobs(kind: str, subjects: Iterable[int]) -> None:
    Job.objects.filter(kind=kind, subject__in=list(subjects)).delete()


def find_job(kind: str, subject: int) -> Job | None:
    return Job.objects.filter(kind=kind, subject=subject).first()


def find_jobs(kinds: Collection[str], subjects: Collection[int]) -> dict[int, Job]:
    """Subject → its job, for a page of rows that have one each."""
    return {job.subject: job for job in Job.objects.filter(kind__in=kinds, subject__in=subjects)}


def has_open_job(kind: str, subject: int) -> bool:
    return Job.objects.open().filter(kind=kind, subject=subject).exists()


@dataclass(frozen=True)
class JobProgress:
    """The progress of a job. ``total`` is None if unknown; rate and time left are None before the first progress."""

    position: int
    total: int | None
    per_second: float | None
    seconds_left: float | None


def measure_job_progress(job: Job | None) -> JobProgress:
    return measure_progress(job, job.position, job.total) if job else JobProgress(0, None, None, None)


def measure_progress(job: Job, position: int, total: int | None) -> JobProgress:
    """The progress of a job whose position is counted elsewhere."""
    end = job.finished_at if job.state not in OPEN_JOB_STATES and job.finished_at else timezone.now()
    seconds = (end - job.begun_at).total_seconds() if job.begun_at else 0.0
    if not position or seconds <= 0:
        return JobProgress(position, total, None, None)
    left = (total - position) * seconds / position if total is not None else None
    return JobProgress(position, total, position / seconds, left)
