"""Short transactions that leave room for other writers, and how much one writes."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.db import connection, transaction

SHORT_TRANSACTION_ROWS: Final = 64
ROWS_PER_TRANSACTION: Final = {"sqlite": 64, "postgresql": 512}
# Bulk writes past the ORM: the fewest rows of a transaction, and the time up to which the next may have more.
MIN_BULK_ROWS: Final = {"sqlite": 256, "postgresql": 2_048}
TRANSACTION_SECONDS: Final = {"sqlite": 0.012, "postgresql": 0.2}
MAX_BULK_ROWS: Final = 4_096
# Rows whose existence is looked up at once. On SQLite the next ones are read during the pauses.
ROWS_PER_LOOKUP: Final = {"sqlite": 512, "postgresql": 4_096}
COMPARISONS_INDEXED_AT_ONCE: Final = {"sqlite": 128, "postgresql": 500}
# On SQLite the threads of a process take turns at writing: see `in_turn`.
SQLITE_WRITE_LOCK: Final = threading.RLock()
# Set once this process is told to stop: long work is handed over at the next chance.
PROCESS_STOPPING: Final = threading.Event()


def is_time_up(until: float | None) -> bool:
    """Whether work that may last until that moment of the monotonic clock (None: to its end) must stop now."""
    return PROCESS_STOPPING.is_set() or (until is not None and time.monotonic() >= until)


def has_single_writer() -> bool:
    """Whether the database takes one write at a time, as SQLite does."""
    return connection.vendor == "sqlite"


def write_pause_seconds(seconds: float) -> float:
    """Seconds to leave the database alone after a write that took `seconds`."""
    return seconds if connection.vendor == "sqlite" else 0.0


@contextmanager
def transaction_in_turn(*, waits_for_disk: bool = True) -> Iterator[None]:
    """Open a transaction; on SQLite the threads of a process wait for each other in order.

    SQLite lets those who wait for its one lock try again by chance, and among fifty some never have their
    turn. Here the threads of the process wait in front of it instead; on PostgreSQL nobody does.

    ``waits_for_disk``: False where a crash of PostgreSQL may lose the last half second of it, but never a part of it.
    """
    is_outermost = not connection.in_atomic_block
    if connection.vendor != "sqlite" or not is_outermost:
        with transaction.atomic():
            if is_outermost and not waits_for_disk:
                with connection.cursor() as cursor:
                    cursor.execute("SET LOCAL synchronous_commit TO OFF")
            yield
        return
    with SQLITE_WRITE_LOCK, transaction.atomic():
        yield


@contextmanager
def limit_write_wait(milliseconds: int) -> Iterator[None]:
    """On SQLite, wait no longer than this for another writer, then raise DatabaseError."""
    if connection.vendor != "sqlite":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA busy_timeout")
        (former,) = cursor.fetchone()
        cursor.execute(f"PRAGMA busy_timeout = {milliseconds:d}")
        try:
            yield
        finally:
            cursor.execute(f"PRAGMA busy_timeout = {former:d}")


@contextmanager
def pause_after_transaction() -> Iterator[None]:
    """Pause, on SQLite, as long after the block as its transaction took."""
    began = time.monotonic()
    yield
    time.sleep(write_pause_seconds(time.monotonic() - began))


class TransactionPacer:
    """Pauses between the transactions of one long job; work done in between counts as pause."""

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
        self._free_from = ended + write_pause_seconds(self.seconds)

    def rest(self) -> None:
        """Sleep for the rest of the pause."""
        time.sleep(max(0.0, self._free_from - time.monotonic()))


def rows_per_transaction() -> int:
    """How many rows one transaction writes through the ORM."""
    return ROWS_PER_TRANSACTION[connection.vendor]


def min_bulk_rows() -> int:
    """How many rows the first transaction of a bulk write has, before its speed is known."""
    return MIN_BULK_ROWS[connection.vendor]


def rows_per_lookup() -> int:
    return ROWS_PER_LOOKUP[connection.vendor]


def comparisons_indexed_at_once() -> int:
    return COMPARISONS_INDEXED_AT_ONCE[connection.vendor]


def next_bulk_rows(rows: int, seconds: float) -> int:
    """How many rows the next transaction writes, after one with this many rows took this long."""
    limit = TRANSACTION_SECONDS[connection.vendor]
    if seconds > limit:
        return max(min_bulk_rows(), rows // 2)
    return min(MAX_BULK_ROWS, rows * 2) if seconds * 2 < limit else rows
