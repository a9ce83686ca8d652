"""The order of the candidates by how they did so far, for pairs of neighbours."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from django.db.models import Avg, Count, QuerySet

from evaluations.domain import Choice, InputRefused, Stage
from evaluations.models import Candidate, Comparison, Evaluation, RubricAspect, Score, Verdict
from evaluations.models.material import finished_imports

# Comparisons: so many tell neighbours apart, and twelve verdicts on each are still read within a second or two.
ENOUGH: Final = 20_000

Wins = Mapping[tuple[int, int], tuple[float, float]]  # of each pair: how often they met, and the first won


@dataclass(frozen=True)
class Ranking:
    """The rated candidates, the best first, and in words what rated them."""

    names: tuple[str, ...]
    by: str


def ranking_of(evaluation: Evaluation) -> Ranking:
    """By Bradley–Terry scores of everyone's first choices; without choices by scores. Raises InputRefused."""
    names = dict(Candidate.objects.filter(evaluation=evaluation).values_list("pk", "name"))
    met, those = matches_known(evaluation, len(names))
    if met:
        rated, by = by_choices(met)
        by += those
    else:
        rated, by = by_scores(evaluation), "mean scores"
    if len(rated) < 2:
        raise InputRefused(
            "Neighbours by rating need candidates with verdicts or scores, and there are none yet: "
            "pair them another way first."
        )
    ordered = sorted(rated, key=lambda pk: (-rated[pk], names[pk]))
    return Ranking(tuple(names[pk] for pk in ordered), by)


def matches_known(evaluation: Evaluation, candidates: int) -> tuple[Wins, str]:
    """And of which comparisons: of very many those in front in the random order, where they tell of every candidate."""
    if not Verdict.objects.filter(rater__evaluation=evaluation).exists():
        return {}, ""
    in_order = Comparison.objects.filter(evaluation=evaluation).order_by("shuffle").values("pk")
    if in_order[ENOUGH : ENOUGH + 1].exists():
        met = matches(Verdict.objects.filter(comparison__in=in_order[:ENOUGH]))
        if len({pk for pair in met for pk in pair}) == candidates:
            return met, f", of {ENOUGH:,} comparisons drawn at random"
    return matches(Verdict.objects.filter(comparison__evaluation=evaluation)), ""


def matches(verdicts: "QuerySet[Verdict]") -> Wins:
    """A tie is half a win for each; pairs that are both bad say nothing of who is better, and count so too."""
    said = verdicts.filter(finished_imports("comparison__"), stage=Stage.FIRST, rater__judge__archived_at__isnull=True)
    told: dict[tuple[int, int], list[float]] = defaultdict(lambda: [0, 0])
    sides = ("comparison__response_a__candidate", "comparison__response_b__candidate")
    for first, second, choice, number in said.values_list(*sides, "choice").annotate(Count("pk")).order_by():
        told[first, second][0] += number
        told[first, second][1] += number * {Choice.A: 1.0, Choice.B: 0.0}.get(choice, 0.5)
    return {pair: (met, won) for pair, (met, won) in told.items()}


def by_choices(met: Wins) -> tuple[dict[int, float], str]:
    """Where Bradley–Terry has no scores – somebody never lost, or never met the others – win rates stand in."""
    import numpy as np  # noqa: PLC0415 - not needed by any other import

    from evaluations.stats.bradley_terry import Table, scores  # noqa: PLC0415

    ids = sorted({pk for pair in met for pk in pair})
    place = {pk: number for number, pk in enumerate(ids)}
    first, second = (np.array([place[pair[side]] for pair in met]) for side in (0, 1))
    matches, wins = (np.array([told[part] for told in met.values()], dtype=float) for part in (0, 1))
    found = scores(Table(first, second, len(ids), matches, wins))
    if np.isfinite(found).all():
        return dict(zip(ids, found.tolist(), strict=True)), "Bradley–Terry scores of the first choices so far"
    return win_rates(met), "win rates in the first choices so far"


def win_rates(met: Wins) -> dict[int, float]:
    told: dict[int, list[float]] = defaultdict(lambda: [0, 0])
    for (first, second), (times, won) in met.items():
        for pk, wins in ((first, won), (second, times - won)):
            told[pk][0] += times
            told[pk][1] += wins
    return {pk: wins / times for pk, (times, wins) in told.items()}


def by_scores(evaluation: Evaluation) -> dict[int, float]:
    """The mean over aspects of how far a candidate's mean score lies above the others', in standard deviations."""
    lower = set(
        RubricAspect.objects.filter(version__rubric__evaluation=evaluation, lower_is_better=True).values_list(
            "aspect", flat=True
        )
    )
    given = Score.objects.filter(response__query__evaluation=evaluation, rater__judge__archived_at__isnull=True)
    by_aspect: dict[int, dict[int, float]] = defaultdict(dict)
    means = given.values_list("aspect", "response__candidate").annotate(mean=Avg("value")).order_by()
    for aspect, candidate, mean in means:
        by_aspect[aspect][candidate] = -mean if aspect in lower else mean
    told: dict[int, list[float]] = defaultdict(list)
    for means_of in by_aspect.values():
        centre = sum(means_of.values()) / len(means_of)
        spread = (sum((mean - centre) ** 2 for mean in means_of.values()) / len(means_of)) ** 0.5 or 1.0
        for candidate, mean in means_of.items():
            told[candidate].append((mean - centre) / spread)
    return {candidate: sum(parts) / len(parts) for candidate, parts in told.items()}
