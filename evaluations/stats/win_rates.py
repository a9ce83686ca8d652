"""Win rates of candidates and of pairs: from people, from a judge alone, and from the judge corrected by people.

A win rate is the mean, over all queries, of the mean of what the candidate had of the query's comparisons that it
is about: 1 for a win, ½ for a tie or both bad, 0 for a loss.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Final

from evaluations.stats.coding import IntArray
from evaluations.stats.distributions import t_975
from evaluations.stats.intervals import LEAST_CLUSTERS, LEAST_DISAGREEING, ONE_CLUSTER, wilson_of
from evaluations.stats.matches import UNKNOWN
from evaluations.stats.means import Judged, Means, Sample
from evaluations.stats.numbers import Number, undefined
from evaluations.stats.outcomes import Judgement, Reviewed
from evaluations.stats.ppi import Corrected, Together, corrected

NOT_REVIEWED: Final = "People have not reviewed any of these comparisons that was drawn at random."
NOT_JUDGED: Final = "The judge has no verdict on any of these comparisons."
NO_COMPARISON: Final = "The candidate is in no comparison."
HARDLY_VARIED: Final = (
    "In only {} reviewed clusters do people say something else than their commonest choice; a corrected interval is "
    "given from {} on, for with fewer it would be too narrow."
)
HARDLY_CORRECTED: Final = (
    "Only {} reviewed clusters hold a comparison on which judge and people differ; a corrected interval is given from "
    "{} on, for with fewer the judge's error is hardly known and the interval would be too narrow."
)


@dataclass(frozen=True)
class WinRate:
    """Three estimates of the same mean over the queries of so many ``comparisons``.

    ``missing``: comparisons without a verdict of the judge, ½ each. ``excluded``: comparisons with votes that were not
    drawn at random. ``judge_weight``: λ, how much of the judge the corrected rate uses. ``width_ratio``: the width of
    the corrected interval ÷ that from people alone.
    """

    people: Number
    judge: Number
    corrected: Number
    comparisons: int
    missing: int
    excluded: int
    judge_weight: float | None
    width_ratio: float | None


@dataclass(frozen=True)
class PairWinRate:
    """Of ``first`` over ``second``."""

    first: str
    second: str
    rate: WinRate


@dataclass(frozen=True)
class WinRates:
    """``pairs``: those that met."""

    candidates: dict[str, WinRate]
    pairs: tuple[PairWinRate, ...]


def win_rates(reviewed: Reviewed, judgement: Judgement) -> WinRates:
    matches = reviewed.matches
    names, excluded = matches.items.candidates, reviewed.excluded
    pairs = zip(matches.first, matches.second, rates(reviewed.pairs, judgement.pairs, excluded), strict=True)
    candidates = rates(reviewed.candidates, judgement.candidates, matches.over_pairs(excluded))
    return WinRates(
        candidates=dict(zip(names, candidates, strict=True)),
        pairs=tuple(PairWinRate(names[first], names[second], rate) for first, second, rate in pairs),
    )


def rates(sample: Sample, judged: Judged, excluded: IntArray) -> list[WinRate]:
    """The three estimates in each group."""
    correction = corrected(Together(sample, judged))
    return [rate(group, sample.means, judged, correction, excluded) for group in range(len(sample.groups))]


def rate(group: int, people: Means, judged: Judged, correction: Corrected, excluded: IntArray) -> WinRate:
    comparisons, missing = int(judged.means.n[group]), int(judged.tally[group, UNKNOWN])
    alone = mean(people, group, NOT_REVIEWED if comparisons else NO_COMPARISON)
    by_judge = mean(judged.means, group, NOT_JUDGED) if missing < comparisons else undefined(NOT_JUDGED)
    both = alone.value is not None and by_judge.value is not None
    found = of_correction(correction, people, group) if both else undefined(alone.why or NOT_JUDGED)
    return WinRate(
        people=alone,
        judge=by_judge,
        corrected=found,
        comparisons=comparisons,
        missing=missing,
        excluded=int(excluded[group]),
        judge_weight=float(correction.judge_weight[group]) if both else None,
        width_ratio=ratio(float(correction.variance[group]), float(people.variance[group]))
        if found.ci95 and alone.ci95
        else None,
    )


def mean(means: Means, group: int, empty: str) -> Number:
    """With t where enough clusters differ, with Wilson's interval where they hardly do."""
    n, clusters = int(means.n[group]), int(means.clusters[group])
    if not n:
        return undefined(empty)
    number = Number(float(means.value[group]), n)
    if clusters > 1 and means.varied[group] >= LEAST_DISAGREEING:
        return within_t(number, clusters, float(means.variance[group]))
    return wilson_of(number, clusters, float(means.variance[group]) if clusters > 1 else 0.0)


def of_correction(correction: Corrected, people: Means, group: int) -> Number:
    """With t, where enough differs among the reviewed for the variance to be known; cut off at 0 and 1."""
    number = Number(min(max(float(correction.value[group]), 0.0), 1.0), int(people.n[group]))
    clusters = int(people.clusters[group])
    if clusters < 2:
        return number.without_interval(ONE_CLUSTER)
    if people.varied[group] < LEAST_DISAGREEING:
        return number.without_interval(HARDLY_VARIED.format(people.varied[group], LEAST_DISAGREEING))
    if correction.judge_weight[group] and correction.differing[group] < LEAST_DISAGREEING:
        return number.without_interval(HARDLY_CORRECTED.format(correction.differing[group], LEAST_DISAGREEING))
    return within_t(number, clusters, float(correction.variance[group]))


def within_t(number: Number, clusters: int, variance: float) -> Number:
    """± t · √variance with clusters − 1 degrees of freedom, cut off at 0 and 1."""
    assert number.value is not None
    margin = t_975(clusters - 1) * sqrt(max(variance, 0.0))
    few = ": few, so that it may be too narrow" if clusters < LEAST_CLUSTERS else ""
    rule = f"t over {clusters:,} clusters{few}"
    return number.within(max(number.value - margin, 0.0), min(number.value + margin, 1.0), rule)


def ratio(variance: float, of_people: float) -> float | None:
    return sqrt(max(variance, 0.0) / of_people) if of_people > 0 else None
