"""Processor time of a request in this process and in its PostgreSQL backend, beside the time of the clock.

SQLite works in this process. The backend's time does not contain that of parallel workers of a query.
"""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Final

from django.db import connection

TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Cost:
    """Milliseconds of the clock, of the processor in this process, and of the processor in the database's server."""

    clock: float
    own: float
    database: float

    @property
    def processor(self) -> float:
        return self.own + self.database

    def as_json(self) -> dict[str, float]:
        return {
            "clock_ms": round(self.clock, 1),
            "processor_ms": round(self.own, 1),
            "database_ms": round(self.database, 1),
        }


def find_backend() -> int | None:
    """The process of this connection's PostgreSQL backend; None for SQLite, or for a server on another machine."""
    if connection.vendor != "postgresql":
        return None
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        (pid,) = cursor.fetchone()
    return pid if Path(f"/proc/{pid}/stat").exists() else None


def read_processor_seconds(pid: int | None) -> float:
    """Seconds that a process of one thread used of the processor, its kernel time included. 0 for None."""
    if pid is None:
        return 0.0
    try:  # in nanoseconds, where the kernel has it
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9
    except (OSError, IndexError):
        return read_seconds_of_threads(pid)


def read_seconds_of_threads(pid: int) -> float:
    """Seconds that all threads of a process have used, the ended ones too, exact to hundredths."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND


@contextmanager
def measure_into(costs: list[Cost]) -> Iterator[None]:
    """Append the cost of what is done inside."""
    backend = find_backend()
    clock, own, database = time.perf_counter(), time.process_time(), read_processor_seconds(backend)
    yield
    costs.append(
        Cost(
            (time.perf_counter() - clock) * 1000,
            (time.process_time() - own) * 1000,
            (read_processor_seconds(backend) - database) * 1000,
        )
    )


def measure_cost(work: Callable[[], object]) -> Cost:
    costs: list[Cost] = []
    with measure_into(costs):
        work()
    return costs[0]


def measure_median_cost(work: Callable[[], object], times: int = 5) -> Cost:
    """The medians of several runs, after one that fills what is kept of templates and plans."""
    work()
    return find_median_cost([measure_cost(work) for _ in range(times)])


def find_median_cost(costs: Sequence[Cost]) -> Cost:
    return Cost(*(median(getattr(cost, name) for cost in costs) for name in ("clock", "own", "database")))
