"""Shares by stratum, and the difference of two raters' shares of the same entries, each with an interval by cluster.

A board holds hundreds of them, so none is resampled: the intervals are in closed form, and hold what they promise
with fewer clusters than a bootstrap does (docs/decisions/0012 has both).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import sqrt
from typing import Final

import numpy as np

from evaluations.stats.bias.counts import CountsByStratum
from evaluations.stats.coding import BoolArray, IntArray
from evaluations.stats.distributions import t_975
from evaluations.stats.intervals import NOISE, SHARE, Bounds, too_few_of, wilson_of
from evaluations.stats.numbers import NO_INTERVAL, Number, share

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
class Beside:
    """How often the judge did it and how often people did, on the same entries; ``difference``: judge − people."""

    judge: Number
    people: Number
    difference: Number


@dataclass(frozen=True)
class Ratio:
    """part ÷ n in one stratum, over so many clusters; ``variance`` is over them, linearised (Binder 1983).

    ``effective``: how many clusters of one size tell as much.
    """

    part: int
    n: int
    clusters: int
    effective: float
    variance: float


def ratios(counts: CountsByStratum, part: IntArray, whole: IntArray) -> list[Ratio]:
    """Σ part · n ÷ Σ whole · n for each stratum; ``part`` and ``whole``: how often each cell counts in either sum."""
    of, n = counts.totals @ part, counts.totals @ whole
    clusters = counts.clusters if (whole > 0).all() else counts.clusters_with(whole > 0)
    value = np.divide(of, n, out=np.zeros(len(n)), where=n > 0)
    variance = counts.variance(part - value[:, None] * whole, n, clusters)
    columns = of, n, clusters, counts.effective(whole > 0), variance
    return [Ratio(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def shares(counts: CountsByStratum, part: IntArray, whole: IntArray, empty: str) -> list[Number]:
    """The ratios with `wilson_of`'s interval. ``empty``: the reason where n is 0."""
    return [wilson(one, empty) for one in ratios(counts, part, whole)]


def beside(counts: CountsByStratum, empty: str) -> list[Beside]:
    """Of counts in the four cells of both, for each stratum."""
    judge = shares(counts, JUDGE_DID, OF_BOTH, empty)
    people = shares(counts, PEOPLE_DID, OF_BOTH, empty)
    return [Beside(*each) for each in zip(judge, people, differences(counts, empty), strict=True)]


def differences(counts: CountsByStratum, empty: str) -> Iterator[Number]:
    """The judge's share minus that of people, linearised; withheld where they differ in few clusters."""
    found = ratios(counts, JUDGE_DID - PEOPLE_DID, OF_BOTH)
    for one, differing in zip(found, counts.clusters_with(DIFFERING).tolist(), strict=True):
        why = too_few_of(one.effective, differing, clusters=one.clusters)
        number = share(one.part, one.n, empty)
        yield (
            number.without_interval(why)
            if why and one.n
            else linearised(number, one.clusters, one.variance, DIFFERENCE)
        )


def balances(
    counts: CountsByStratum, part: IntArray, whole: IntArray, tipped: BoolArray, empty: str
) -> Iterator[Number]:
    """Shares of which an entry holds both ways, so that entries vary less than chance would have them: linearised.

    ``tipped``: the cells that are not balanced in themselves; where few clusters hold one the interval is Wilson's.
    """
    found = ratios(counts, part, whole)
    for one, differing in zip(found, counts.clusters_with(tipped).tolist(), strict=True):
        few = too_few_of(one.effective, differing, clusters=one.clusters)
        number = share(one.part, one.n, empty)
        is_alike = one.variance <= NOISE**2  # every cluster is wholly one way
        yield wilson(one, empty) if few or is_alike else linearised(number, one.clusters, one.variance, SHARE)


def wilson(ratio: Ratio, empty: str) -> Number:
    return wilson_of(share(ratio.part, ratio.n, empty), ratio.clusters, ratio.variance, ratio.effective)


def linearised(number: Number, clusters: int, variance: float, bounds: Bounds) -> Number:
    """The number ± t √variance, within the bounds. The clusters are two or more."""
    if number.value is None:
        return number
    if sqrt(variance) <= NOISE * abs(number.value):
        return number.without_interval(NO_INTERVAL)
    margin = t_975(clusters - 1) * sqrt(variance)
    low, high = max(number.value - margin, bounds[0]), min(number.value + margin, bounds[1])
    return number.within(low, high, f"linearised over {clusters:,} clusters")
