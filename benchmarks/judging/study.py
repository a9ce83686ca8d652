"""A study to judge on a fresh database, and the server that judges it."""

import json
import os
import resource
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from evaluations.judges.runs.planner import plan_run_calls
from evaluations.judges.runs.services import start_run
from evaluations.models.judges import Judge
from evaluations.models.runs import Call, Run
from tests.factories.evaluations import make_comparison, make_evaluation
from tests.factories.judges import make_llm_judge

ROOT: Final = Path(__file__).parent.parent.parent
PORT: Final = 8139
WORDS: Final = {"response_a": "word " * 150, "response_b": "term " * 150}


@dataclass(frozen=True)
class Serving:
    """The server in its own process, and what it says of itself."""

    port: int

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"

    def stats(self) -> dict[str, Any]:
        """Since they were asked for last; the processor time since its start."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/stats", timeout=5) as answer:
            counts: dict[str, Any] = json.load(answer)
        return counts


@contextmanager
def server(latency: float, *options: str, port: int = PORT) -> Iterator[Serving]:
    command = [sys.executable, "benchmarks/fast_server.py", "--port", str(port), "--latency", str(latency), *options]
    process = subprocess.Popen(command, cwd=ROOT)
    try:
        serving = Serving(port)
        wait_for(serving)
        yield serving
    finally:
        process.kill()
        process.wait()


def wait_for(serving: Serving) -> None:
    for _ in range(300):
        try:
            serving.stats()
        except (OSError, urllib.error.URLError):
            time.sleep(0.1)
        else:
            return
    raise SystemExit("The server did not start.")


def judge_of(comparisons: int, base_url: str, *, name: str = "judge", in_flight: int | None = None) -> Judge:
    """A judge of a new study of so many comparisons."""
    evaluation = make_evaluation()
    for number in range(comparisons):
        make_comparison(evaluation, query=f"Question {number}?", **WORDS)
    return make_llm_judge(evaluation, base_url, name=name, max_in_flight=in_flight, mode="json_schema")


def planned(judge: Judge) -> Run:
    run = start_run(judge, user=None)
    plan_run_calls(run.pk, until=float("inf"))
    return run


def answered(run: Run) -> int:
    return Call.objects.filter(run=run, state="answered").count()


def processor_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def resident_mib(process: int | str = "self") -> float:
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def tell(**measured: Any) -> None:
    print(json.dumps(measured | {"load": round(os.getloadavg()[0], 1)}), flush=True)
