"""How long a report takes: fresh, and when nothing changed, at several sizes.

    python benchmarks/report.py [--comparisons 10000 100000 1000000] [--share 0.1] [--people 2] [--bare]

For each size a study of six aspects in a database of its own (SQLite in a temporary folder, or the empty one of
DATABASE_URL, then for one size): a judge in both orders on all, two people on a share of the comparisons. Each line of
JSON says in milliseconds of the clock, of the processor in a process of its own and of the processor in the server of
PostgreSQL: the first report of all, which reads everything and opens what is to be opened; what the page of each part
shows made anew, as medians of five; the whole report with all parts on all aspects; one that is remembered. It also
says how much memory the process held at most.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
os.environ.setdefault("JUDGEWEB_DATA_DIR", tempfile.mkdtemp(prefix="judgeweb-benchmark-"))
os.environ["DJANGO_SETTINGS_MODULE"] = "judgeweb.settings"

import django

django.setup()

from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext

from benchmarks.large_study import SLUG, make_large_study
from benchmarks.processor_time import measure_cost, measure_median_cost
from evaluations.domain.reports import ReportPart, ReportRules
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.verdicts import PackedVotes
from evaluations.reports.selectors import build_report, get_full_report
from evaluations.stats.full_report import BY_ASPECT

# The rows are known to fit together, and a machine that fails means that the study is made again.
UNCHECKED = {
    "postgresql": ("SET session_replication_role = replica", "SET synchronous_commit = off"),
    "sqlite": ("PRAGMA foreign_keys = OFF", "PRAGMA synchronous = OFF"),
}


def peak_megabytes() -> int:
    """The most memory this process ever held."""
    status = Path("/proc/self/status").read_text()
    return round(int(status.split("VmHWM:")[1].split()[0]) / 1024)


def fill(comparisons: int, people: int, share: float, bare: bool) -> None:
    call_command("migrate", verbosity=0)
    with connection.cursor() as cursor:
        for statement in UNCHECKED[connection.vendor]:
            cursor.execute(statement)
    make_large_study(comparisons, people=people, share=share, bare=bare)
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE" if connection.vendor == "postgresql" else "ANALYZE")


def make_page(evaluation: Evaluation, part: ReportPart) -> None:
    """What the page of a part shows: of most parts one aspect."""
    build_report(evaluation, None, ReportRules(), parts=(part,), aspect="" if part in BY_ASPECT else None)


def measure() -> dict[str, object]:
    evaluation = Evaluation.objects.get(slug=SLUG)
    comparisons = Comparison.objects.filter(evaluation=evaluation)
    idle = peak_megabytes()
    first = measure_cost(partial(make_page, evaluation, ReportPart.AGREEMENT))
    with CaptureQueriesContext(connection) as queries:
        make_page(evaluation, ReportPart.AGREEMENT)
    fresh = {part: measure_median_cost(partial(make_page, evaluation, part)) for part in ReportPart}
    whole = measure_median_cost(partial(build_report, evaluation, None, ReportRules()), times=3)
    remembered = partial(get_full_report, evaluation, ReportRules(), parts=(ReportPart.AGREEMENT,))
    return {
        "database": connection.vendor,
        "comparisons": comparisons.count(),
        "packed_votes": PackedVotes.objects.count(),
        "first": first.as_json(),
        "fresh": {part.value: cost.as_json() for part, cost in fresh.items()},
        "whole": whole.as_json(),
        "unchanged": measure_median_cost(remembered).as_json(),
        "queries": len(queries),
        "memory_idle_mb": idle,
        "memory_peak_mb": peak_megabytes(),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--comparisons", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--share", type=float, default=0.1)
    parser.add_argument("--people", type=int, default=2)
    parser.add_argument("--bare", action="store_true", help="without rows of verdicts, which no report reads")
    parser.add_argument("--only", choices=["fill", "measure"], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.only == "fill":
        fill(options.comparisons[0], options.people, options.share, options.bare)
    elif options.only == "measure":
        print(json.dumps(measure()), flush=True)
    else:
        for size in options.comparisons:
            at_size(size, options)


def at_size(size: int, options: argparse.Namespace) -> None:
    """Both halves in processes of their own, so that the memory is that of the report alone."""
    with tempfile.TemporaryDirectory(prefix="judgeweb-benchmark-") as folder:
        around = {**os.environ, "JUDGEWEB_DATA_DIR": folder}
        for step in ("fill", "measure"):
            arguments = ["--comparisons", str(size), "--people", str(options.people), "--share", str(options.share)]
            arguments += ["--bare"] if options.bare else []
            subprocess.run([sys.executable, __file__, "--only", step, *arguments], env=around, check=True)


if __name__ == "__main__":
    main()
