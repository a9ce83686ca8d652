"""Background jobs that are set aside because they killed their worker twice."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from django.db.models import Count

from evaluations.domain.errors import InputRefused
from evaluations.models.jobs import JobStart, Worker

MAX_WORKER_DEATHS: Final = 2
SET_ASIDE_REASON: Final = (
    f"Set aside: the worker died {MAX_WORKER_DEATHS} times at this work. Look at the worker's log."
)

logger = logging.getLogger(__name__)


@dataclass
class JobSession:
    """One stretch of work on a job. ``goes_on``: whether another one follows."""

    goes_on: bool = False


@contextmanager
def watch_job(kind: str, subject: int, worker: str) -> Iterator[JobSession | None]:
    """A stretch of work by this worker; None where the job is set aside and must not be worked on."""
    starts = JobStart.objects.filter(kind=kind, subject=subject)
    mark_dead_starts(kind, subject, worker)
    if starts.filter(died=True).count() >= MAX_WORKER_DEATHS:
        logger.error("%s %s: %s", kind, subject, SET_ASIDE_REASON)
        yield None
        return
    mine = JobStart.objects.create(kind=kind, subject=subject, worker=worker)
    stretch = JobSession()
    try:
        yield stretch
    except BaseException:  # a fault, or a soft stop: the worker lives on
        mine.delete()
        raise
    if stretch.goes_on:
        mine.delete()
    else:
        starts.filter(worker=worker).delete()
        starts.filter(died=True).delete()


def mark_dead_starts(kind: str, subject: int, worker: str) -> None:
    """Stretches whose worker is gone were ended by its death."""
    alive = Worker.objects.alive().values("name")
    begun = JobStart.objects.filter(kind=kind, subject=subject, died=False)
    begun.exclude(worker=worker).exclude(worker__in=alive).update(died=True)


def list_jobs_set_aside() -> list[tuple[str, int]]:
    """(kind, subject) of each job that is set aside."""
    died = JobStart.objects.filter(died=True).values("kind", "subject").order_by("kind", "subject")
    found = died.annotate(deaths=Count("pk")).filter(deaths__gte=MAX_WORKER_DEATHS)
    return [(one["kind"], one["subject"]) for one in found]


def forget_deaths(kind: str, subject: int) -> int:
    """The job counts as never tried; how many deaths it had."""
    return JobStart.objects.filter(kind=kind, subject=subject, died=True).delete()[0]


def retry_job(kind: str, subject: int) -> None:
    """Let a job that is set aside be worked on again; the next sweep begins it."""
    if not forget_deaths(kind, subject):
        raise InputRefused(f"No job “{kind} {subject}” is set aside. `manage.py doctor` lists those that are.")
