"""Workers and the background jobs that they have begun."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Collection
from contextlib import nullcontext
from datetime import timedelta
from typing import Final

from django.db import connection, models
from django.db.backends.utils import CursorWrapper
from django.db.models import Q
from django.db.models.functions import Now

from evaluations.domain.jobs import OPEN_JOB_STATES, UNFINISHED_JOB_STATES, JobState
from evaluations.models.base import Row, enum_choices, enum_constraint
from evaluations.models.evaluations import Evaluation

# A worker reports itself every 5 seconds: three reports missed, and it counts as gone.
WORKER_ALIVE: Final = timedelta(seconds=20)


# By process, because a fork is another one.
START_IDS: Final[dict[int, str]] = {}


def process_name() -> str:
    """The name of this process as a worker, and in its claims on jobs.

    A container starts again under the same host and number: without an id of this start it would take over the row of
    the process that died there, and not count the requests that this one left in flight.
    """
    pid = os.getpid()
    return f"{socket.gethostname()}:{pid}:{START_IDS.setdefault(pid, secrets.token_hex(3))}"


class WorkerQuerySet(models.QuerySet["Worker"]):
    def alive(self) -> WorkerQuerySet:
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
        return f"{self.host}:{self.pid}"


# Raw: an ORM update took as long as fifty rows of an import, and each of its transactions has a heartbeat.
HEARTBEAT: Final = {
    vendor: f"UPDATE evaluations_job SET heartbeat_at = {now}, lease_until = {lease_end}, "
    "attempts = CASE WHEN %s AND COALESCE(%s, position) > position THEN 1 ELSE attempts END, "
    "position = COALESCE(%s, position), total = COALESCE(%s, total) "
    "WHERE id = %s AND claim = %s AND state = 'running'"
    for vendor, now, lease_end in (
        (
            "sqlite",
            "STRFTIME('%%Y-%%m-%%d %%H:%%M:%%f', 'NOW')",
            "STRFTIME('%%Y-%%m-%%d %%H:%%M:%%f', 'NOW', '+' || %s || ' seconds')",
        ),
        ("postgresql", "STATEMENT_TIMESTAMP()", "STATEMENT_TIMESTAMP() + %s * INTERVAL '1 second'"),
    )
}


def extend_lease(
    job: Job,
    seconds: int,
    position: int | None,
    total: int | None,
    *,
    resumes: bool,
    cursor: CursorWrapper | None = None,
) -> bool:
    """Extend the lease of a claimed job and store its progress; whether the claim still holds.

    ``resumes``: the next claim continues at the position, so that progress forgives the deaths of workers before it.
    """
    claim = job.claim.hex if job.claim and connection.vendor == "sqlite" else job.claim
    with connection.cursor() if cursor is None else nullcontext(cursor) as used:
        used.execute(HEARTBEAT[connection.vendor], (seconds, resumes, position, position, total, job.pk, claim))
        return bool(used.rowcount)


class JobQuerySet(models.QuerySet["Job"]):
    def open(self) -> JobQuerySet:
        return self.filter(state__in=OPEN_JOB_STATES)

    def unfinished(self) -> JobQuerySet:
        """Open ones, and those that are set aside: what they were to do is not done."""
        return self.filter(state__in=UNFINISHED_JOB_STATES)

    def due(self) -> JobQuerySet:
        """The jobs that may be claimed now."""
        return self.filter(Q(not_before__isnull=True) | Q(not_before__lte=Now()), state=JobState.WAITING)

    def lost(self, keeping_lease: Collection[str] = ()) -> JobQuerySet:
        """The jobs whose lease expired or whose worker died; for some kinds only the former."""
        dead = Worker.objects.filter(seen_at__lte=Now() - WORKER_ALIVE).values("name")
        silent = Q(claimed_by__in=dead, heartbeat_at__lte=Now() - WORKER_ALIVE) & ~Q(kind__in=keeping_lease)
        return self.filter(Q(lease_until__lt=Now()) | silent, state=JobState.RUNNING)

    def skipping_locked(self) -> JobQuerySet:
        """Locked, without those that somebody else has locked. SQLite has no locks of rows."""
        if connection.features.has_select_for_update_skip_locked:
            return self.select_for_update(skip_locked=True, of=("self",))
        return self


class Job(Row):
    """One piece of background work: ``subject`` is the id of the row that it is about, as its kind reads it.

    ``claim`` is the key of whoever works on it, until ``lease_until``. ``attempts`` counts claims that did not come
    back since it last progressed. ``position`` of ``total`` says how far the work is, ``begun_at`` since when.
    It has waited since ``queued_at``, or since ``not_before`` if that is later.
    """

    kind = models.CharField(max_length=40)
    subject = models.BigIntegerField()
    evaluation = models.ForeignKey(Evaluation, on_delete=models.PROTECT, null=True, related_name="jobs")
    state = models.CharField(max_length=12, default=JobState.WAITING.value, choices=enum_choices(JobState))
    claim = models.UUIDField(null=True)
    claimed_by = models.CharField(max_length=200, blank=True)
    lease_until = models.DateTimeField(null=True)
    heartbeat_at = models.DateTimeField(null=True)
    not_before = models.DateTimeField(null=True)
    queued_at = models.DateTimeField(db_default=Now())
    position = models.PositiveBigIntegerField(default=0)
    total = models.PositiveBigIntegerField(null=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    reason = models.TextField(blank=True)
    begun_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    objects = JobQuerySet.as_manager()

    class Meta:
        constraints = [
            enum_constraint("state", JobState, "job_state"),
            models.UniqueConstraint(fields=["kind", "subject"], name="job_once"),
        ]
        indexes = [
            models.Index(
                fields=["state", "not_before"],
                condition=Q(state__in=[state.value for state in OPEN_JOB_STATES]),
                name="job_open",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}"


class Lease(Row):
    """Work that one process of the whole site does at a time, such as the sweep, and when it last ended."""

    name = models.CharField(max_length=40, unique=True)
    holder = models.CharField(max_length=200, blank=True)
    until = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)


class CallTotal(Row):
    """What all requests to LLM servers with one outcome add up to, for monitors. A sweep adds those since the last."""

    outcome = models.CharField(max_length=10, unique=True)
    requests = models.PositiveBigIntegerField(default=0)
    tokens_in = models.PositiveBigIntegerField(default=0)
    tokens_out = models.PositiveBigIntegerField(default=0)
    cost = models.BigIntegerField(default=0)
    latency_ms = models.PositiveBigIntegerField(default=0)


class CallTotalCursor(Row):
    """The last request that the totals hold: one row, created at the first sweep of a site."""

    attempt = models.PositiveBigIntegerField()
