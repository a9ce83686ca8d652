"""Shares by stratum of a judge, of people, and their difference, with closed-form intervals.

A bias board has hundreds of shares, so none is resampled: the intervals are in closed form and reach their coverage
with fewer clusters than a bootstrap (docs/decisions/0012 compares them).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Final

import numpy as np

from evaluations.stats.bias.strata import CountsByStratum
from evaluations.stats.coding import BoolArray, IntArray
from evaluations.stats.confidence_intervals import (
    NOISE,
    SHARE_BOUNDS,
    Bounds,
    why_counts_withhold_interval,
    wilson_from_variance,
)
from evaluations.stats.estimates import NO_INTERVAL, Estimate, JudgeVersusPeople, share_estimate
from evaluations.stats.significance import t_975

# Cells of one rater: the event did not happen, it happened. Cells of a judge and people: neither, judge, people, both.
ONE_RATER_CELLS: Final = 2
BOTH_RATERS_CELLS: Final = 4
EVENT: Final = np.array([0, 1])
ONE_RATER_ALL: Final = np.array([1, 1])
JUDGE_EVENT: Final = np.array([0, 1, 0, 1])
PEOPLE_EVENT: Final = np.array([0, 0, 1, 1])
BOTH_RATERS_ALL: Final = np.array([1, 1, 1, 1])
DIFFERENCE: Final[Bounds] = (-1.0, 1.0)
DIFFERING: Final = JUDGE_EVENT != PEOPLE_EVENT


@dataclass(frozen=True)
class StratumRatio:
    """The ratio part ÷ n in one stratum. ``variance``: by cluster, linearised (Binder 1983).

    ``effective``: the effective number of clusters, (Σn)² ÷ Σn².
    """

    part: int
    n: int
    clusters: int
    effective: float
    variance: float


def stratum_ratios(counts: CountsByStratum, part: IntArray, whole: IntArray) -> list[StratumRatio]:
    """Σ part · n ÷ Σ whole · n for each stratum; ``part`` and ``whole``: how often each cell counts in either sum."""
    parts, n = counts.totals @ part, counts.totals @ whole
    clusters = counts.clusters if (whole > 0).all() else counts.clusters_with(whole > 0)
    value = np.divide(parts, n, out=np.zeros(len(n)), where=n > 0)
    variance = counts.variance(part - value[:, None] * whole, n, clusters)
    columns = parts, n, clusters, counts.effective(whole > 0), variance
    return [StratumRatio(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def stratum_shares(counts: CountsByStratum, part: IntArray, whole: IntArray, empty: str) -> list[Estimate]:
    """Shares of strata with Wilson intervals. ``empty``: the reason where n is 0."""
    return [wilson_share(ratio, empty) for ratio in stratum_ratios(counts, part, whole)]


def judge_people_shares(counts: CountsByStratum, empty: str) -> list[JudgeVersusPeople]:
    """The shares of the judge and of people in each stratum, from counts in the four cells of both."""
    judge = stratum_shares(counts, JUDGE_EVENT, BOTH_RATERS_ALL, empty)
    people = stratum_shares(counts, PEOPLE_EVENT, BOTH_RATERS_ALL, empty)
    return [JudgeVersusPeople(*each) for each in zip(judge, people, share_differences(counts, empty), strict=True)]


def share_differences(counts: CountsByStratum, empty: str) -> Iterator[Estimate]:
    """The judge's share minus that of people, linearised; withheld where they differ in few clusters."""
    ratios = stratum_ratios(counts, JUDGE_EVENT - PEOPLE_EVENT, BOTH_RATERS_ALL)
    for ratio, differing in zip(ratios, counts.clusters_with(DIFFERING).tolist(), strict=True):
        why = why_counts_withhold_interval(ratio.effective, differing, clusters=ratio.clusters)
        number = share_estimate(ratio.part, ratio.n, empty)
        if why and ratio.n:
            yield number.without_interval(why)
        else:
            yield linearised_interval(number, ratio.clusters, ratio.variance, DIFFERENCE)


def balance_shares(
    counts: CountsByStratum, part: IntArray, whole: IntArray, tipped: BoolArray, empty: str
) -> Iterator[Estimate]:
    """Shares to which an entry may contribute both ways, linearised because they vary less than by chance.

    ``tipped``: the cells that contribute unequally; where few clusters hold one, the interval is Wilson's.
    """
    ratios = stratum_ratios(counts, part, whole)
    for ratio, differing in zip(ratios, counts.clusters_with(tipped).tolist(), strict=True):
        few = why_counts_withhold_interval(ratio.effective, differing, clusters=ratio.clusters)
        if few or ratio.variance <= NOISE**2:  # without variance every cluster is wholly one way
            yield wilson_share(ratio, empty)
        else:
            yield linearised_interval(
                share_estimate(ratio.part, ratio.n, empty), ratio.clusters, ratio.variance, SHARE_BOUNDS
            )


def wilson_share(ratio: StratumRatio, empty: str) -> Estimate:
    return wilson_from_variance(
        share_estimate(ratio.part, ratio.n, empty), ratio.clusters, ratio.variance, ratio.effective
    )


def linearised_interval(number: Estimate, clusters: int, variance: float, bounds: Bounds) -> Estimate:
    """The interval number ± t √variance, with clusters − 1 degrees of freedom, for two clusters or more."""
    if number.value is None:
        return number
    if sqrt(variance) <= NOISE * abs(number.value):
        return number.without_interval(NO_INTERVAL)
    return number.with_margin(t_975(clusters - 1) * sqrt(variance), bounds, f"linearised over {clusters:,} clusters")
