"""The pairs that each way of pairing makes of responses."""

import hashlib
import math
import time
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from typing import Final, TypeVar

from django.db.models import Avg, Count, Q, QuerySet

from evaluations.domain.choices import Choice, Stage
from evaluations.domain.errors import InputRefused
from evaluations.domain.groups import group_values
from evaluations.domain.pairing import Pairing, PairingWay
from evaluations.models.comparisons import Candidate, Comparison, Query, Response, draw_random_order
from evaluations.models.evaluations import Evaluation
from evaluations.models.imports import finished_imports
from evaluations.models.rubrics import RubricAspect
from evaluations.models.verdicts import Score, Verdict


def build_comparison(query: Query, first: Response, second: Response, **columns: object) -> Comparison:
    """An unsaved comparison of two responses, in which A is the candidate whose name sorts first."""
    swapped = first.candidate.sort_name > second.candidate.sort_name
    response_a, response_b = (second, first) if swapped else (first, second)
    return Comparison(
        evaluation=query.evaluation,
        query=query,
        response_a=response_a,
        response_b=response_b,
        swapped=swapped,
        random_order=draw_random_order(),
        **columns,
    )


@dataclass(frozen=True)
class PairSide:
    """The parts of a response that pairing needs."""

    pk: int
    candidate: Candidate
    sha256: str


Paired = TypeVar("Paired", Response, PairSide)


def pair_responses(
    responses: Sequence[Paired], pairing: Pairing, seed: str, ranking: Sequence[str] = ()
) -> list[tuple[Paired, Paired]]:
    """The pairs of one query's responses, the same for the same seed. ``ranking``: names, for pairs of neighbours."""
    ordered = sorted(responses, key=lambda response: (response.candidate.name, response.sha256))
    pairs = [
        (first, second) for first, second in combinations(ordered, 2) if first.candidate.name != second.candidate.name
    ]
    if pairing.way == PairingWay.BASELINE:
        return [pair for pair in pairs if pairing.baseline in (pair[0].candidate.name, pair[1].candidate.name)]
    if pairing.way == PairingWay.RANDOM:
        drawn = set(sorted(range(len(pairs)), key=lambda place: draw_pair_lot(seed, *pairs[place]))[: pairing.number])
        return [pair for place, pair in enumerate(pairs) if place in drawn]
    if pairing.way == PairingWay.ADJACENT:
        neighbours = find_neighbours({response.candidate.name for response in responses}, ranking)
        return [pair for pair in pairs if frozenset((pair[0].candidate.name, pair[1].candidate.name)) in neighbours]
    return pairs


def draw_pair_lot(seed: str, first: Paired, second: Paired) -> bytes:
    """A hash that orders pairs at random. It does not change when other pairs come."""
    parts = (seed, first.candidate.name, first.sha256, second.candidate.name, second.sha256)
    return hashlib.sha256("\0".join(parts).encode()).digest()


def find_neighbours(names: Collection[str], ranking: Sequence[str]) -> set[frozenset[str]]:
    """The pairs of candidates that are adjacent in the ranking, among those that answered one query.

    A candidate without a rating meets the middle one of the others; where none has one, their names are the order.
    """
    rated = [name for name in ranking if name in names]
    others = sorted(set(names) - set(rated))
    pairs = {frozenset(pair) for pair in pairwise(rated or others)}
    return pairs | {frozenset((name, rated[len(rated) // 2])) for name in others if rated}


def pairing_seed(evaluation: Evaluation, key: str) -> str:
    return f"{evaluation.slug}:{key}"


# More than so many at once are made only where that is confirmed.
CONFIRMED_ABOVE: Final = 100_000

# While somebody waits, those are counted that so many seconds allow.
COUNTING_SECONDS: Final = 1.5

QUERIES_PER_BLOCK: Final = 500  # queries


@dataclass(frozen=True)
class PairCount:
    """How many comparisons each way of pairing would make of ``queries`` queries; partial unless ``is_whole``."""

    numbers: dict[str, int]
    queries: int
    is_whole: bool = True


def count_pairs(
    evaluation: Evaluation, ways: Sequence[Pairing], ranking: Sequence[str] = (), *, seconds: float = math.inf
) -> PairCount:
    """Count the missing comparisons of each way of pairing, in one pass over the queries."""
    ends = time.monotonic() + seconds
    counted = {str(way): 0 for way in ways}
    candidates = {row.pk: row for row in Candidate.objects.filter(evaluation=evaluation)}
    queries, last = 0, 0
    while block := list(list_queries_after(evaluation, last)[:QUERIES_PER_BLOCK]):
        sides = load_sides(block, candidates)
        existing = Comparison.objects.filter(query__in=[pk for pk, _ in block])
        made = set(existing.values_list("response_a_id", "response_b_id"))
        for query, key in block:
            for way in ways:
                pairs = pair_responses(sides[query], way, pairing_seed(evaluation, key), ranking)
                counted[str(way)] += sum(
                    (first.pk, second.pk) not in made and (second.pk, first.pk) not in made for first, second in pairs
                )
        queries, last = queries + len(block), block[-1][0]
        if time.monotonic() > ends:
            return PairCount(counted, queries, is_whole=not list_queries_after(evaluation, last).exists())
    return PairCount(counted, queries)


def list_queries_after(evaluation: Evaluation, after: int) -> "QuerySet[Query, tuple[int, str]]":
    return Query.objects.filter(evaluation=evaluation, pk__gt=after).order_by("pk").values_list("pk", "key")


def load_sides(block: Sequence[tuple[int, str]], candidates: Mapping[int, Candidate]) -> Mapping[int, list[PairSide]]:
    """The stored responses by query."""
    rows = Response.objects.filter(query__in=[pk for pk, _ in block]).order_by("pk")
    columns = rows.values_list("query_id", "candidate_id", "pk", "sha256")
    return group_values((query, PairSide(pk, candidates[of], sha256)) for query, of, pk, sha256 in columns)


def refuse_too_many_pairs(counted: PairCount, way: Pairing, *, confirmed: bool) -> None:
    """Refuse unconfirmed pairs that are too many, or could not all be counted in time."""
    number = counted.numbers[str(way)]
    if confirmed or (counted.is_whole and number <= CONFIRMED_ABOVE):
        return
    would_make = f"This would create {number:,} comparisons, more than {CONFIRMED_ABOVE:,} at once"
    if not counted.is_whole:
        would_make = (
            f"The first {counted.queries:,} prompts would create {number:,} comparisons, and there are too many "
            "to count them all"
        )
    raise InputRefused(f"{would_make}. Confirm, or pair against a baseline or at random.")


# Comparisons: so many tell neighbours apart, and twelve verdicts on each are still read within a second or two.
ENOUGH_COMPARISONS: Final = 20_000

Wins = Mapping[tuple[int, int], tuple[float, float]]  # of each pair: how often they met, and the first won


@dataclass(frozen=True)
class Ranking:
    """The rated candidates, best first, with the basis of the rating in words."""

    names: tuple[str, ...]
    by: str


def rank_by_results(evaluation: Evaluation) -> Ranking:
    """Rank candidates by Bradley–Terry scores of first choices, or else by scores. Raises InputRefused."""
    names = dict(Candidate.objects.filter(evaluation=evaluation).values_list("pk", "name"))
    met, scope = load_matches(evaluation, len(names))
    if met:
        rated, by = rate_by_choices(met)
        by += scope
    else:
        rated, by = rate_by_scores(evaluation), "mean scores"
    if len(rated) < 2:
        raise InputRefused(
            "Pairing models with similar ratings needs verdicts or scores, and there are none yet. "
            "Choose another pairing first."
        )
    ordered = sorted(rated, key=lambda pk: (-rated[pk], names[pk]))
    return Ranking(tuple(names[pk] for pk in ordered), by)


def load_matches(evaluation: Evaluation, candidates: int) -> tuple[Wins, str]:
    """The results of pairs of candidates, from a random part of very many comparisons."""
    if not Verdict.objects.filter(rater__evaluation=evaluation).exists():
        return {}, ""
    in_order = Comparison.objects.filter(evaluation=evaluation).order_by("random_order").values("pk")
    if in_order[ENOUGH_COMPARISONS : ENOUGH_COMPARISONS + 1].exists():
        met = count_matches(Verdict.objects.filter(comparison__in=in_order[:ENOUGH_COMPARISONS]))
        if len({pk for pair in met for pk in pair}) == candidates:
            return met, f", of {ENOUGH_COMPARISONS:,} comparisons drawn at random"
    return count_matches(Verdict.objects.filter(comparison__evaluation=evaluation)), ""


def count_matches(verdicts: "QuerySet[Verdict]") -> Wins:
    """A tie is half a win for each; pairs that are both bad say nothing of who is better, and count so too."""
    of_judges_in_use = Q(rater__judge__archived_at__isnull=True)
    choices = verdicts.filter(finished_imports("comparison__"), of_judges_in_use, stage=Stage.FIRST)
    counts: dict[tuple[int, int], list[float]] = defaultdict(lambda: [0, 0])
    sides = ("comparison__response_a__candidate", "comparison__response_b__candidate")
    for first, second, choice, number in choices.values_list(*sides, "choice").annotate(Count("pk")).order_by():
        counts[first, second][0] += number
        counts[first, second][1] += number * {Choice.A: 1.0, Choice.B: 0.0}.get(choice, 0.5)
    return {pair: (met, won) for pair, (met, won) in counts.items()}


def rate_by_choices(met: Wins) -> tuple[dict[int, float], str]:
    """Bradley–Terry scores, or win rates if a candidate never lost or never met the others."""
    import numpy as np  # noqa: PLC0415 - not needed by any other import

    from evaluations.stats.bradley_terry import WinTable, bradley_terry_scores  # noqa: PLC0415

    ids = sorted({pk for pair in met for pk in pair})
    place = {pk: number for number, pk in enumerate(ids)}
    first, second = (np.array([place[pair[side]] for pair in met]) for side in (0, 1))
    matches, wins = (np.array([totals[part] for totals in met.values()], dtype=float) for part in (0, 1))
    scores = bradley_terry_scores(WinTable(first, second, len(ids), matches, wins))
    if np.isfinite(scores).all():
        return dict(zip(ids, scores.tolist(), strict=True)), "Bradley–Terry scores of the first choices so far"
    return compute_win_rates(met), "win rates in the first choices so far"


def compute_win_rates(met: Wins) -> dict[int, float]:
    rows: dict[int, list[float]] = defaultdict(lambda: [0, 0])
    for (first, second), (times, won) in met.items():
        for pk, wins in ((first, won), (second, times - won)):
            rows[pk][0] += times
            rows[pk][1] += wins
    return {pk: wins / times for pk, (times, wins) in rows.items()}


def rate_by_scores(evaluation: Evaluation) -> dict[int, float]:
    """Each candidate's mean standardised score over aspects."""
    lower = set(
        RubricAspect.objects.filter(version__rubric__evaluation=evaluation, lower_is_better=True).values_list(
            "aspect", flat=True
        )
    )
    scores = Score.objects.filter(response__query__evaluation=evaluation, rater__judge__archived_at__isnull=True)
    by_aspect: dict[int, dict[int, float]] = defaultdict(dict)
    means = scores.values_list("aspect", "response__candidate").annotate(mean=Avg("value")).order_by()
    for aspect, candidate, mean in means:
        by_aspect[aspect][candidate] = -mean if aspect in lower else mean
    deviations: dict[int, list[float]] = defaultdict(list)
    for means_of in by_aspect.values():
        centre = sum(means_of.values()) / len(means_of)
        spread = (sum((mean - centre) ** 2 for mean in means_of.values()) / len(means_of)) ** 0.5 or 1.0
        for candidate, mean in means_of.items():
            deviations[candidate].append((mean - centre) / spread)
    return {candidate: sum(parts) / len(parts) for candidate, parts in deviations.items()}
