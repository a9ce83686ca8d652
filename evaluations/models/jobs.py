"""Background jobs at work, so that one that kills its worker is found."""

from django.db import models

from evaluations.models.row import Row


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
