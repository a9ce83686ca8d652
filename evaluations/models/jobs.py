"""Workers and the background jobs that they have begun."""

from datetime import timedelta
from typing import Final

from django.db import models
from django.db.models.functions import Now

from evaluations.models.base import Row

# A worker reports itself every 5 seconds: three reports missed, and it counts as gone.
WORKER_ALIVE: Final = timedelta(seconds=20)


class WorkerQuerySet(models.QuerySet["Worker"]):
    def alive(self) -> "WorkerQuerySet":
        """The processes that were heard of lately, by the database's clock."""
        return self.filter(seen_at__gt=Now() - WORKER_ALIVE)


class Worker(Row):
    """A process that works calls, as it last reported itself."""

    name = models.CharField(max_length=200, unique=True)
    host = models.CharField(max_length=200)
    pid = models.PositiveIntegerField()
    version = models.CharField(max_length=40)
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField()
    in_flight = models.PositiveIntegerField(default=0)

    objects = WorkerQuerySet.as_manager()

    def __str__(self) -> str:
        return self.name


IMPORT_LEASE: Final = timedelta(minutes=1)


class JobStart(Row):
    """A stretch of work on a job that a worker has begun and not ended. ``died``: the worker did not live to end it."""

    kind = models.CharField(max_length=40)
    subject = models.BigIntegerField()
    worker = models.CharField(max_length=200)
    died = models.BooleanField(default=False)

    class Meta:
        indexes = [models.Index(fields=["kind", "subject"], name="job_start_of_job")]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}"
