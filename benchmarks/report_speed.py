"""How long a report takes, and how much of that is reading.

    python benchmarks/report_speed.py [--comparisons 100000]

Makes the study of export_rate.py (six aspects, every comparison judged in both orders, every
tenth one reviewed by a person) in a database of its own (SQLite in a temporary folder, or the
empty one of DATABASE_URL) and prints, as one line of JSON, medians of three: seconds by the clock
and, in brackets behind them, seconds of this process alone.
"""

import argparse
import json
import statistics
import time
from collections.abc import Callable

from django.core.management import call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from export_rate import SLUG, make_study, peak_megabytes

from evaluations.domain import Rules
from evaluations.models import Comparison, Evaluation, Rater
from evaluations.services.reporting.gathering import gather
from evaluations.services.reporting.reporting import comparisons_in_cell, make_report


def seconds(work: Callable[[], object]) -> str:
    by_clock, of_process = [], []
    for _ in range(3):
        started, busy = time.perf_counter(), time.process_time()
        work()
        by_clock.append(time.perf_counter() - started)
        of_process.append(time.process_time() - busy)
    return f"{statistics.median(by_clock):.2f} ({statistics.median(of_process):.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--comparisons", type=int, default=100_000)
    options = parser.parse_args()
    call_command("migrate", verbosity=0)
    make_study(options.comparisons)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    evaluation = Evaluation.objects.get(slug=SLUG)
    comparisons = Comparison.objects.filter(evaluation=evaluation)
    raters = list(Rater.objects.filter(evaluation=evaluation))
    judge = next(rater.pk for rater in raters if rater.kind == "judge")
    with CaptureQueriesContext(connection) as queries:
        make_report(evaluation, comparisons, Rules())
    figures = {
        "database": connection.vendor,
        "comparisons": options.comparisons,
        "verdicts_of_judge": options.comparisons * 12,
        "reading_seconds": seconds(lambda: gather(comparisons, raters)),
        "report_seconds": seconds(lambda: make_report(evaluation, comparisons, Rules())),
        "cell_seconds": seconds(lambda: comparisons_in_cell(evaluation, comparisons, "safety", judge, "A", "B")),
        "queries": len(queries),
        "memory_peak_mb": round(peak_megabytes()),
    }
    print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    main()
