"""How much of the processor a call takes in claiming and storing, without a network between them.

    python benchmarks/storing_cost.py [--at-once 8 16 64] [--calls 2048] [--priced]

Each claim takes so many calls at once, with their prompts rendered; storing writes an attempt and six
verdicts for each. On the database that DATABASE_URL names (a fresh one beside it; without it SQLite in
a temporary folder). The wall time holds the database's own work; the processor time is this thread's alone.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))
os.environ.setdefault("JUDGEWEB_DATA_DIR", tempfile.mkdtemp(prefix="judgeweb-benchmark-"))
os.environ["DJANGO_SETTINGS_MODULE"] = "judgeweb.settings"

import django

django.setup()

from django.db import connection
from django.test.utils import setup_databases, teardown_databases

from evaluations.judges.calls.claims import claim_calls
from evaluations.judges.calls.outcome_store import store_outcomes
from tests.factories.evaluations import make_comparison, make_evaluation
from tests.factories.judges import make_llm_judge
from tests.helpers.work_sessions import CLOSED_ADDRESS, answered_outcome, set_judge_price, start_run_session

T = TypeVar("T")
REPLY: dict[str, Any] = {
    "raw": json.dumps({"rationale": "because " * 30}),
    "finish_reason": "stop",
    "model_returned": "m",
    "tokens_in": 900,
    "tokens_out": 80,
    "tokens_cached": 0,
}


class Timed:
    """Processor and wall milliseconds of one kind of work."""

    def __init__(self) -> None:
        self.processor = self.wall = 0.0

    def run(self, work: Callable[[], T]) -> T:
        processor, wall = time.thread_time(), time.monotonic()
        result = work()
        self.processor += (time.thread_time() - processor) * 1000
        self.wall += (time.monotonic() - wall) * 1000
        return result


def measure(at_once: int, calls: int, is_priced: bool) -> dict[str, Any]:
    evaluation = make_evaluation()
    for number in range(calls // 2):
        make_comparison(evaluation, query=f"Question {number}?", response_a="word " * 150, response_b="term " * 150)
    judge = make_llm_judge(evaluation, CLOSED_ADDRESS, mode="json_schema", max_tokens=500, max_in_flight=1000)
    if is_priced:
        set_judge_price(judge)
    session, claims, stores = start_run_session(judge), Timed(), Timed()
    while claimed := claims.run(lambda: claim_calls(session, at_once).calls):
        outcomes = [answered_outcome(session, call, **REPLY) for call in claimed]
        stores.run(lambda outcomes=outcomes: store_outcomes(session, outcomes))  # type: ignore[misc]
    return {
        "database": connection.vendor,
        "at_once": at_once,
        "priced": is_priced,
        "claim_cpu_ms_per_call": round(claims.processor / calls, 3),
        "store_cpu_ms_per_call": round(stores.processor / calls, 3),
        "claim_wall_ms_per_call": round(claims.wall / calls, 3),
        "store_wall_ms_per_call": round(stores.wall / calls, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--at-once", type=int, nargs="+", default=[8, 16, 64])
    parser.add_argument("--calls", type=int, default=2048)
    parser.add_argument(
        "--priced", action="store_true", help="with a price: each claim and store changes the run's account"
    )
    options = parser.parse_args()
    databases = setup_databases(verbosity=0, interactive=False)
    try:
        for at_once in options.at_once:
            print(json.dumps(measure(at_once, options.calls, options.priced)), flush=True)
    finally:
        teardown_databases(databases, verbosity=0)


if __name__ == "__main__":
    main()
