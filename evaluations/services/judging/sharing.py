"""What this process may send to an endpoint: its share of the limits, and how much the server takes.

The living workers divide the limits of an endpoint by rank of their names. One that has just come
counts what all have in flight instead (`must_count`), until every other has noticed it and what
they sent before that has ended. So the shares of all never add up to more than the limit.

One that could not report in time may be taken for dead, and its share be given away. It sends nothing more
(`share_ends_at`) from before the others take it for dead until it has reported and every other has noticed it.
"""

import math
import time
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Final

from django.conf import settings
from django.db.models.functions import Now

from evaluations.judge.adapting import Capacity, Limits
from evaluations.models import Endpoint, Handshake, Worker
from evaluations.models.runs import WorkerQuerySet
from evaluations.outside.addresses import is_local_address

# How long a server on this machine or network may take, where nobody set a time: most are slow.
LOCAL_TIMEOUT_SECONDS: Final = 600
# Beyond the timeout, until a request that was sent before its sender noticed a newcomer has ended for sure.
SETTLING_SECONDS: Final = 5.0
# From a report on; a good while before others take this worker for dead, so that what is being sent is on its way.
STALE_SECONDS: Final = 15.0
NOTICED_AFTER: Final = timedelta(seconds=1)  # a row is committed a moment after the time that it bears


@dataclass
class Standing:
    """This process among the living workers, as of its last report. Times are of the monotonic clock.

    ``busy``: those of them that have requests in flight, this one counted in. ``noticed_at``: when all others knew
    of this one. ``is_back``: it was late, and others may not have noticed yet that it lives.
    """

    rank: int = 0
    workers: int = 1
    busy: int = 1
    reported_at: float | None = None
    noticed_at: float | None = None
    is_back: bool = False


@dataclass
class Shared:
    """What this process knows of one endpoint, and as what it last read it."""

    capacity: Capacity = field(default_factory=Capacity)
    limits: Limits = field(default_factory=Limits)


STANDING: Final = Standing()
KNOWN: Final[dict[tuple[int, str], Shared]] = {}


def capacity_of(endpoint: Endpoint, slots: int | None = None) -> Capacity:
    """The one that all bouts of this process share, within its share of the limits as they are now."""
    shared = KNOWN.setdefault((endpoint.pk, endpoint.base_url), Shared())
    shared.limits = Limits(
        endpoint.max_in_flight, endpoint.requests_per_minute, endpoint.tokens_per_minute, slots=slots
    )
    apply_share(shared)
    return shared.capacity


def slots_of(endpoint: Endpoint) -> int | None:
    """How many requests the server said it works on at once, at its latest handshake; None where it did not say."""
    found = Handshake.objects.filter(endpoint=endpoint).order_by("-checked_at", "-pk").values_list("result", flat=True)
    result = found.first()
    slots = result.get("slots") if isinstance(result, dict) else None
    return slots if isinstance(slots, int) and not isinstance(slots, bool) and slots > 0 else None


def latency_at(endpoint: Endpoint) -> float:
    """Seconds that its answers took lately; 0 before the first one that this process got."""
    shared = KNOWN.get((endpoint.pk, endpoint.base_url))
    return shared.capacity.latency if shared else 0.0


def timeout_of(endpoint: Endpoint) -> float:
    """Seconds after which a request to it is given up: as was set, or long for a server of this machine or network."""
    if endpoint.timeout_seconds is not None:
        return endpoint.timeout_seconds
    return LOCAL_TIMEOUT_SECONDS if is_local_address(endpoint.base_url) else settings.REQUEST_TIMEOUT_SECONDS


def apply_shares() -> None:
    """After a report: every endpoint that this process asks at, by the latest count of workers."""
    for shared in list(KNOWN.values()):
        apply_share(shared)


def apply_share(shared: Shared) -> None:
    share = share_of(shared.limits, STANDING.rank, STANDING.workers)
    is_divided = replace(shared.limits, slots=None) != Limits()
    until = share_ends_at() if is_divided else math.inf
    shared.capacity.set_limits(share, time.monotonic(), until, workers=STANDING.workers, busy=STANDING.busy)


def share_ends_at() -> float:
    """When this process must stop sending if it cannot report again; one that never reported counts instead."""
    if STANDING.is_back:
        return -math.inf
    return math.inf if STANDING.reported_at is None else STANDING.reported_at + STALE_SECONDS


def share_of(limits: Limits, rank: int, workers: int) -> Limits:
    """The first ones take what is left over when the places at once do not divide evenly."""
    places, requests, tokens = limits.max_in_flight, limits.requests_per_minute, limits.tokens_per_minute
    return Limits(
        None if places is None else places // workers + (rank < places % workers),
        None if requests is None else requests / workers,
        None if tokens is None else tokens / workers,
        limits.slots,
    )


def must_count(endpoint: Endpoint) -> bool:
    """Whether its places at once must be counted over all workers: this one cannot rely on its share yet."""
    if endpoint.max_in_flight is None:
        return False
    now = time.monotonic()
    standing = STANDING
    is_fresh = standing.reported_at is not None and now - standing.reported_at < STALE_SECONDS
    return not (is_fresh and now >= settles_at(endpoint))


def settles_at(endpoint: Endpoint) -> float:
    """When what others sent to it before they noticed this process has ended."""
    noticed_at = math.inf if STANDING.noticed_at is None else STANDING.noticed_at
    return noticed_at + timeout_of(endpoint) + SETTLING_SECONDS


def in_flight() -> int:
    return sum(shared.capacity.in_flight for shared in list(KNOWN.values()))


def take_place(name: str, reported_at: float | None = None) -> None:
    """After each report of this process: who else lives, and whether all of them know of it.

    ``reported_at``: when the report was begun, for it may have taken long to be stored; without it now.
    """
    now = time.monotonic()
    reported_at = now if reported_at is None else reported_at
    others = Worker.objects.alive().exclude(name=name)
    names = sorted([*others.values_list("name", flat=True), name])
    STANDING.rank, STANDING.workers = names.index(name), len(names)
    STANDING.busy = 1 + others.filter(in_flight__gt=0).count()
    was_late = STANDING.reported_at is not None and now - STANDING.reported_at >= STALE_SECONDS
    if STANDING.reported_at is None or was_late:
        Worker.objects.filter(name=name).update(started_at=Now())  # it comes back as a newcomer
        STANDING.noticed_at, STANDING.is_back = None, was_late
    STANDING.reported_at = reported_at
    if STANDING.noticed_at is None and is_known_to(name, others):
        STANDING.noticed_at = now if len(names) > 1 else -math.inf
        STANDING.is_back = False


def is_known_to(name: str, others: WorkerQuerySet) -> bool:
    """Each of them has reported, and so looked round, clearly after this one first did."""
    began = Worker.objects.values_list("started_at", flat=True).get(name=name)
    return not others.filter(seen_at__lte=began + NOTICED_AFTER).exists()


def idle_workers() -> int:
    """Living workers that have nothing in flight."""
    return Worker.objects.alive().filter(in_flight=0).count()


def forget_standing() -> None:
    """This process is no worker any more."""
    STANDING.rank, STANDING.workers, STANDING.busy = 0, 1, 1
    STANDING.reported_at, STANDING.noticed_at, STANDING.is_back = None, None, False
