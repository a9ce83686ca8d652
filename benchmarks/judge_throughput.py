"""How many calls a second one worker process judges, the whole way, beside what the endpoint would allow.

    python benchmarks/judge_throughput.py [--in-flight 8 32 64] [--latency 0.2] [--seconds 15]

A server in another process answers after the latency. One bout of work then claims, builds the
prompt, asks, reads and stores six verdicts a call, on the database that DATABASE_URL names (a
fresh one beside it; without it SQLite in a temporary folder). Ideal is in flight ÷ latency.
It also says how many milliseconds lie between an answer's arrival and the end of its commit.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))
os.environ.setdefault("JUDGEWEB_DATA_DIR", tempfile.mkdtemp(prefix="judgeweb-benchmark-"))
os.environ["DJANGO_SETTINGS_MODULE"] = "judgeweb.settings"

import django

django.setup()

from django.test.utils import setup_databases, teardown_databases

from evaluations.models import Call
from evaluations.services.judging import answering, attending, conversing, running, storing
from tests.judges import make_judge
from tests.making import make_comparison, make_evaluation

PORT = 8139


@contextmanager
def server(latency: float) -> Iterator[str]:
    command = [sys.executable, "benchmarks/fast_server.py", "--port", str(PORT), "--latency", str(latency)]
    process = subprocess.Popen(command, cwd=ROOT)
    try:
        wait_for_server()
        yield f"http://127.0.0.1:{PORT}/v1"
    finally:
        process.kill()
        process.wait()


def wait_for_server() -> None:
    for _ in range(100):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{PORT}/", timeout=1)
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.1)
    raise SystemExit("The test server did not start.")


def measure(base_url: str, in_flight: int, latency: float, seconds: float) -> dict[str, float | int]:
    """One run of its own study, long enough for so many seconds at the ideal rate."""
    evaluation = make_evaluation()
    for number in range(int(in_flight / latency * seconds / 2)):
        make_comparison(evaluation, query=f"Question {number}?", response_a="word " * 150, response_b="term " * 150)
    run = running.start_run(
        make_judge(evaluation, base_url, name=str(in_flight), max_in_flight=in_flight, mode="json_schema"), user=None
    )
    running.plan(run.pk, until=float("inf"))
    with timed_commits() as timed:
        cpu, began = processor_seconds(), time.monotonic()
        answering.work(run.pk, hand_over=lambda: None, seconds=seconds * 4)
        took, used = time.monotonic() - began, processor_seconds() - cpu
    answered = Call.objects.filter(run=run, state="answered").count()
    return {
        "in_flight": in_flight,
        "calls": answered,
        "per_second": round(answered / took, 1),
        "of_ideal": round(answered / took / (in_flight / latency), 3),
        "cpu_ms_per_call": round(used * 1000 / answered, 2),
        "commit_ms_median": round(statistics.median(timed.waits) * 1000, 1),
        "commit_ms_p99": round(statistics.quantiles(timed.waits, n=100)[98] * 1000, 1),
        "of_that_in_transaction_ms_median": round(statistics.median(timed.in_transaction) * 1000, 1),
    }


@dataclass
class Timed:
    """For each answer, the seconds from its arrival to the end of its commit, and those of its transaction."""

    waits: list[float] = field(default_factory=list)
    in_transaction: list[float] = field(default_factory=list)


@contextmanager
def timed_commits() -> Iterator[Timed]:
    arrived: dict[int, float] = {}
    timed = Timed()
    read, store = conversing.from_answer, storing.store

    def note_arrival(bout: Any, held: Any, *rest: Any) -> Any:
        arrived[held.call_id] = time.monotonic()
        return read(bout, held, *rest)

    def note_commit(bout: Any, outcomes: Sequence[Any]) -> None:
        began = time.monotonic()
        store(bout, outcomes)
        now = time.monotonic()
        answered = [arrived.pop(held) for held in (one.held.call_id for one in outcomes) if held in arrived]
        timed.waits += [now - at for at in answered]
        timed.in_transaction += [now - began] * len(answered)

    with patch.object(conversing, "from_answer", note_arrival), patch.object(storing, "store", note_commit):
        yield timed


def processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--in-flight", type=int, nargs="+", default=[8, 32, 64])
    parser.add_argument("--latency", type=float, default=0.2, help="seconds that the server takes")
    parser.add_argument("--seconds", type=float, default=15, help="how long each would take at the ideal rate")
    options = parser.parse_args()
    databases = setup_databases(verbosity=0, interactive=False)
    try:
        with server(options.latency) as base_url, attending.attendance():
            for in_flight in options.in_flight:
                print(json.dumps(measure(base_url, in_flight, options.latency, options.seconds)), flush=True)
    finally:
        teardown_databases(databases, verbosity=0)


if __name__ == "__main__":
    main()
