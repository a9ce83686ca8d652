"""Kinds of background jobs, with the claim that a worker holds on one job."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache
from time import monotonic
from typing import Final, TypeVar

from django.db.backends.utils import CursorWrapper
from django.utils.module_loading import autodiscover_modules

from evaluations.models.jobs import Job, extend_lease

LEASE: Final = timedelta(seconds=60)

ATTEMPTS: Final = 2


def ignore_loss(job: Job) -> None:
    """Most kinds have nothing to put right when a worker dies."""


Passing = TypeVar("Passing")


@dataclass
class JobClaim:
    """A job in this process's hands. ``until``: the moment of the monotonic clock at which to hand it over."""

    job: Job
    until: float | None = None
    # How long the job is left alone after this step.
    pause: timedelta = timedelta()
    _due: float = field(default_factory=lambda: monotonic() + HEARTBEAT_SECONDS)

    def heartbeat(
        self, position: int | None = None, total: int | None = None, *, cursor: CursorWrapper | None = None
    ) -> None:
        """Extend the lease and note the progress; raise LeaseLost where the job is no longer ours.

        Inside the transaction of a change it makes sure that nobody else makes the same change.
        """
        job = self.job
        kind = kind_of(job)
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

    def along(self, passing: Iterable[Passing]) -> Iterator[Passing]:
        """Iterate with a heartbeat every second."""
        for one in passing:
            self.heartbeat_if_due()
            yield one


@dataclass(frozen=True)
class JobKind:
    """How a kind of job is worked on.

    ``step`` works on a claimed job for a while and returns whether it is done. ``attempts``: after how many claims that
    did not come back the job is set aside. ``starts_over``: each claim begins anew instead of going on. ``on_loss`` is
    called when a worker died at the job. ``on_give_up``: where the job's row itself says that it failed, instead of
    the job being set aside until somebody retries it. Both are called inside the transaction that notes it.
    """

    name: str
    step: Callable[[JobClaim], bool] | None  # None: only the process that created the job works on it
    lease: timedelta = LEASE
    attempts: int = ATTEMPTS
    starts_over: bool = False
    counts_faults: bool = False  # a fault of the step counts as an attempt
    keeps_whole_lease: bool = False  # also where the worker is known to be dead
    per_worker: int | None = None  # how many of this kind one process works on at a time
    on_loss: Callable[[Job], None] = ignore_loss
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


def kind_of(job: Job) -> JobKind:
    return get_kind(job.kind)


HEARTBEAT_SECONDS: Final = 1.0


class LeaseLost(Exception):
    """The job was cancelled, begun anew or given to somebody else: do no more of it."""
