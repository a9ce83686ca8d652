"""How fast a study is exported, and in how much memory.

    python benchmarks/export_rate.py [--comparisons 100000] [--formats jsonl csv dpo …]

Makes a study with six aspects and responses of about 1 kB, every comparison judged in both
orders by an LLM, whose choice is the label where no person voted, and every tenth one reviewed by
a person, in a database of its own (SQLite in a temporary folder, or the empty one of DATABASE_URL),
and exports it in a fresh process per format. Prints one line of JSON each.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
os.environ.setdefault("JUDGEWEB_DATA_DIR", tempfile.mkdtemp(prefix="judgeweb-benchmark-"))
os.environ["DJANGO_SETTINGS_MODULE"] = "judgeweb.settings"

import django

django.setup()

from django.core.management import call_command
from django.db import transaction

from evaluations.domain.choices import Choice, ShownOrder, Stage
from evaluations.domain.reviews import ReviewState
from evaluations.domain.texts import ComparisonOrigin
from evaluations.exports.options import ExportRequest
from evaluations.exports.services import start_export
from evaluations.exports.writer import stream_export
from evaluations.formats.export_formats import EXPORT_FORMATS
from evaluations.models.bulk import refresh_statistics
from evaluations.models.comparisons import Candidate, Comparison, Query, Response
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Endpoint, Judge, Rater
from evaluations.models.rubrics import Aspect
from evaluations.models.runs import Call
from evaluations.models.verdicts import Label, PackedVotes, Review, Verdict
from evaluations.overview.services import create_evaluation
from evaluations.verdicts.packed_votes import get_aspect_positions, pack_verdicts
from evaluations.verdicts.votes import update_labels

SLUG = "benchmark"
BATCH = 2_000
WORDS = "a response of about one kilobyte, made of words that say nothing at all and repeat themselves. " * 10
RATIONALE = "B answers the question and A does not; both are safe, and neither is very engaging to read. " * 3


def make_study(comparisons: int) -> None:
    evaluation = create_evaluation(slug=SLUG, name="Benchmark", owner=None, by=None)
    endpoint = Endpoint.objects.create(name="nowhere", base_url="http://127.0.0.1:9/v1")
    judge = Judge.objects.create(
        evaluation=evaluation,
        name="judge",
        kind="llm",
        model="model",
        endpoint=endpoint,
        rubric_version=evaluation.review_rubric,
        fingerprint="0" * 64,
    )
    raters = [
        Rater.objects.create(evaluation=evaluation, kind="judge", name="judge", judge=judge),
        Rater.objects.create(evaluation=evaluation, kind="human", name="ann"),
    ]
    candidates = [Candidate.objects.create(evaluation=evaluation, name=name) for name in ("alpha", "beta")]
    for first in range(0, comparisons, BATCH):
        with transaction.atomic():
            comparisons_made = make_comparisons(evaluation, candidates, range(first, min(first + BATCH, comparisons)))
            judge_all(comparisons_made, judge, raters[0])
            review_all(comparisons_made[::10], raters[1], evaluation)
            update_labels([comparison.pk for comparison in comparisons_made[::10]])
    refresh_statistics(Query, Response, Comparison, Call, Verdict, Review, Label, PackedVotes)


def make_comparisons(evaluation: Evaluation, candidates: list[Candidate], numbers: range) -> list[Comparison]:
    queries = Query.objects.bulk_create(
        Query(
            evaluation=evaluation,
            key=str(number),
            cluster=str(number),
            messages=[{"role": "user", "content": f"Question {number}?"}],
            sha256="0" * 64,
        )
        for number in numbers
    )
    responses = [
        Response.objects.bulk_create(
            Response(
                query=query,
                candidate=candidate,
                messages=[{"role": "assistant", "content": f"{candidate.name}: {WORDS}"}],
                sha256="0" * 64,
                characters=len(WORDS),
            )
            for query in queries
        )
        for candidate in candidates
    ]
    return Comparison.objects.bulk_create(
        Comparison(
            evaluation=evaluation,
            query=query,
            response_a=first_response,
            response_b=second_response,
            origin=ComparisonOrigin.IMPORTED,
            random_order=random.getrandbits(62),
        )
        for query, first_response, second_response in zip(queries, *responses, strict=True)
    )


def judge_all(comparisons: list[Comparison], judge: Judge, rater: Rater) -> None:
    calls = Call.objects.bulk_create(
        Call(judge=judge, comparison=comparison, shown=shown, state="answered", rationale=RATIONALE)
        for comparison in comparisons
        for shown in (ShownOrder.AS_STORED, ShownOrder.SWAPPED)
    )
    aspects = list(Aspect.objects.filter(evaluation=rater.evaluation))
    keep(
        Verdict(
            rater=rater,
            comparison=call.comparison,
            aspect=aspect,
            shown=call.shown,
            choice=random.choice(list(Choice)[:3]),
            call=call,
        )
        for call in calls
        for aspect in aspects
    )


def review_all(comparisons: list[Comparison], rater: Rater, evaluation: Evaluation) -> None:
    reviews = Review.objects.bulk_create(
        Review(
            rater=rater,
            comparison=comparison,
            rubric_version=evaluation.review_rubric,
            shown=ShownOrder.SWAPPED,
            state=ReviewState.FINAL,
            selection_method="random",
        )
        for comparison in comparisons
    )
    aspects = list(Aspect.objects.filter(evaluation=rater.evaluation))
    keep(
        Verdict(
            rater=rater,
            comparison=review.comparison,
            aspect=aspect,
            shown=review.shown,
            stage=stage,
            choice=random.choice(list(Choice)[:3]),
            review=review,
        )
        for review in reviews
        for aspect in aspects
        for stage in Stage
    )


def keep(verdicts: Iterable[Verdict]) -> None:
    """Verdicts with their packed votes, as every service writes them."""
    written = Verdict.objects.bulk_create(verdicts)
    PackedVotes.objects.bulk_create(pack_verdicts(written, get_aspect_positions(Evaluation.objects.get(slug=SLUG).pk)))


def measure(written_as: str) -> None:
    """One export in this process, as a page or a command writes it."""
    evaluation = Evaluation.objects.get(slug=SLUG)
    idle = peak_megabytes()
    started, cpu_started = time.perf_counter(), time.process_time()
    export_request = ExportRequest(aspect="clarity" if EXPORT_FORMATS[written_as].wants_choice else "")
    export = start_export(evaluation, written_as=written_as, user=None, request=export_request)
    blocks = stream_export(export, Comparison.objects.filter(evaluation=evaluation))
    size = len(next(blocks, b""))  # of no score there is no byte
    first_block_ms = (time.perf_counter() - started) * 1000
    size += sum(len(block) for block in blocks)
    seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu_started
    rows = evaluation.exports.latest("pk").counts.get("comparisons", evaluation.comparisons.count())
    figures = {
        "format": written_as,
        "comparisons": rows,
        "comparisons_per_second": round(rows / seconds),
        "comparisons_per_cpu_second": round(rows / cpu_seconds),
        "first_block_ms": round(first_block_ms),
        "megabytes": round(size / 1e6),
        "memory_idle_mb": round(idle),
        "memory_peak_mb": round(peak_megabytes()),
    }
    print(json.dumps(figures), flush=True)


def peak_megabytes() -> float:
    """The most memory this process ever held; getrusage would count the parent's as well."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--comparisons", type=int, default=100_000)
    parser.add_argument("--formats", nargs="+", default=list(EXPORT_FORMATS))
    parser.add_argument("--keep", action="store_true", help="measure the study that is there, and make none")
    parser.add_argument("--measure", metavar="FORMAT", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure)
        return
    if not options.keep:
        call_command("migrate", verbosity=0)
        make_study(options.comparisons)
    for written_as in options.formats:
        subprocess.run([sys.executable, __file__, "--measure", written_as], check=True)


if __name__ == "__main__":
    main()
