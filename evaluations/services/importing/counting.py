"""How many comparisons a way of pairing would make of the responses that are here, before any is made."""

import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from typing import Final

from evaluations.domain import InputRefused
from evaluations.models import Candidate, Comparison, Evaluation, Response
from evaluations.services.importing.pairing import Pairing, Side, pairs_of, seed_of

# More than so many at once are made only where that is confirmed.
CONFIRMED_ABOVE: Final = 100_000
# While somebody waits, those are counted that so many seconds allow.
WAITED: Final = 1.5

Pair = tuple[int, int]


@dataclass(frozen=True)
class Counted:
    """``numbers``: comparisons by way of pairing. ``queries``: of how many; not ``is_whole``: time was up then."""

    numbers: dict[str, int]
    queries: int
    is_whole: bool = True


def count_pairs(
    evaluation: Evaluation, ways: Sequence[Pairing], ranking: Sequence[str] = (), *, seconds: float = math.inf
) -> Counted:
    """By each way; those that are there already do not count. One pass over the responses, however many ways."""
    ends = time.monotonic() + seconds
    counted = {str(way): 0 for way in ways}
    queries = 0
    made = grouped_pairs(evaluation)
    waiting: tuple[int, set[Pair]] | None = next(made, None)
    for query, key, sides in grouped_sides(evaluation):
        if time.monotonic() > ends:
            return Counted(counted, queries, is_whole=False)
        queries += 1
        while waiting is not None and waiting[0] < query:
            waiting = next(made, None)
        there = waiting[1] if waiting is not None and waiting[0] == query else set()
        for way in ways:
            pairs = pairs_of(sides, way, seed_of(evaluation, key), ranking)
            counted[str(way)] += sum(
                (one.pk, other.pk) not in there and (other.pk, one.pk) not in there for one, other in pairs
            )
    return Counted(counted, queries)


def grouped_sides(evaluation: Evaluation) -> Iterator[tuple[int, str, list[Side]]]:
    candidates = {row.pk: row for row in Candidate.objects.filter(evaluation=evaluation)}
    rows = Response.objects.filter(query__evaluation=evaluation).order_by("query_id")
    told = rows.values_list("query_id", "query__key", "candidate_id", "pk", "sha256").iterator(chunk_size=2_000)
    for (query, key), group in groupby(told, key=itemgetter(0, 1)):
        yield query, key, [Side(pk, candidates[candidate], sha) for _, _, candidate, pk, sha in group]


def grouped_pairs(evaluation: Evaluation) -> Iterator[tuple[int, set[Pair]]]:
    rows = Comparison.objects.filter(evaluation=evaluation).order_by("query_id")
    told = rows.values_list("query_id", "response_a_id", "response_b_id").iterator(chunk_size=2_000)
    for query, group in groupby(told, key=itemgetter(0)):
        yield query, {(a, b) for _, a, b in group}


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
