"""How many comparisons a way of pairing would make of the responses that are here, before any is made."""

import math
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from django.db.models import QuerySet

from evaluations.domain import InputRefused
from evaluations.models import Candidate, Comparison, Evaluation, Query, Response
from evaluations.services.importing.pairing import Pairing, Side, pairs_of, seed_of

# More than so many at once are made only where that is confirmed.
CONFIRMED_ABOVE: Final = 100_000
# While somebody waits, those are counted that so many seconds allow.
WAITED: Final = 1.5
AT_ONCE: Final = 500  # queries


@dataclass(frozen=True)
class Counted:
    """``numbers``: comparisons by way of pairing. ``queries``: of how many; not ``is_whole``: time was up then."""

    numbers: dict[str, int]
    queries: int
    is_whole: bool = True


def count_pairs(
    evaluation: Evaluation, ways: Sequence[Pairing], ranking: Sequence[str] = (), *, seconds: float = math.inf
) -> Counted:
    """By each way; those that are there already do not count. One pass over the queries, however many ways."""
    ends = time.monotonic() + seconds
    counted = {str(way): 0 for way in ways}
    candidates = {row.pk: row for row in Candidate.objects.filter(evaluation=evaluation)}
    queries, last = 0, 0
    while block := list(following(evaluation, last)[:AT_ONCE]):
        sides, made = sides_of(block, candidates), pairs_made(block)
        for query, key in block:
            for way in ways:
                pairs = pairs_of(sides[query], way, seed_of(evaluation, key), ranking)
                counted[str(way)] += sum(
                    (one.pk, other.pk) not in made and (other.pk, one.pk) not in made for one, other in pairs
                )
        queries, last = queries + len(block), block[-1][0]
        if time.monotonic() > ends:
            return Counted(counted, queries, is_whole=not following(evaluation, last).exists())
    return Counted(counted, queries)


def following(evaluation: Evaluation, after: int) -> "QuerySet[Query, tuple[int, str]]":
    """The queries after this one, by id and key."""
    return Query.objects.filter(evaluation=evaluation, pk__gt=after).order_by("pk").values_list("pk", "key")


def sides_of(block: Sequence[tuple[int, str]], candidates: Mapping[int, Candidate]) -> Mapping[int, list[Side]]:
    """By query the responses that are here."""
    found: dict[int, list[Side]] = defaultdict(list)
    rows = Response.objects.filter(query__in=[pk for pk, _ in block]).order_by("pk")
    for query, candidate, pk, sha256 in rows.values_list("query_id", "candidate_id", "pk", "sha256"):
        found[query].append(Side(pk, candidates[candidate], sha256))
    return found


def pairs_made(block: Sequence[tuple[int, str]]) -> set[tuple[int, int]]:
    rows = Comparison.objects.filter(query__in=[pk for pk, _ in block])
    return set(rows.values_list("response_a_id", "response_b_id"))


def refuse_too_many(counted: Counted, way: Pairing, *, confirmed: bool) -> None:
    """Where time did not allow to count them all they may be too many, too."""
    number = counted.numbers[str(way)]
    if confirmed or (counted.is_whole and number <= CONFIRMED_ABOVE):
        return
    would_make = f"That would make {number:,} comparisons, more than {CONFIRMED_ABOVE:,} at once"
    if not counted.is_whole:
        would_make = (
            f"The first {counted.queries:,} queries would make {number:,} comparisons, and there are too many queries "
            "to count them all at once"
        )
    raise InputRefused(f"{would_make}: confirm them, or pair against a baseline or at random.")
