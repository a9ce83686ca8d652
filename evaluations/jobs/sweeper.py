"""What killed workers left: jobs are put back, or set aside once they killed too many."""

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
from evaluations.jobs.claims import process_name
from evaluations.jobs.kinds import job_kinds, kind_of
from evaluations.jobs.nudges import WorkerTask, nudge
from evaluations.models.jobs import Job, Lease

SWEPT_AT_ONCE: Final = 200

logger = logging.getLogger(__name__)


def sweep_jobs(*, expires: float | None = None) -> None:
    """Put back what killed workers held and tell workers of what waits."""
    put_back_lost_jobs()
    due = Job.objects.due().filter(kind__in=job_kinds()).order_by("not_before", "pk")
    for pk in due.values_list("pk", flat=True)[:SWEPT_AT_ONCE]:
        nudge(WorkerTask.WORK_ON_JOB, pk, expires=expires)


def put_back_lost_jobs(kind: str | None = None, subject: int | None = None) -> None:
    """Jobs whose worker is gone wait again, or are set aside."""
    keeping = [one.name for one in job_kinds().values() if one.keeps_whole_lease]
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
    if not same.update(state=JobState.WAITING, claim=None, claimed_by="", lease_until=None):
        return
    kind = kind_of(job)
    kind.on_loss(job)
    if job.attempts >= kind.attempts:
        set_aside_job(job)


def set_aside_job(job: Job) -> None:
    """No worker takes it again unless somebody says so."""
    times = f"{job.attempts} time{'' if job.attempts == 1 else 's'}"
    reason = f"Set aside: the worker died {times} at this work. Look at the worker's log."
    logger.error("%s: %s", job, reason)
    give_up = kind_of(job).on_give_up
    state = JobState.FAILED if give_up else JobState.SET_ASIDE
    Job.objects.filter(pk=job.pk).update(state=state, reason=reason, not_before=None, finished_at=Now())
    if give_up:
        give_up(job, reason)


def jobs_set_aside() -> list[Job]:
    return list(Job.objects.filter(state=JobState.SET_ASIDE).order_by("kind", "subject"))


@transaction.atomic
def retry_job(kind: str, subject: int) -> None:
    """Let a job that is set aside be worked on again."""
    jobs = Job.objects.filter(kind=kind, subject=subject, state=JobState.SET_ASIDE)
    if not jobs.update(state=JobState.WAITING, attempts=0, reason="", finished_at=None):
        raise InputRefused(f"No job “{kind} {subject}” is set aside. `manage.py doctor` lists those that are.")
    nudge(WorkerTask.WORK_ON_JOB, jobs.model.objects.get(kind=kind, subject=subject).pk)


# ---- one process of the whole site at a time ---------------------------------------------------


@contextmanager
def site_lease(name: str, seconds: float, *, rest: float = 0) -> Iterator[bool]:
    """Whether this process may do what bears the name: nobody else does until it ends, or so many seconds are over.

    After its end nobody does it again for ``rest`` seconds.
    """
    me, length = f"{process_name()}:{threading.get_ident()}", timedelta(seconds=seconds)
    free = Lease.objects.filter(name=name, until__lte=Now())
    is_ours = bool(free.update(holder=me, until=Now() + length)) or is_new_lease(name, me, length)
    try:
        yield is_ours
    finally:
        if is_ours:
            # A sum has microseconds on SQLite, so that it is later than the millisecond that it is made in.
            until = Now() + timedelta(seconds=rest) if rest else Now()
            Lease.objects.filter(name=name, holder=me).update(until=until)


def is_new_lease(name: str, holder: str, length: timedelta) -> bool:
    if Lease.objects.filter(name=name).exists():
        return False
    try:
        with transaction.atomic():
            Lease.objects.create(name=name, holder=holder, until=Now() + length)
    except IntegrityError:
        return False
    return True
