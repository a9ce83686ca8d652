"""Means by cluster with one-sided bounds, alone and stepping down over several."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import floor, inf, sqrt
from typing import Final

import numpy as np

from evaluations.stats.coding import BoolArray, FloatArray, IntArray
from evaluations.stats.confidence_intervals import (
    CORRELATION_BOUNDS,
    MIN_DISAGREEING,
    ROUNDING,
    SHARE_BOUNDS,
    why_counts_withhold_interval,
    wilson_from_variance,
)
from evaluations.stats.estimates import NO_INTERVAL, Estimate, undefined_estimate
from evaluations.stats.significance import t_975, t_quantile
from evaluations.stats.simultaneous_intervals import MIN_TESTED, MeanDifference, draw_t


@dataclass(frozen=True)
class Contrast(MeanDifference):
    """A mean of values from −1 to 1. ``below`` and ``above``: whether each cluster has a value below and above 0.

    ``n``: how many values.
    """

    below: BoolArray
    above: BoolArray
    n: int

    @property
    def is_testable(self) -> bool:
        return self.effective >= MIN_TESTED

    @property
    def is_sparse(self) -> bool:
        """Whether so few clusters have a value other than 0 that resamples would hardly vary."""
        return self.differing < MIN_DISAGREEING or not self.standard_error


@dataclass(frozen=True)
class EntryClusters:
    """The clusters of entries. ``present``: their numbers, ascending; ``of``: of each entry, the index in these."""

    present: IntArray
    of: IntArray

    def total(self, values: FloatArray | BoolArray) -> FloatArray:
        return np.bincount(self.of, values, len(self.present)).astype(np.float64, copy=False)


def entry_clusters(cluster: IntArray) -> EntryClusters:
    """``cluster``: of each entry, numbers from 0."""
    is_present = np.bincount(cluster) > 0
    return EntryClusters(np.flatnonzero(is_present), (np.cumsum(is_present) - 1)[cluster])


def contrast(value: FloatArray, cluster: IntArray | EntryClusters, weight: FloatArray | None = None) -> Contrast | None:
    """The mean of values, or their weighted mean with positive weights; None without entries."""
    if not len(value):
        return None
    clusters = cluster if isinstance(cluster, EntryClusters) else entry_clusters(cluster)
    weights = np.ones(len(value)) if weight is None else weight
    products, total = value * weights, float(weights.sum())
    mean, size = float(products.sum()) / total, clusters.total(weights)
    below, above = (clusters.total(side) > 0 for side in (value < 0, value > 0))
    return Contrast(
        value=mean,
        cluster=clusters.present,
        influence=(clusters.total(products) - mean * size) / total,
        size=size / total,
        differing=int(np.count_nonzero(below | above)),
        below=below,
        above=above,
        n=len(value),
    )


def average_contrasts(contrasts: Sequence[Contrast]) -> Contrast:
    """The unweighted mean of means over the same clusters, such as those of several aspects."""
    if len(contrasts) == 1:
        return contrasts[0]
    clusters = int(max(one.cluster[-1] for one in contrasts)) + 1
    influence, size = np.zeros((2, clusters))
    below, above = np.zeros((2, clusters), dtype=bool)
    for one in contrasts:
        influence[one.cluster] += one.influence / len(contrasts)
        size[one.cluster] += one.size / len(contrasts)
        below[one.cluster] |= one.below
        above[one.cluster] |= one.above
    (present,) = np.nonzero(size)
    return Contrast(
        value=sum(one.value for one in contrasts) / len(contrasts),
        cluster=present,
        influence=influence[present],
        size=size[present],
        differing=int(np.count_nonzero(below | above)),
        below=below[present],
        above=above[present],
        n=sum(one.n for one in contrasts),
    )


@dataclass(frozen=True)
class Bounds:
    """One-sided bounds, each at its own level; infinite where there are too few clusters."""

    low: float
    high: float


UNKNOWN_BOUNDS: Final = Bounds(-inf, inf)


def one_sided_bounds(contrasts: Sequence[Contrast], level: float) -> list[Bounds]:
    """For each contrast, bounds that are exceeded with probability ``level`` on each side, contrast by contrast.

    Studentised bootstrap of clusters, never below the quantile of t. Where few clusters have a value other than 0,
    Wilson bounds of the share of clusters below 0 and above 0, as if each counted in full.
    """
    drawn = iter(draw_t(regular).T) if (regular := [one for one in contrasts if is_regular(one)]) else iter(())
    return [
        bootstrap_bounds(one, next(drawn), level)
        if is_regular(one)
        else (sparse_bounds(one, level) if one.is_testable else UNKNOWN_BOUNDS)
        for one in contrasts
    ]


def is_regular(one: Contrast) -> bool:
    return one.is_testable and not one.is_sparse


def bootstrap_bounds(one: Contrast, drawn: FloatArray, level: float) -> Bounds:
    least = t_quantile(1 - level, one.degrees)
    down, up = max(float(np.quantile(drawn, 1 - level)), least), min(float(np.quantile(drawn, level)), -least)
    return Bounds(one.value - down * one.standard_error, one.value - up * one.standard_error)


def sparse_bounds(one: Contrast, level: float) -> Bounds:
    clusters = max(floor(one.effective + ROUNDING), 2)
    z = t_quantile(1 - level, clusters - 1)
    below, above = float(one.size[one.below].sum()), float(one.size[one.above].sum())
    return Bounds(-wilson_upper_bound(below, clusters, z), wilson_upper_bound(above, clusters, z))


def wilson_upper_bound(share: float, n: int, z: float) -> float:
    return (share + z * z / (2 * n) + z * sqrt(share * (1 - share) / n + (z / (2 * n)) ** 2)) / (1 + z * z / n)


Group = Sequence[tuple[Contrast, float]]  # contrasts, each with its threshold


def step_down(groups: Sequence[Group], level: float) -> list[bool]:
    """Which groups are shown, with probability ``level`` of any false one: all their contrasts exceed their thresholds.

    Groups of contrasts that resamples serve step down together; each other group has its share of the level, by bounds.
    """
    regular = [number for number, group in enumerate(groups) if group and all(is_regular(one) for one, _ in group)]
    shown = step_down_by_max_t(groups, regular, level * len(regular) / max(len(groups), 1))
    for number, group in enumerate(groups):
        if group and number not in regular:
            bounds = one_sided_bounds([one for one, _ in group], level / len(groups))
            if all(bound.low > threshold for bound, (_, threshold) in zip(bounds, group, strict=True)):
                shown.add(number)
    return [number in shown for number in range(len(groups))]


def step_down_by_max_t(groups: Sequence[Group], tested: Sequence[int], level: float) -> set[int]:
    """The numbers of the groups that are shown (Romano and Wolf 2005).

    The critical value is that of the largest t over all contrasts of the groups not shown yet, and never below that of
    one t.
    """
    if not tested:
        return set()
    members = [(number, one) for number in tested for one, _ in groups[number]]
    drawn, owner = draw_t([one for _, one in members]), np.array([number for number, _ in members])
    of_one = t_quantile(1 - level, min(one.degrees for _, one in members))
    t = {number: group_t(groups[number]) for number in tested}
    shown: set[int] = set()
    while waiting := [number for number in tested if number not in shown]:
        largest = drawn[:, np.isin(owner, waiting)].max(axis=1)
        critical = max(float(np.quantile(largest, 1 - level)), of_one)
        if not (passed := {number for number in waiting if t[number] > critical}):
            break
        shown |= passed
    return shown


def group_t(group: Group) -> float:
    """The smallest t of a group's contrasts against their thresholds."""
    return min((one.value - threshold) / one.standard_error for one, threshold in group)


def opposite(one: Contrast) -> Contrast:
    """The contrast with its sign changed."""
    return Contrast(
        -one.value, one.cluster, -one.influence, one.size, one.differing, below=one.above, above=one.below, n=one.n
    )


def share_with_interval(one: Contrast | None, why: str) -> Estimate:
    """A mean of values from 0 to 1 with its pointwise 95% interval, Wilson's where clusters are few."""
    if one is None:
        return undefined_estimate(why)
    number = Estimate(one.value, one.n)
    if why_counts_withhold_interval(one.effective, one.differing, len(one.cluster) - int(one.above.sum())):
        return wilson_from_variance(number, len(one.cluster), one.standard_error**2, one.effective)
    return number.with_margin(t_margin(one), SHARE_BOUNDS, linearised_rule(one))


def difference_with_interval(one: Contrast | None, why: str) -> Estimate:
    """A mean of values from −1 to 1 with its pointwise 95% interval, or the reason why it has none."""
    if one is None:
        return undefined_estimate(why)
    number = Estimate(one.value, one.n)
    if not one.standard_error:
        return number.without_interval(NO_INTERVAL)
    if few := why_counts_withhold_interval(one.effective, one.differing, clusters=len(one.cluster)):
        return number.without_interval(few)
    return number.with_margin(t_margin(one), CORRELATION_BOUNDS, linearised_rule(one))


def t_margin(one: Contrast) -> float:
    return t_975(max(int(one.degrees), 1)) * one.standard_error


def linearised_rule(one: Contrast) -> str:
    return f"linearised over {len(one.cluster):,} clusters"
