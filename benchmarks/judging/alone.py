"""One worker process: at so many in flight, behind a server that refuses, and over many calls."""

import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from unittest.mock import patch

from benchmarks.judging.study import answered, judge_of, planned, processor_seconds, resident_mib, server, tell
from evaluations.judges.calls import live_worker, verdict_requests
from evaluations.judges.calls.live_worker import work_run_calls
from evaluations.judges.calls.outcome_store import store_outcomes
from evaluations.judges.calls.verdict_requests import outcome_from_answer
from evaluations.judges.calls.worker_registry import registered_worker
from evaluations.models.runs import Run


def at_so_many_in_flight(in_flight: int, latency: float, seconds: float) -> None:
    """The whole way, long enough for so many seconds at the ideal rate."""
    with server(latency) as serving, registered_worker():
        judge = judge_of(int(in_flight / latency * seconds / 2), serving.base_url, in_flight=in_flight)
        run = planned(judge)
        serving_before = serving.stats()["cpu_seconds"]
        with timed_commits() as timed:
            cpu, began = processor_seconds(), time.monotonic()
            work_run_calls(run.pk, hand_over=lambda: None, seconds=seconds * 6)
            took, used = time.monotonic() - began, processor_seconds() - cpu
        count = answered(run)
        tell(
            mode="in flight",
            in_flight=in_flight,
            calls=count,
            per_second=round(count / took, 1),
            of_ideal=round(count / took / (in_flight / latency), 3),
            cpu_ms_per_call=round(used * 1000 / count, 2),
            server_cpu_ms_per_call=round((serving.stats()["cpu_seconds"] - serving_before) * 1000 / count, 3),
            commit_ms_median=round(statistics.median(timed.waits) * 1000, 1),
            commit_ms_p99=round(statistics.quantiles(timed.waits, n=100)[98] * 1000, 1),
            of_that_in_transaction_ms_median=round(statistics.median(timed.in_transaction) * 1000, 1),
        )


def behind_a_server_that_refuses(per_second: int, latency: float, seconds: float) -> None:
    """Nobody tells how much it takes: what is answered and refused, second by second."""
    with server(latency, "--per-second", str(per_second)) as serving, registered_worker():
        run = planned(judge_of(int(per_second * seconds / 2), serving.base_url))
        with timed_commits() as timed:
            work_run_calls(run.pk, hand_over=lambda: None, seconds=seconds)
        stats = serving.stats()
        arrivals = [at - timed.began for at in timed.arrived_at]
        tell(
            mode="adapting",
            allowed_per_second=per_second,
            from_15_to_20_seconds=round(sum(15 <= at < 20 for at in arrivals) / 5, 1),
            after_20_seconds=round(sum(20 <= at < seconds for at in arrivals) / max(seconds - 20, 1), 1),
            refused=stats["refused"],
            of_all=round(stats["refused"] / (stats["refused"] + stats["answered"]), 4),
        )


def over_many_calls(calls: int, in_flight: int, latency: float) -> None:
    """In half-minute bouts, as a worker has it: the rate of the first and last tenth, and what it holds."""
    with server(latency) as serving, registered_worker():
        run = planned(judge_of(calls // 2, serving.base_url, in_flight=in_flight))
        before, memory = resident_mib(), []
        with timed_commits() as timed:
            while Run.objects.filter(pk=run.pk, state="running").exists():
                work_run_calls(run.pk, hand_over=lambda: None)
                memory.append(resident_mib())
        tenth = len(timed.arrived_at) // 10
        first, last = rate(timed.arrived_at[:tenth]), rate(timed.arrived_at[-tenth:])
        tell(
            mode="growth",
            calls=answered(run),
            first_tenth_per_second=round(first, 1),
            last_tenth_per_second=round(last, 1),
            last_of_first=round(last / first, 3),
            mib_before=round(before),
            mib_after_each_bout=[round(mib) for mib in memory],
        )


def rate(moments: Sequence[float]) -> float:
    return (len(moments) - 1) / (moments[-1] - moments[0])


@dataclass
class Timed:
    """For each answer when it came, the seconds until the end of its commit, and those of its transaction."""

    began: float = field(default_factory=time.monotonic)
    arrived_at: list[float] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)
    in_transaction: list[float] = field(default_factory=list)


@contextmanager
def timed_commits() -> Iterator[Timed]:
    arrived: dict[int, float] = {}
    timed = Timed()
    read, store = outcome_from_answer, store_outcomes

    def note_arrival(asker: Any, claimed: Any, *rest: Any) -> Any:
        arrived[claimed.call_id] = time.monotonic()
        timed.arrived_at.append(arrived[claimed.call_id])
        return read(asker, claimed, *rest)

    def note_commit(session: Any, outcomes: Sequence[Any]) -> None:
        began = time.monotonic()
        store(session, outcomes)
        now = time.monotonic()
        came = [arrived.pop(pk) for pk in (outcome.call.call_id for outcome in outcomes) if pk in arrived]
        timed.waits += [now - at for at in came]
        timed.in_transaction += [now - began] * len(came)

    with (
        patch.object(verdict_requests, "outcome_from_answer", note_arrival),
        patch.object(live_worker, "store_outcomes", note_commit),
    ):
        yield timed
