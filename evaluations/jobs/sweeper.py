"""The sweeper of jobs whose workers were killed: they wait again, or are set aside after too many losses."""

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final

from django.db import IntegrityError, transaction
from django.db.models.functions import Now

from evaluations.domain.errors import InputRefused
from evaluations.domain.jobs import JobState
from evaluations.jobs.kinds import get_kind, job_kinds
from evaluations.jobs.nudges import WorkerTask, nudge
from evaluations.models.jobs import Job, Lease, process_name

SWEPT_AT_ONCE: Final = 200

logger = logging.getLogger(__name__)


def sweep_jobs(*, expires: float | None = None) -> list[int]:
    """Put back the jobs of killed workers, wake workers for due jobs, and return these."""
    put_back_lost_jobs()
    due = Job.objects.due().filter(kind__in=job_kinds()).order_by("not_before", "pk")
    due_ids = list(due.values_list("pk", flat=True)[:SWEPT_AT_ONCE])
    for pk in due_ids:
        nudge(WorkerTask.WORK_ON_JOB, pk, expires=expires)
    return due_ids


def put_back_lost_jobs(kind: str | None = None, subject: int | None = None) -> None:
    """Make jobs whose worker died wait again, or set them aside."""
    keeping = [name for name, job_kind in job_kinds().items() if job_kind.keeps_whole_lease]
    lost = Job.objects.lost(keeping).filter(kind__in=job_kinds() if kind is None else [kind])
    if subject is not None:
        lost = lost.filter(subject=subject)
    for pk in lost.order_by("pk").values_list("pk", flat=True)[:SWEPT_AT_ONCE]:
        with transaction.atomic():
            job = Job.objects.lost(keeping).skipping_locked().filter(pk=pk).first()
            if job is not None:
                put_back_job(job)


def put_back_job(job: Job) -> None:
    same = Job.objects.filter(pk=job.pk, claim=job.claim, state=JobState.RUNNING)
    if same.update(state=JobState.WAITING, claim=None, claimed_by="", lease_until=None, queued_at=Now()):
        handle_lost_job(job)


def handle_lost_job(job: Job, fault: str = "") -> None:
    """Count a loss of the job by a killed worker, or by this error."""
    kind = get_kind(job.kind)
    if kind.on_loss:
        kind.on_loss(job)
    if job.attempts >= kind.attempts:
        set_aside_job(job, fault)


def set_aside_job(job: Job, fault: str = "") -> None:
    """Keep workers from claiming the job until a person retries it."""
    times = f"{job.attempts} time{'' if job.attempts == 1 else 's'}"
    cause = f"this work failed {times}, last with “{fault}”" if fault else f"the worker died {times} at this work"
    reason = f"Set aside: {cause}. Check the worker's log."
    logger.error("%s: %s", job, reason)
    give_up = get_kind(job.kind).on_give_up
    state = JobState.FAILED if give_up else JobState.SET_ASIDE
    Job.objects.filter(pk=job.pk).update(state=state, reason=reason, not_before=None, finished_at=Now())
    if give_up:
        give_up(job, reason)


def list_jobs_set_aside() -> list[Job]:
    return list(Job.objects.filter(state=JobState.SET_ASIDE).order_by("kind", "subject"))


@transaction.atomic
def retry_job(kind: str, subject: int) -> None:
    """Let workers claim a job again that is set aside."""
    jobs = Job.objects.filter(kind=kind, subject=subject, state=JobState.SET_ASIDE)
    if not jobs.update(state=JobState.WAITING, attempts=0, reason="", finished_at=None, queued_at=Now()):
        raise InputRefused(f"No job “{kind} {subject}” is set aside. `manage.py doctor` lists those that are.")
    nudge(WorkerTask.WORK_ON_JOB, jobs.model.objects.get(kind=kind, subject=subject).pk)


@contextmanager
def site_lease(name: str, seconds: float, *, rest: float = 0) -> Iterator[bool]:
    """Hold the lease of this name for at most ``seconds``, and yield whether this process got it.

    One process of the whole site has it at a time; after its end nobody gets it again for ``rest`` seconds. Work that
    fails has not ended: the time of its last success stays.
    """
    me, length = f"{process_name()}:{threading.get_ident()}", timedelta(seconds=seconds)
    free = Lease.objects.filter(name=name, until__lte=Now())
    is_ours = bool(free.update(holder=me, until=Now() + length)) or create_lease(name, me, length)
    ended: dict[str, Now] = {}
    try:
        yield is_ours
        ended = {"ended_at": Now()}
    finally:
        if is_ours:
            # A sum has microseconds on SQLite, so it is later than the millisecond that it is made in.
            until = Now() + timedelta(seconds=rest) if rest else Now()
            Lease.objects.filter(name=name, holder=me).update(until=until, **ended)


def create_lease(name: str, holder: str, length: timedelta) -> bool:
    """Create the lease; False if it exists already."""
    if Lease.objects.filter(name=name).exists():
        return False
    try:
        with transaction.atomic():
            Lease.objects.create(name=name, holder=holder, until=Now() + length)
    except IntegrityError:
        return False
    return True
