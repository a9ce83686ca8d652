"""Long work that leaves room for others: for other writers, for other tasks, and for whoever wants to stop."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.db import connection, transaction

ROWS_AT_ONCE: Final = 64
# On SQLite the threads of a process take turns at writing: see `in_turn`.
WRITERS: Final = threading.RLock()
# Set once this process is told to stop: long work is handed over at the next chance.
LEAVING: Final = threading.Event()


def time_is_up(until: float | None) -> bool:
    """Whether work that may last until that moment of the monotonic clock (None: to its end) must stop now."""
    return LEAVING.is_set() or (until is not None and time.monotonic() >= until)


def rest_after(seconds: float) -> float:
    """How long to leave the database alone after a transaction that took so long."""
    return seconds if connection.vendor == "sqlite" else 0.0


@contextmanager
def in_turn() -> Iterator[None]:
    """A transaction of one of many people.

    SQLite lets those who wait for its one lock try again by chance, and among fifty some never have their
    turn. Here the threads of the process wait in front of it instead; on PostgreSQL nobody does.
    """
    if connection.vendor != "sqlite" or connection.in_atomic_block:
        with transaction.atomic():
            yield
        return
    with WRITERS, transaction.atomic():
        yield


@contextmanager
def paced() -> Iterator[None]:
    """Round a transaction that is one of many: on SQLite it is followed by a pause as long as it took."""
    began = time.monotonic()
    yield
    time.sleep(rest_after(time.monotonic() - began))


class Pace:
    """Transactions of one long work, with the same pauses; what the work does in between counts as pause."""

    def __init__(self) -> None:
        self.seconds = 0.0  # that the last transaction took
        self._free_from = 0.0

    @contextmanager
    def turn(self) -> Iterator[None]:
        self.rest()
        began = time.monotonic()
        yield
        ended = time.monotonic()
        self.seconds = ended - began
        self._free_from = ended + rest_after(self.seconds)

    def rest(self) -> None:
        """What is left of the pause."""
        time.sleep(max(0.0, self._free_from - time.monotonic()))
