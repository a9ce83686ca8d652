"""Kinds of background jobs, with the claim that a worker holds on one job."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from time import monotonic
from typing import Final

from django.db.backends.utils import CursorWrapper
from django.utils.module_loading import autodiscover_modules

from evaluations.models.jobs import Job, extend_lease

HEARTBEAT_SECONDS: Final = 1.0
ATTEMPTS: Final = 2


class LeaseLost(Exception):
    """The job was cancelled, restarted or claimed by another worker: stop working on it."""


@dataclass
class JobClaim:
    """A job that this process has claimed. ``until``: when to hand it over, on the monotonic clock."""

    job: Job
    until: float | None = None
    pause: timedelta = timedelta()  # before the job's next step
    _due: float = field(default_factory=lambda: monotonic() + HEARTBEAT_SECONDS)

    def heartbeat(
        self, position: int | None = None, total: int | None = None, *, cursor: CursorWrapper | None = None
    ) -> None:
        """Extend the lease and record the progress; raise LeaseLost if this process no longer holds the job.

        Inside the transaction of a change it makes sure that no other worker makes the same change.
        """
        job, kind = self.job, get_kind(self.job.kind)
        seconds = int(kind.lease.total_seconds())
        if not extend_lease(job, seconds, position, total, resumes=not kind.starts_over, cursor=cursor):
            raise LeaseLost(f"{job} is no longer ours.")
        job.position = job.position if position is None else position
        job.total = job.total if total is None else total
        self._due = monotonic() + HEARTBEAT_SECONDS

    def is_heartbeat_due(self) -> bool:
        return monotonic() >= self._due

    def heartbeat_if_due(self, position: int | None = None) -> None:
        if self.is_heartbeat_due():
            self.heartbeat(position)


@dataclass(frozen=True)
class JobKind:
    """How a kind of job is worked on.

    ``step`` works on a claimed job for a while and returns whether it is done. ``attempts``: the number of claims lost
    with their workers after which the job is set aside. ``starts_over``: each claim begins anew instead of continuing.
    ``on_loss`` is called when a worker died while it held the job. ``on_give_up``: the job fails, and this records it,
    instead of the job being set aside until a person retries it. Both are called inside the transaction of the change.
    """

    name: str
    step: Callable[[JobClaim], bool] | None  # None: only the process that created the job works on it
    lease: timedelta = timedelta(seconds=60)
    attempts: int = ATTEMPTS
    starts_over: bool = False
    counts_faults: bool = False  # a fault of the step counts as an attempt
    keeps_whole_lease: bool = False  # even if the worker is known to be dead
    per_worker: int | None = None  # how many of this kind one process works on at a time
    on_loss: Callable[[Job], None] | None = None
    on_give_up: Callable[[Job, str], None] | None = None


_KINDS: Final[dict[str, JobKind]] = {}


def register_job_kind(kind: JobKind) -> JobKind:
    _KINDS[kind.name] = kind
    return kind


@cache
def job_kinds() -> dict[str, JobKind]:
    """All kinds by name. The first call loads their modules, most of the product, in more than a second."""
    autodiscover_modules("tasks")
    return _KINDS


def get_kind(name: str) -> JobKind:
    """The kind of this name. One whose module is loaded is found without the others."""
    return _KINDS[name] if name in _KINDS else job_kinds()[name]
