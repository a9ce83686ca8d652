"""How long the page of comparisons takes on the server, by filter and by every pair of filters.

    python benchmarks/browse.py [--comparisons 100000] [--times 5] [--pairs 1] [--explain NAME] [--words 60]

Makes a study in a database of its own (SQLite in a temporary folder, or the empty one of DATABASE_URL): a judge
in both orders on everything, two people on a tenth, labels of these, tags, flags, texts of 60 and 150 words, or of
so many and in proportion. They are written and read for searching without the pauses, and without the care for a
loss of power, that an import takes: how long that took says nothing of imports. What is measured is a request to the
page from its first middleware to its last byte, in this process. Prints JSON: for each filter median and p95 in
milliseconds of the clock, median milliseconds of the processor in this process and in the server of PostgreSQL, how
many comparisons stood on the page, whether it looked through all that it had to.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import combinations
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
os.environ.setdefault("JUDGEWEB_DATA_DIR", tempfile.mkdtemp(prefix="judgeweb-benchmark-"))
os.environ["DJANGO_SETTINGS_MODULE"] = "judgeweb.settings"

import django

django.setup()

import numpy as np
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from benchmarks.large_study import SLUG, make_large_study
from benchmarks.processor_time import Cost, find_median_cost, measure_into
from benchmarks.row_writer import insert_rows
from evaluations.comparisons.search.services import INDEX_EVALUATION, schedule_indexing
from evaluations.domain.roles import Role
from evaluations.jobs.runner import work_while_due
from evaluations.members.services import set_role
from evaluations.models import transactions
from evaluations.models.bulk import refresh_statistics
from evaluations.models.comparisons import Comparison, Query, Response, Tag, Tagging
from evaluations.models.rubrics import Aspect
from evaluations.models.search_index import SEARCH_TABLE
from evaluations.models.users import User
from evaluations.models.verdicts import Label, Review

VOCABULARY = 50_000
RARE = 3  # so many comparisons have what is rare
USUAL = 60  # words of a query, and up to as many more
INDEXED_AT_ONCE = 2_000
NEEDLE = "quetzalcoatl"
GIN = [SEARCH_TABLE, "% USING gin %"]
SIGNS = "bcdfghjklmnprstvz"


def word(number: int) -> str:
    """A word of its own for each number, short ones first, as in a language."""
    letters = ""
    number += 1
    while number:
        number, sign = divmod(number, len(SIGNS))
        letters += SIGNS[sign] + "aeiou"[sign % 5]
    return letters


WORDS = [word(number) for number in range(VOCABULARY)]


def words(of_query: int) -> Callable[[int, int], str]:
    """Texts whose words are as common as Zipf has it."""
    rng = np.random.default_rng(11)
    share = 1 / np.arange(1, VOCABULARY + 1)
    drawn = [WORDS[number] for number in rng.choice(VOCABULARY, 4_000_000, p=share / share.sum()).tolist()]

    def text(number: int, typical: int) -> str:
        length = typical * of_query // USUAL
        start = number * 7919 % (len(drawn) - 2 * length)
        words = " ".join(drawn[start : start + length + number % length])
        return f"{words} {NEEDLE}" if typical == USUAL and number in needles else words

    needles: set[int] = {10, 20_000, 40_000}
    return text


def make_study(comparisons: int, *, of_query: int, with_texts: bool) -> dict[str, Any]:
    began = time.perf_counter()
    hurry()
    evaluation = make_large_study(comparisons, bare=True, words=words(of_query) if with_texts else None)
    seconds = time.perf_counter() - began
    owner = User.objects.create_user("owner")
    set_role(evaluation, owner, Role.OWNER, by=None)
    now, rng = timezone.now(), np.random.default_rng(5)
    ids = np.array(list(Comparison.objects.order_by("pk").values_list("pk", flat=True)))
    for name, those in (("rare", ids[[5, len(ids) // 2, -5]]), ("common", ids[::3])):
        tag = Tag.objects.create(evaluation=evaluation, name=name)
        rows = [(now, tag.pk, pk, owner.pk) for pk in those.tolist()]
        insert_rows(Tagging, ("created_at", "tag_id", "comparison_id", "user_id"), rows)
    reviewed = list(Review.objects.order_by("comparison").values_list("comparison", flat=True).distinct())
    aspects = list(Aspect.objects.filter(evaluation=evaluation))
    columns = ("created_at", "comparison_id", "aspect_id", "choice", "source", "votes", "unanimous")
    choices = rng.choice(["A", "B", "tie", ""], (len(reviewed), len(aspects)), p=[0.4, 0.35, 0.15, 0.1]).tolist()
    rows = [
        (now, pk, aspect.pk, choice, "majority" if choice else "split", 2, bool(choice))
        for pk, row in zip(reviewed, choices, strict=True)
        for aspect, choice in zip(aspects, row, strict=True)
    ]
    insert_rows(Label, columns, rows)
    Response.all_rows.filter(pk__in=[7, 3 * (comparisons // 4), 3 * (comparisons // 2) - 1]).update(
        flags="forged_verdict"
    )
    Query.all_rows.filter(pk=comparisons // 3).update(category="rare")
    Comparison.all_rows.filter(query=comparisons // 3).update(category="rare")
    refresh_statistics(Comparison, Response, Query, Label, Tagging, Review)
    if not with_texts:
        return {"made_seconds": round(seconds, 1)}
    used = time.process_time()
    began = time.perf_counter()
    schedule_indexing(evaluation)
    with without_word_index():
        work_while_due(INDEX_EVALUATION, evaluation.pk)
    used = time.process_time() - used
    return {
        "made_seconds": round(seconds, 1),
        "indexed_seconds": round(time.perf_counter() - began, 1),
        "indexing_processor_us_a_comparison": round(used / comparisons * 1e6, 1),
    }


def hurry() -> None:
    """Nobody waits beside it, and what a loss of power takes is made again."""
    sizes = transactions.COMPARISONS_INDEXED_AT_ONCE
    sizes.update(dict.fromkeys(sizes, INDEXED_AT_ONCE))
    if connection.vendor == "sqlite":
        transactions.write_pause_seconds = lambda seconds: 0.0
        with connection.cursor() as cursor:
            cursor.execute("PRAGMA synchronous=OFF")
            cursor.execute("PRAGMA cache_size=-2000000")


@contextmanager
def without_word_index() -> Iterator[None]:
    """PostgreSQL makes it of all documents in a tenth of the time that it takes document by document."""
    if connection.vendor == "sqlite":
        yield
        return
    with connection.cursor() as cursor:
        cursor.execute("SELECT indexname, indexdef FROM pg_indexes WHERE tablename = %s AND indexdef LIKE %s", GIN)
        ((name, definition),) = cursor.fetchall()
        cursor.execute(f"DROP INDEX {name}")
        yield
        cursor.execute("SET maintenance_work_mem = '1GB'")
        cursor.execute(definition)
        cursor.execute("RESET maintenance_work_mem")


def filters() -> dict[str, dict[str, Any]]:
    common, middling = str(WORDS[0]), str(WORDS[700])
    judge, person = "judge:judge 0", "human:person 0"
    return {
        "word in all": {"q": common},
        "word in some": {"q": middling},
        "word in three": {"q": NEEDLE},
        "word in none": {"q": "nowhere"},
        "phrase": {"q": f'"{WORDS[0]} {WORDS[1]}"'},
        "two words": {"q": f"{middling} {WORDS[900]}"},
        "category": {"category": "math"},
        "category of two": {"category": "rare"},
        "candidate": {"candidate": "alpha"},
        "pair": {"candidate": "alpha", "against": "gamma"},
        "judge chose A": {"rater": judge, "aspect": "clarity", "choice": "A"},
        "judge chose both bad": {"rater": judge, "aspect": "clarity", "choice": "both_bad"},
        "judge differs from itself": {"rater": judge, "aspect": "clarity", "choice": "differs"},
        "person chose tie": {"rater": person, "aspect": "clarity", "choice": "tie"},
        "label tie": {"aspect": "clarity", "choice": "tie"},
        "label both bad": {"aspect": "clarity", "choice": "both_bad"},
        "no review": {"reviews": "none"},
        "review saved": {"reviews": "saved"},
        "review skipped": {"reviews": "skipped"},
        "disagreement": {"disagreement": "open"},
        "resolved": {"disagreement": "resolved"},
        "judge failed": {"judge_failed": "any"},
        "flagged": {"flagged": "on"},
        "tag on three": {"tag": "rare"},
        "tag on a third": {"tag": "common"},
        "by hand": {"origin": "by_hand"},
    }


def measured(client: Client, query: dict[str, Any], times: int) -> dict[str, Any]:
    address = reverse("comparisons", args=[SLUG], query=query)
    costs: list[Cost] = []
    for _ in range(times + 1):
        with measure_into(costs):
            answer = client.get(address)
    del costs[0]  # it filled what is kept of templates and plans
    clock, median_cost = sorted(cost.clock for cost in costs), find_median_cost(costs)
    assert answer.status_code == 200, (query, answer.status_code)
    text = answer.content.decode()
    return {
        "median_ms": round(median_cost.clock, 1),
        "p95_ms": round(clock[max(0, -(-len(clock) * 95 // 100) - 1)], 1),
        "processor_ms": round(median_cost.own, 1),
        "database_ms": round(median_cost.database, 1),
        "rows": text.count('name="comparison"'),
        "whole": "looked through so far" not in text,
    }


def together(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any] | None:
    """Both, or nothing where they say two things of one."""
    both = {**first, **second}
    return both if len(both) == len(first) + len(second) else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--comparisons", type=int, default=100_000)
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--pairs", type=int, default=1, help="how often each pair of filters is asked for; 0: none")
    parser.add_argument("--explain", metavar="FILTER", help="print what is asked of the database for this one")
    parser.add_argument("--kept", action="store_true", help="take the study that stands in the database already")
    parser.add_argument("--words", type=int, default=USUAL, help="how long texts are: that of a query")
    parser.add_argument("--no-texts", action="store_true", help="leave the texts and what searches them out")
    options = parser.parse_args()
    call_command("migrate", verbosity=0)
    call_command("collectstatic", verbosity=0, interactive=False)
    result: dict[str, Any] = {"database": connection.vendor, "comparisons": options.comparisons, "words": options.words}
    if not options.kept:
        result |= make_study(options.comparisons, of_query=options.words, with_texts=not options.no_texts)
    settings.ALLOWED_HOSTS = ["*"]
    client = Client()
    client.force_login(User.objects.get(username="owner"))
    last = Comparison.objects.order_by("-pk").values_list("pk", flat=True)[0]
    queries = {name: query for name, query in filters().items() if not (options.no_texts and "q" in query)}
    if options.explain:
        explain(client, queries[options.explain])
        return
    deep = {"after": last - last // 10}
    alone = {"nothing": {}, "nothing, deep": deep, "nothing, backwards": {"before": last - 10}}
    often = [name for name in ("word in all", "category") if name in queries]
    alone |= {f"{name}, deep": {**queries[name], **deep} for name in often}
    result["alone"] = {name: measured(client, query, options.times) for name, query in {**alone, **queries}.items()}
    pairs = {
        f"{first} & {second}": both
        for first, second in combinations(queries, 2)
        if (both := together(queries[first], queries[second]))
    }
    times = {name: measured(client, query, options.pairs) for name, query in pairs.items()} if options.pairs else {}
    slowest = sorted(times, key=lambda name: -times[name]["median_ms"])[:15]
    result["pairs"] = {
        "number": len(times),
        "median_ms": round(median(measurement["median_ms"] for measurement in times.values()), 1) if times else None,
        "not_looked_through": [name for name in times if not times[name]["whole"]],
        "slowest": {name: times[name] for name in slowest},
    }
    result["slowest_alone_ms"] = max(measurement["median_ms"] for measurement in result["alone"].values())
    print(json.dumps(result, indent=1))


def explain(client: Client, query: dict[str, Any]) -> None:
    with CaptureQueriesContext(connection) as captured:
        client.get(reverse("comparisons", args=[SLUG], query=query))
    for statement in sorted(captured.captured_queries, key=lambda statement: -float(statement["time"]))[:6]:
        print(statement["time"], statement["sql"][:1500])
        if statement["sql"].startswith("SELECT"):
            with connection.cursor() as cursor:
                how = "EXPLAIN (ANALYZE, BUFFERS)" if connection.vendor == "postgresql" else "EXPLAIN QUERY PLAN"
                cursor.execute(f"{how} {statement['sql']}".replace("%", "%%"))
                print(*cursor.fetchall(), sep="\n  ")


if __name__ == "__main__":
    main()
