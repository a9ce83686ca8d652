"""How fast a file comes in: checked, stored with and without its rests, imported again; and what it needs.

    python benchmarks/import_speed.py [--rows 20000]

Writes a file of comparisons of about one kilobyte each, one of verdicts and one of scores, and imports them into
a database of its own (SQLite in a temporary folder, or the empty one of DATABASE_URL). Meanwhile another
process writes one row every 30 ms, as a person who saves would. Prints one line of JSON for each step.
"""

import argparse
import json
import multiprocessing
import os
import random
import resource
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
os.environ.setdefault("JUDGEWEB_DATA_DIR", tempfile.mkdtemp(prefix="judgeweb-benchmark-"))
os.environ["DJANGO_SETTINGS_MODULE"] = "judgeweb.settings"

import django

django.setup()

from django.core.management import call_command
from django.db import connection

from evaluations.domain import Reading
from evaluations.models import Evaluation, Event
from evaluations.services.importing import importing, previewing, sweeping
from evaluations.services.preparing.preparing import create_evaluation

WORDS = [f"word{number}" for number in range(2_000)]


def text(rng: random.Random, words: int) -> str:
    return " ".join(rng.choices(WORDS, k=words))


def comparisons(rows: int) -> Iterator[dict[str, Any]]:
    rng = random.Random(1)
    for number in range(rows):
        yield {
            "query_id": f"q{number}",
            "query": text(rng, 20),
            "candidate_a": "alpha",
            "response_a": text(rng, 50),
            "candidate_b": "beta",
            "response_b": text(rng, 50),
            "category": f"category{number % 8}",
        }


def verdicts(rows: int) -> Iterator[dict[str, Any]]:
    rng = random.Random(2)
    for number in range(rows):
        for rater in ("ann", "bob"):
            names = {"candidate_a": "alpha", "candidate_b": "beta", "rater": rater, "rater_kind": "human"}
            yield {"query_id": f"q{number}", **names, "aspect": "helpfulness", "choice": rng.choice(["A", "B", "tie"])}


def scores(rows: int) -> Iterator[dict[str, Any]]:
    rng = random.Random(3)
    for number in range(rows):
        for candidate in ("alpha", "beta"):
            named = {"candidate": candidate, "rater": "carl", "rater_kind": "human", "aspect": "depth"}
            yield {"query_id": f"q{number}", **named, "value": rng.randint(1, 5)}


def written(rows: Iterator[dict[str, Any]], name: str) -> Path:
    path = Path(tempfile.mkdtemp(prefix="judgeweb-benchmark-")) / name
    with path.open("w") as file:
        file.writelines(f"{json.dumps(row)}\n" for row in rows)
    return path


class Rests:
    """Sleeps as the importer asks, and adds up for how long."""

    def __init__(self) -> None:
        self.seconds = 0.0
        vars(sweeping)["sleep"] = self

    def __call__(self, seconds: float) -> None:
        self.seconds += seconds
        time.sleep(seconds)


def imported(evaluation: Evaluation, path: Path, rests: Rests) -> dict[str, Any]:
    started = time.monotonic()
    with path.open("rb") as file:
        checked = previewing.preview(evaluation, file, file_name=path.name, reading=Reading(), user=None)
    check_seconds = time.monotonic() - started
    importing.begin(checked, skip_bad=False, user=None)
    rests.seconds = 0.0
    started = time.monotonic()
    importing.store(checked)
    store_seconds = time.monotonic() - started
    checked.refresh_from_db()
    assert checked.state == "done", checked.reason
    rows = checked.rows_read
    return {
        "database": connection.vendor,
        "file": f"{path.name}, {path.stat().st_size / 1024 / 1024:.0f} MB",
        "rows": rows,
        "new": checked.summary["new"],
        "checked_per_second": round(rows / check_seconds),
        "stored_per_second": round(rows / store_seconds),
        "stored_per_second_without_rests": round(rows / (store_seconds - rests.seconds)),
        "peak_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
    }


def write_now_and_then(waits: "multiprocessing.Queue[list[float]]", done: Any) -> None:
    """Another writer beside the import: how long each of its small writes took."""
    connection.close()
    evaluation = Evaluation.objects.get()
    seconds = []
    while not done.wait(0.03):
        started = time.perf_counter()
        Event.objects.create(verb="measured", object_type="nothing", evaluation=evaluation)
        seconds.append(time.perf_counter() - started)
    waits.put(seconds)


def percentile(seconds: list[float], share: float) -> float:
    return round(sorted(seconds)[int(len(seconds) * share)] * 1000, 1)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=20_000)
    rows = parser.parse_args().rows
    call_command("migrate", verbosity=0)
    evaluation = create_evaluation(slug="benchmark", name="Benchmark", owner=None)
    made = {"comparisons": comparisons(rows), "verdicts": verdicts(rows), "scores": scores(rows)}
    files = [written(one, f"{name}.jsonl") for name, one in made.items()]
    rests = Rests()
    connection.close()
    spawning = multiprocessing.get_context("fork")
    waits: multiprocessing.Queue[list[float]] = spawning.Queue()
    done = spawning.Event()
    other = spawning.Process(target=write_now_and_then, args=(waits, done))
    other.start()
    for path in (files[0], *files):
        print(json.dumps(imported(evaluation, path, rests)), flush=True)
    done.set()
    seconds = waits.get()
    other.join()
    print(
        json.dumps({"other_writes": len(seconds), "ms": {f"p{p}": percentile(seconds, p / 100) for p in (50, 95, 99)}})
    )


if __name__ == "__main__":
    main()
