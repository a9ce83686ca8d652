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
from evaluations.stats.distributions import t_975
from evaluations.stats.estimates import NO_INTERVAL, Estimate, share_estimate

# The cells of one rater that did something or did not, and of a judge and people who each did or did not.
ONE: Final = 2
BOTH: Final = 4
DID: Final = np.array([0, 1])
OF_ONE: Final = np.array([1, 1])
JUDGE_DID: Final = np.array([0, 1, 0, 1])
PEOPLE_DID: Final = np.array([0, 0, 1, 1])
OF_BOTH: Final = np.array([1, 1, 1, 1])
DIFFERENCE: Final[Bounds] = (-1.0, 1.0)
DIFFERING: Final = JUDGE_DID != PEOPLE_DID


@dataclass(frozen=True)
class JudgeVersusPeopleShares:
    """How often the judge did it and how often people did, on the same entries; ``difference``: judge − people."""

    judge: Estimate
    people: Estimate
    difference: Estimate


@dataclass(frozen=True)
class StratumRatio:
    """part ÷ n in one stratum, over so many clusters; ``variance`` is over them, linearised (Binder 1983).

    ``effective``: how many clusters of one size tell as much.
    """

    part: int
    n: int
    clusters: int
    effective: float
    variance: float


def stratum_ratios(counts: CountsByStratum, part: IntArray, whole: IntArray) -> list[StratumRatio]:
    """Σ part · n ÷ Σ whole · n for each stratum; ``part`` and ``whole``: how often each cell counts in either sum."""
    of, n = counts.totals @ part, counts.totals @ whole
    clusters = counts.clusters if (whole > 0).all() else counts.clusters_with(whole > 0)
    value = np.divide(of, n, out=np.zeros(len(n)), where=n > 0)
    variance = counts.variance(part - value[:, None] * whole, n, clusters)
    columns = of, n, clusters, counts.effective(whole > 0), variance
    return [StratumRatio(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def stratum_shares(counts: CountsByStratum, part: IntArray, whole: IntArray, empty: str) -> list[Estimate]:
    """Shares of strata with Wilson intervals. ``empty``: the reason where n is 0."""
    return [wilson_share(one, empty) for one in stratum_ratios(counts, part, whole)]


def judge_people_shares(counts: CountsByStratum, empty: str) -> list[JudgeVersusPeopleShares]:
    """The shares of the judge and of people in each stratum, from counts in the four cells of both."""
    judge = stratum_shares(counts, JUDGE_DID, OF_BOTH, empty)
    people = stratum_shares(counts, PEOPLE_DID, OF_BOTH, empty)
    return [
        JudgeVersusPeopleShares(*each) for each in zip(judge, people, share_differences(counts, empty), strict=True)
    ]


def share_differences(counts: CountsByStratum, empty: str) -> Iterator[Estimate]:
    """The judge's share minus that of people, linearised; withheld where they differ in few clusters."""
    found = stratum_ratios(counts, JUDGE_DID - PEOPLE_DID, OF_BOTH)
    for one, differing in zip(found, counts.clusters_with(DIFFERING).tolist(), strict=True):
        why = why_counts_withhold_interval(one.effective, differing, clusters=one.clusters)
        number = share_estimate(one.part, one.n, empty)
        yield (
            number.without_interval(why)
            if why and one.n
            else linearised_interval(number, one.clusters, one.variance, DIFFERENCE)
        )


def balance_shares(
    counts: CountsByStratum, part: IntArray, whole: IntArray, tipped: BoolArray, empty: str
) -> Iterator[Estimate]:
    """Linearised shares of which an entry counts both ways, and therefore varies less than by chance.

    ``tipped``: the cells that are not balanced in themselves; where few clusters hold one the interval is Wilson's.
    """
    found = stratum_ratios(counts, part, whole)
    for one, differing in zip(found, counts.clusters_with(tipped).tolist(), strict=True):
        few = why_counts_withhold_interval(one.effective, differing, clusters=one.clusters)
        number = share_estimate(one.part, one.n, empty)
        is_alike = one.variance <= NOISE**2  # every cluster is wholly one way
        yield (
            wilson_share(one, empty)
            if few or is_alike
            else linearised_interval(number, one.clusters, one.variance, SHARE_BOUNDS)
        )


def wilson_share(ratio: StratumRatio, empty: str) -> Estimate:
    return wilson_from_variance(
        share_estimate(ratio.part, ratio.n, empty), ratio.clusters, ratio.variance, ratio.effective
    )


def linearised_interval(number: Estimate, clusters: int, variance: float, bounds: Bounds) -> Estimate:
    """The number ± t √variance, within the bounds. The clusters are two or more."""
    if number.value is None:
        return number
    if sqrt(variance) <= NOISE * abs(number.value):
        return number.without_interval(NO_INTERVAL)
    margin = t_975(clusters - 1) * sqrt(variance)
    low, high = max(number.value - margin, bounds[0]), min(number.value + margin, bounds[1])
    return number.within(low, high, f"linearised over {clusters:,} clusters")
