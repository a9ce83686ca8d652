"""How fast judging is, the whole way: claim, prompt, HTTP, reading, six verdicts stored.

    python benchmarks/judge_throughput.py [in-flight] [several] [adapting] [growth] [baselines] [web]
        [--in-flight 8 32 64 128] [--latency 0.2] [--seconds 15] [--calls 100000]

A server in another process answers after the latency. The database is the one that DATABASE_URL
names (a fresh one beside it; without it SQLite in a temporary folder). Ideal is in flight ÷
latency. Every figure is one line of JSON with the load that the machine had.

- in-flight: one worker process at each number of requests in flight; also the milliseconds between
  an answer's arrival and the end of its commit, and what the server itself costs
- several: 256 in flight by two worker processes (Celery, as `make run` has them)
- adapting: a server that allows 50 requests a second and tells nobody
- growth: many calls in half-minute bouts: the rate of the last tenth beside the first, and memory
- baselines: a thread pool of 8, a semaphore of 5, one Celery task a call, and ours
- web: how long the list of comparisons takes while a worker judges
"""

import argparse
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
os.environ.setdefault("JUDGEWEB_DATA_DIR", tempfile.mkdtemp(prefix="judgeweb-benchmark-"))
os.environ["DJANGO_SETTINGS_MODULE"] = "judgeweb.settings"

import django

django.setup()

from django.test.utils import setup_databases, teardown_databases

from benchmarks.judging.alone import at_so_many_in_flight, behind_a_server_that_refuses, over_many_calls
from benchmarks.judging.baselines import beside_today
from benchmarks.judging.several import together, web_meanwhile


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--in-flight", type=int, nargs="+", default=[8, 32, 64, 128])
    parser.add_argument("--latency", type=float, default=0.2, help="seconds that the server takes")
    parser.add_argument("--seconds", type=float, default=15, help="how long each would take at the ideal rate")
    parser.add_argument("--calls", type=int, default=100_000, help="for growth; the baselines take a hundredth")
    parser.add_argument("modes", nargs="*", default=["in-flight"], metavar="mode")
    options = parser.parse_args()
    latency, seconds, calls = options.latency, options.seconds, options.calls

    def at_each() -> None:
        for in_flight in options.in_flight:
            at_so_many_in_flight(in_flight, latency, seconds)

    modes: dict[str, Callable[[], None]] = {
        "in-flight": at_each,
        "several": lambda: together(2, 256, latency, seconds),
        "adapting": lambda: behind_a_server_that_refuses(50, latency, max(seconds, 40)),
        "growth": lambda: over_many_calls(calls, max(options.in_flight), latency),
        "baselines": lambda: beside_today(calls // 100, latency),
        "web": lambda: web_meanwhile(max(options.in_flight), latency, seconds),
    }
    if unknown := set(options.modes) - set(modes):
        parser.error(f"no such mode: {', '.join(sorted(unknown))}")
    databases = setup_databases(verbosity=0, interactive=False)
    try:
        for mode in options.modes:
            modes[mode]()
    finally:
        teardown_databases(databases, verbosity=0)


if __name__ == "__main__":
    main()
