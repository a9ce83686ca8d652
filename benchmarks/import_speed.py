"""How fast a file comes in: checked, stored with and without its rests, imported again, cancelled; and what it needs.

    python benchmarks/import_speed.py [--rows 1000000] [--postgres postgres://…] [--profile]

Writes a file of comparisons of about one kilobyte each, one of verdicts and one of scores, and imports them into
databases of its own: SQLite in a temporary folder, and the empty PostgreSQL database that --postgres names.
Meanwhile another process writes one row every 30 ms, as a person who saves would. Of each file it prints one line of
JSON: rows a second checked, stored, and both together, by the wall clock and by this process's own time, the most
memory over what the program needs idle, and how long the other's writes took. --profile says how the time of
a first import divides into its phases instead; it is slower while it looks.
"""

import argparse
import cProfile
import json
import multiprocessing
import os
import pstats
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parent.parent))
os.environ.setdefault("JUDGEWEB_DATA_DIR", tempfile.mkdtemp(prefix="judgeweb-benchmark-"))
os.environ["DJANGO_SETTINGS_MODULE"] = "judgeweb.settings"

import django

django.setup()

from django.core.management import call_command
from django.db import connection

from evaluations.domain.files import ReadOptions
from evaluations.domain.imports import ImportRequest
from evaluations.imports import storage
from evaluations.imports.lifecycle import continue_import, sweep_imports
from evaluations.imports.preview import preview_file
from evaluations.imports.services import discard_import, start_storing
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.imports import Import
from evaluations.models.transactions import TransactionPacer
from evaluations.overview.services import create_evaluation

WORDS = [f"word{number}" for number in range(2_000)]
# Where a module belongs to; the first that occurs in its path decides.
PHASES: Final = (
    ("reading bytes and JSON", ("formats/json_text", "formats/sources", "formats/streams", "json/", "_json")),
    ("meaning of rows", ("formats/",)),
    ("what was seen before", ("formats/seen",)),
    ("resolving", ("importing/resolving", "importing/naming", "importing/knowing", "importing/sketching")),
    ("flags and markup", ("judge/flagging", "importing/flagging", "domain/markup", "re.Pattern")),
    ("sums", ("domain/material", "hashlib", "_hashlib", "encode_basestring")),
    ("making rows ready", ("importing/writing", "importing/pairing")),
    ("statements and commits", ("models/many", "executemany", "commit", "sqlite3", "psycopg", "django/db")),
    ("rests", ("time.sleep",)),
)


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


# ---- measuring ---------------------------------------------------------------------------------


class Watch:
    """Seconds by the wall clock and of this process's own, from one `lap` to the next."""

    def __init__(self) -> None:
        self.lap()

    def lap(self) -> tuple[float, float]:
        now = (time.monotonic(), time.process_time())
        passed = (now[0] - self._at[0], now[1] - self._at[1]) if hasattr(self, "_at") else (0.0, 0.0)
        self._at = now
        return passed


def resident_mb() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize() / 1024 / 1024


class Memory:
    """The most that this process held while it was watched, looked at twenty times a second."""

    def __enter__(self) -> "Memory":
        self.idle = self.peak = resident_mb()
        self._done = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._watcher.join()

    def _watch(self) -> None:
        while not self._done.wait(0.05):
            self.peak = max(self.peak, resident_mb())


class Rests:
    """How long the importer slept between its transactions."""

    def __init__(self) -> None:
        self.seconds = 0.0
        original = TransactionPacer.rest

        def noted(pace: TransactionPacer) -> None:
            began = time.monotonic()
            original(pace)
            self.seconds += time.monotonic() - began

        TransactionPacer.rest = noted  # type: ignore[method-assign]


def write_now_and_then(waits: Any, is_asked: Any, done: Any) -> None:
    """Another writer beside the import: how long each of its small writes took since it was asked last."""
    connection.close()
    evaluation = Evaluation.objects.get()
    seconds: list[float] = []
    while not done.wait(0.03):
        started = time.perf_counter()
        Event.objects.create(verb="measured", object_type="nothing", evaluation=evaluation)
        seconds.append(time.perf_counter() - started)
        if is_asked.is_set():
            is_asked.clear()
            waits.put(seconds)
            seconds = []


def percentile(seconds: list[float], share: float) -> float:
    return round(sorted(seconds)[int(len(seconds) * share)] * 1000, 1)


def imported(evaluation: Evaluation, path: Path, rests: Rests) -> dict[str, Any]:
    with Memory() as memory:
        watch = Watch()
        with path.open("rb") as file:
            checked = preview_file(evaluation, file, path.name, ImportRequest(), user=None)
        check, check_own = watch.lap()
        start_storing(checked, skip_bad=False, user=None)
        rests.seconds = 0.0
        watch.lap()
        continue_import(checked)
        store, store_own = watch.lap()
    checked.refresh_from_db()
    assert checked.state == "done", checked.reason
    rows = checked.rows_read
    return {
        "database": connection.vendor,
        "file": f"{path.name}, {path.stat().st_size / 1024 / 1024:.0f} MB",
        "rows": rows,
        "new": checked.new_rows,
        "checked_per_second": round(rows / check),
        "stored_per_second": round(rows / store),
        "both_per_second": round(rows / (check + store)),
        "stored_per_second_without_rests": round(rows / (store - rests.seconds)),
        "own_microseconds_a_row": {"checking": micro(check_own, rows), "storing": micro(store_own, rows)},
        "peak_mb_over_idle": round(memory.peak - memory.idle),
    }


def micro(seconds: float, rows: int) -> float:
    return round(seconds / rows * 1e6, 1)


def cancelled(evaluation: Evaluation, path: Path, rows: int) -> dict[str, Any]:
    """A file of new rows is stored but for its last step, and cancelled there."""
    with path.open("rb") as file:
        reading = ReadOptions(id_prefix="again-")
        checked = preview_file(evaluation, file, path.name, ImportRequest(reading), user=None)
    start_storing(checked, skip_bad=False, user=None)
    finish = vars(storage)["finish_import"]
    vars(storage)["finish_import"] = lambda _: None
    continue_import(checked)
    vars(storage)["finish_import"] = finish
    watch = Watch()
    discard_import(Import.objects.get(pk=checked.pk), user=None)
    until_said = watch.lap()[0]
    sweep_imports()
    swept, own = watch.lap()
    assert not Comparison.all_rows.filter(source_import=checked).exists()
    return {
        "database": connection.vendor,
        "cancelled_after_rows": rows,
        "seconds_until_cancelled": round(until_said, 3),
        "comparisons_swept_per_second": round(rows / swept),
        "own_microseconds_a_row": micro(own, rows),
    }


def measure(rows: int) -> None:
    call_command("migrate", verbosity=0)
    evaluation = create_evaluation(slug="benchmark", name="Benchmark", owner=None, by=None)
    contents = {"comparisons": comparisons(rows), "verdicts": verdicts(rows), "scores": scores(rows)}
    files = [written(content, f"{name}.jsonl") for name, content in contents.items()]
    rests = Rests()
    connection.close()
    spawning = multiprocessing.get_context("fork")
    waits, asked, done = spawning.Queue(), spawning.Event(), spawning.Event()
    other = spawning.Process(target=write_now_and_then, args=(waits, asked, done))
    other.start()
    for path in (files[0], *files):
        print_figures(imported(evaluation, path, rests), waits, asked)
    print_figures(cancelled(evaluation, files[0], rows), waits, asked)
    done.set()
    other.join()


def print_figures(figures: dict[str, Any], waits: Any, is_asked: Any) -> None:
    is_asked.set()
    seconds = waits.get()
    others = {f"p{p}": percentile(seconds, p / 100) for p in (50, 95, 99)} if seconds else {}
    print(json.dumps({**figures, "other_writes": len(seconds), "other_writes_ms": others}), flush=True)


# ---- where the time goes ---------------------------------------------------------------------------


def phase_of(where: str) -> str:
    phases = [phase for phase, parts in PHASES if any(part in where for part in parts)]
    return phases[-1] if phases and phases[-1] == "what was seen before" else (phases or ["other"])[0]


def profile(rows: int) -> None:
    call_command("migrate", verbosity=0)
    evaluation = create_evaluation(slug="profiled", name="Profiled", owner=None, by=None)
    path = written(comparisons(rows), "comparisons.jsonl")
    for step in ("checking", "storing"):
        watched = cProfile.Profile()
        watched.enable()
        if step == "checking":
            with path.open("rb") as file:
                checked = preview_file(evaluation, file, path.name, ImportRequest(), user=None)
            start_storing(checked, skip_bad=False, user=None)
        else:
            continue_import(checked)
        watched.disable()
        spent: Counter[str] = Counter()
        for (path_of, _, name), (_, _, own, _, _) in pstats.Stats(watched).stats.items():  # type: ignore[attr-defined]
            spent[phase_of(f"{path_of} {name}")] += own
        total = sum(spent.values())
        shares = {phase: f"{seconds / total:.0%}" for phase, seconds in spent.most_common()}
        print(json.dumps({"database": connection.vendor, "step": step, "shares": shares}), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--postgres", default="", help="an empty database, as DATABASE_URL names one")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    (profile if options.profile else measure)(options.rows)
    if options.postgres:
        again = [sys.executable, __file__, "--rows", str(options.rows), *(["--profile"] if options.profile else [])]
        subprocess.run(again, env={**os.environ, "DATABASE_URL": options.postgres}, check=True)


if __name__ == "__main__":
    main()
