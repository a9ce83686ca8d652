"""How long a reviewer waits: the next comparison, the page, and a save, by how much is done already.

    python benchmarks/review_speed.py [--comparisons 100000] [--times 40]

Makes a study in a database of its own (SQLite in a temporary folder, or the empty one of
DATABASE_URL) in which one person has reviewed nothing, a half, and all but one hundred, and
another person has reviewed what was wanted of the first tenth. Prints one line of JSON each.
"""

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
os.environ.setdefault("JUDGEWEB_DATA_DIR", tempfile.mkdtemp(prefix="judgeweb-benchmark-"))
os.environ["DJANGO_SETTINGS_MODULE"] = "judgeweb.settings"

import django

django.setup()

from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from evaluations.domain import ComparisonOrigin, ReviewState, Role, Shown
from evaluations.models import Candidate, Comparison, Evaluation, Query, Response, Review, User
from evaluations.services.preparing.preparing import create_evaluation, set_role
from evaluations.services.reviewing.queueing import next_comparison, progress
from evaluations.services.reviewing.reviewing import rater_for

SLUG = "benchmark"
BATCH = 2_000
WORDS = "A response of about two kilobytes with *some* **marks**, `code` and a list.\n\n- one\n- two\n\n" * 22


def make_study(comparisons: int) -> Evaluation:
    evaluation = create_evaluation(slug=SLUG, name="Benchmark", owner=None)
    candidates = [Candidate.objects.create(evaluation=evaluation, name=name) for name in ("alpha", "beta")]
    rng = random.Random(1)
    for start in range(0, comparisons, BATCH):
        queries = Query.objects.bulk_create(
            Query(
                evaluation=evaluation,
                key=f"q{number}",
                cluster=f"q{number}",
                messages=[{"role": "user", "content": "What do they say?"}],
                sha256="0" * 64,
            )
            for number in range(start, min(start + BATCH, comparisons))
        )
        sides = [
            Response.objects.bulk_create(
                Response(
                    query=query,
                    candidate=candidate,
                    messages=[{"role": "assistant", "content": WORDS}],
                    sha256="0" * 64,
                    characters=len(WORDS),
                )
                for query in queries
            )
            for candidate in candidates
        ]
        Comparison.objects.bulk_create(
            Comparison(
                evaluation=evaluation,
                query=query,
                response_a=response_a,
                response_b=response_b,
                origin=ComparisonOrigin.IMPORTED,
                shuffle=rng.getrandbits(62),
            )
            for query, response_a, response_b in zip(queries, *sides, strict=True)
        )
    return evaluation


def review_up_to(evaluation: Evaluation, user: User, many: int) -> None:
    """Finished reviews of the first so many comparisons, as a person who began at the top leaves them."""
    rater, start = rater_for(user, evaluation), timezone.now()
    done = Review.objects.filter(rater=rater).count()
    waiting = Comparison.objects.filter(evaluation=evaluation).order_by("shuffle")[done:many]
    Review.objects.bulk_create(
        (
            Review(
                rater=rater,
                comparison=comparison,
                rubric_version=evaluation.review_rubric,
                shown=Shown.AS_STORED,
                state=ReviewState.FINAL,
                version=1,
                first_saved_at=start + timedelta(milliseconds=number),
                finished_at=start + timedelta(milliseconds=number),
            )
            for number, comparison in enumerate(waiting.iterator())
        ),
        batch_size=BATCH,
    )


def milliseconds(act: Callable[[], object], times: int) -> dict[str, float]:
    act()
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        act()
        taken.append((time.perf_counter() - start) * 1000)
    taken.sort()
    return {"median": round(taken[times // 2], 1), "p95": round(taken[int(times * 0.95) - 1], 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--comparisons", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=40)
    given = parser.parse_args()
    settings.ALLOWED_HOSTS = ["testserver"]
    call_command("migrate", verbosity=0)
    call_command("collectstatic", interactive=False, verbosity=0)
    evaluation = make_study(given.comparisons)
    person, other = (User.objects.create_user(name) for name in ("person", "other"))
    for user in (person, other):
        set_role(evaluation, user, Role.REVIEWER, by=None)
    review_up_to(evaluation, other, given.comparisons // 10)
    client = Client()
    client.force_login(person)
    rater = rater_for(person, evaluation)
    for done in (0, given.comparisons // 2, given.comparisons - 100, given.comparisons):
        review_up_to(evaluation, person, done)
        if connection.vendor == "postgresql":
            connection.cursor().execute("ANALYZE")  # as autovacuum does within a minute
        coming = next_comparison(evaluation, rater)
        figures = {
            "next": milliseconds(lambda: next_comparison(evaluation, rater), given.times),
            "progress": milliseconds(lambda: progress(evaluation, rater), given.times),
            "redirect": milliseconds(lambda: client.get(reverse("review", args=[SLUG])), given.times),
        }
        if coming:
            page = reverse("review_comparison", args=[SLUG, coming])
            figures["page"] = milliseconds(lambda page=page: client.get(page), given.times)  # type: ignore[misc]
        sys.stdout.write(json.dumps({"comparisons": given.comparisons, "done": done, "ms": figures}) + "\n")


if __name__ == "__main__":
    main()
