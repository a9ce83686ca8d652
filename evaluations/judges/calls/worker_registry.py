"""The registry of live worker processes, by which they divide the limits of an endpoint.

A new worker counts the requests in flight of all workers until every other has noticed it, so that shares never
add up to more than the limit. A worker that missed its heartbeat sends nothing until it has reported and been
noticed again.
"""

import logging
import math
import os
import socket
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db import Error, close_old_connections, connections
from django.db.models import Max
from django.db.models.functions import Now

from evaluations.judges.endpoints.selectors import endpoint_timeout
from evaluations.llm.capacity import Capacity
from evaluations.llm.rate_limits import RateLimits
from evaluations.models.jobs import WORKER_ALIVE, Worker, process_name
from evaluations.models.judges import Endpoint

# After the timeout, until requests that were sent before their sender noticed a new worker have surely ended.
SETTLING_SECONDS: Final = 5.0
# After a report; well before others count this worker as dead, so that requests being sent are on their way.
STALE_SECONDS: Final = 15.0
NOTICED_AFTER: Final = timedelta(seconds=1)  # a row is committed a moment after its timestamp


@dataclass
class WorkerStanding:
    """This process among the live workers, as of its last report. Times are of the monotonic clock.

    ``busy``: workers with requests in flight, this one included. ``noticed_at``: when all others knew of this one.
    ``unsettled``: the others that may still have requests in flight from before they noticed this one, each with the
    time of the report after which it knew. ``is_back``: its heartbeat was late, and others may not know yet that it
    lives. ``death_at``: the last sign of life of the worker that was killed last.
    """

    rank: int = 0
    workers: int = 1
    busy: int = 1
    reported_at: float | None = None
    noticed_at: float | None = None
    unsettled: Mapping[str, datetime] = field(default_factory=dict)
    is_back: bool = False
    death_at: float = -math.inf


@dataclass
class EndpointShare:
    """The capacity of one endpoint in this process, and the endpoint's limits as last read."""

    capacity: Capacity = field(default_factory=Capacity)
    limits: RateLimits = field(default_factory=RateLimits)


OWN_STANDING: Final = WorkerStanding()
ENDPOINT_SHARES: Final[dict[tuple[int, str], EndpointShare]] = {}


def endpoint_capacity(endpoint: Endpoint, slots: int | None = None) -> Capacity:
    """The capacity shared by all sessions of this process, within its share of the present limits."""
    shared = ENDPOINT_SHARES.setdefault((endpoint.pk, endpoint.base_url), EndpointShare())
    shared.limits = RateLimits(
        endpoint.max_in_flight, endpoint.requests_per_minute, endpoint.tokens_per_minute, slots=slots
    )
    apply_endpoint_share(shared)
    return shared.capacity


def endpoint_latency(endpoint: Endpoint) -> float:
    """Recent seconds per answer; 0 before this process got its first."""
    shared = ENDPOINT_SHARES.get((endpoint.pk, endpoint.base_url))
    return shared.capacity.latency if shared else 0.0


def apply_endpoint_shares() -> None:
    """Divide the limits of every endpoint anew, by the latest count of workers."""
    for shared in list(ENDPOINT_SHARES.values()):
        apply_endpoint_share(shared)


def apply_endpoint_share(shared: EndpointShare) -> None:
    share = divide_limits(shared.limits, OWN_STANDING.rank, OWN_STANDING.workers)
    is_divided = replace(shared.limits, slots=None) != RateLimits()
    until = share_expires_at() if is_divided else math.inf
    shared.capacity.set_limits(share, time.monotonic(), until, workers=OWN_STANDING.workers, busy=OWN_STANDING.busy)


def share_expires_at() -> float:
    """When this process must stop sending unless it reports again; one that never reported never expires."""
    if OWN_STANDING.is_back:
        return -math.inf
    return math.inf if OWN_STANDING.reported_at is None else OWN_STANDING.reported_at + STALE_SECONDS


def divide_limits(limits: RateLimits, rank: int, workers: int) -> RateLimits:
    """One worker's share of the limits; the first workers take the remainder of the slots."""
    slots, requests, tokens = limits.max_in_flight, limits.requests_per_minute, limits.tokens_per_minute
    return RateLimits(
        None if slots is None else slots // workers + (rank < slots % workers),
        None if requests is None else requests / workers,
        None if tokens is None else tokens / workers,
        limits.slots,
    )


def must_count_in_flight(endpoint: Endpoint) -> bool:
    """Whether requests in flight must be counted over all workers, because this one's share is not certain yet."""
    if endpoint.max_in_flight is None:
        return False
    now, reported_at = time.monotonic(), OWN_STANDING.reported_at
    is_fresh = reported_at is not None and now - reported_at < STALE_SECONDS
    return not is_fresh or may_have_earlier_requests(endpoint, now) or has_lost_worker(endpoint)


def may_have_earlier_requests(endpoint: Endpoint, now: float) -> bool:
    """Whether requests may be in flight that others sent before they noticed this process."""
    if OWN_STANDING.noticed_at is None:
        return True
    ended_at = OWN_STANDING.noticed_at + endpoint_timeout(endpoint) + SETTLING_SECONDS
    return bool(OWN_STANDING.unsettled) and now < ended_at


def has_lost_worker(endpoint: Endpoint) -> bool:
    """Whether requests of a killed worker may still be at the server."""
    last_sent_at = OWN_STANDING.death_at + STALE_SECONDS
    return time.monotonic() < last_sent_at + endpoint_timeout(endpoint) + SETTLING_SECONDS


def count_in_flight() -> int:
    return sum(shared.capacity.in_flight for shared in list(ENDPOINT_SHARES.values()))


def take_rank(name: str, reported_at: float | None = None) -> None:
    """Find the other live workers after a heartbeat, and whether all of them know of this one.

    ``reported_at``: when the report was begun, which may have taken long to store; now by default.
    """
    now = time.monotonic()
    reported_at = now if reported_at is None else reported_at
    others = {worker.name: worker for worker in Worker.objects.alive().exclude(name=name)}
    names = sorted([*others, name])
    OWN_STANDING.rank, OWN_STANDING.workers = names.index(name), len(names)
    OWN_STANDING.busy = 1 + sum(worker.in_flight > 0 for worker in others.values())
    was_late = OWN_STANDING.reported_at is not None and now - OWN_STANDING.reported_at >= STALE_SECONDS
    if OWN_STANDING.reported_at is None or was_late:
        Worker.objects.filter(name=name).update(started_at=Now())  # it returns as a new worker
        OWN_STANDING.noticed_at, OWN_STANDING.unsettled, OWN_STANDING.is_back = None, {}, was_late
    OWN_STANDING.reported_at = reported_at
    OWN_STANDING.death_at = now - seconds_since_death(name)
    if OWN_STANDING.noticed_at is not None:
        OWN_STANDING.unsettled = find_unsettled(OWN_STANDING.unsettled, others)
    elif is_noticed_by_all(name, others.values()):
        OWN_STANDING.noticed_at, OWN_STANDING.is_back = now, False
        OWN_STANDING.unsettled = {worker.name: worker.seen_at for worker in others.values()}


def seconds_since_death(name: str) -> float:
    """How long ago the last worker that did not sign off was heard of, before this one's report; infinity if none."""
    seen_at = Worker.objects.values_list("seen_at", flat=True).get(name=name)
    dead = Worker.objects.filter(seen_at__lte=Now() - WORKER_ALIVE).exclude(name=name)
    last: datetime | None = dead.aggregate(last=Max("seen_at"))["last"]
    return math.inf if last is None else max((seen_at - last).total_seconds(), 0.0)


def is_noticed_by_all(name: str, others: Iterable[Worker]) -> bool:
    """Whether every other worker has reported, and so looked, clearly after this one first did."""
    began = Worker.objects.values_list("started_at", flat=True).get(name=name)
    return all(worker.seen_at > began + NOTICED_AFTER for worker in others)


def find_unsettled(unsettled: Mapping[str, datetime], others: Mapping[str, Worker]) -> dict[str, datetime]:
    """Those that have had requests in flight ever since. One that signed off had none; a dead one is counted apart."""
    return {
        name: knew_at
        for name, knew_at in unsettled.items()
        if name in others and (others[name].in_flight or others[name].seen_at <= knew_at)
    }


def count_idle_workers() -> int:
    """How many live workers have nothing in flight."""
    return Worker.objects.alive().filter(in_flight=0).count()


def forget_own_standing() -> None:
    vars(OWN_STANDING).update(vars(WorkerStanding()))


WORKER_FORGOTTEN_AFTER: Final = timedelta(days=1)
HEARTBEAT_SECONDS: Final = 5.0
# A leaving worker stays registered while it has requests in flight.
DRAIN_CHECK_SECONDS: Final = 0.05

logger = logging.getLogger(__name__)


def record_heartbeat(name: str, *, host: str, pid: int, version: str, in_flight: int = 0) -> None:
    """Record that this process lives, by the database's clock."""
    if not Worker.objects.filter(name=name).update(seen_at=Now(), in_flight=in_flight):
        Worker.objects.create(name=name, host=host, pid=pid, version=version, started_at=Now(), seen_at=Now())
        Worker.objects.filter(seen_at__lt=Now() - WORKER_FORGOTTEN_AFTER).delete()


def send_heartbeats(leaving: threading.Event) -> None:
    """Send a heartbeat every five seconds until this process leaves, whatever happens to the database."""
    name = process_name()
    while not leaving.is_set() or count_in_flight():
        close_old_connections()
        began = time.monotonic()
        try:
            host, pid, in_flight = socket.gethostname(), os.getpid(), count_in_flight()
            record_heartbeat(name, host=host, pid=pid, version=settings.VERSION, in_flight=in_flight)
            take_rank(name, began)
            apply_endpoint_shares()
        except Error as error:
            logger.warning("The heartbeat was not stored: %s", str(error).partition("\n")[0])
        wait_for_next_heartbeat(leaving)
    sign_off(name)


def wait_for_next_heartbeat(leaving: threading.Event) -> None:
    """Wait for the next report; when leaving, until nothing is in flight, if that is sooner."""
    until = time.monotonic() + HEARTBEAT_SECONDS
    leaving.wait(HEARTBEAT_SECONDS)
    while count_in_flight() and time.monotonic() < until:
        time.sleep(DRAIN_CHECK_SECONDS)


def sign_off(name: str) -> None:
    forget_own_standing()
    try:
        Worker.objects.filter(name=name).delete()
    except Error as error:
        logger.warning("The worker's leave was not stored: %s", error)
    finally:
        connections.close_all()


@contextmanager
def registered_worker() -> Iterator[None]:
    """Register this process as a worker within the block."""
    leaving = threading.Event()
    thread = threading.Thread(target=send_heartbeats, args=(leaving,), name="heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        leaving.set()
        thread.join()
