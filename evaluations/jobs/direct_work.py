"""Work that no message brings: a worker with an idle slot does it by what the rows say.

Messages are lost with a broker that is away, was emptied, or accepts them and never delivers.
"""

import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Final

from celery import current_app
from django.db import connections

# A name of a task and the ids it is given.
Work = tuple[str, tuple[int, ...]]
# Work that waits for so long under the sweeps of a worker with an idle slot is done there: its messages did not arrive.
UNANSWERED_SECONDS: Final = 8.0


@dataclass
class Slots:
    """The slots of this worker. ``count_busy`` counts those in which messages are worked."""

    executor: ThreadPoolExecutor
    number: int
    count_busy: Callable[[], int]
    at_work: set[Work] = field(default_factory=set)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def reserve(self, work: Work) -> bool:
        with self.lock:
            if work in self.at_work or len(self.at_work) + self.count_busy() >= self.number:
                return False
            self.at_work.add(work)
            return True

    def release(self, work: Work) -> None:
        with self.lock:
            self.at_work.discard(work)


# None: this process is no worker, and does nothing itself.
SLOTS: list[Slots] = []
# Since when the sweeps of this process have found work waiting, on the monotonic clock.
FOUND: dict[Work, float] = {}


def offer_slots(number: int, count_busy: Callable[[], int]) -> None:
    """Let this process work without messages, in at most as many slots as it has."""
    SLOTS[:] = [Slots(ThreadPoolExecutor(number, thread_name_prefix="direct"), number, count_busy)]


def take(task: str, ids: tuple[int, ...]) -> bool:
    """Do the work in an idle slot of this worker; whether there was one."""
    work = (str(task), ids)
    if not SLOTS or not SLOTS[0].reserve(work):
        return False
    try:
        SLOTS[0].executor.submit(do_work, SLOTS[0], work)
    except RuntimeError:  # the process is ending
        SLOTS[0].release(work)
        return False
    return True


def do_work(slots: Slots, work: Work) -> None:
    name, ids = work
    try:
        current_app.tasks[name].apply(ids)  # Celery logs what fails
    finally:
        slots.release(work)
        connections.close_all()


def take_unanswered(found: Iterable[Work]) -> None:
    """Do what a sweep found, if sweeps of this process have found it for long."""
    now = time.monotonic()
    since = {work: FOUND.get(work, now) for work in found}
    FOUND.clear()
    FOUND.update(since)
    for work, first in since.items():
        if first <= now - UNANSWERED_SECONDS:
            take(*work)
