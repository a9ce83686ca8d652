"""How far two sides give the same scores to the same responses."""

from dataclasses import dataclass, replace
from math import floor, sqrt
from typing import Final

import numpy as np

from evaluations.stats.cluster_sums import numbered
from evaluations.stats.coding import IntArray
from evaluations.stats.contributions import FloatArray
from evaluations.stats.correlation import CONSTANT, Orders, kendall_tau_b, spearman
from evaluations.stats.distributions import t_975
from evaluations.stats.intervals import (
    CORRELATION,
    LEAST_CLUSTERS,
    LEAST_DISAGREEING,
    NOISE,
    ROUNDING,
    Bounds,
    Spread,
    Statistic,
    too_few_of,
)
from evaluations.stats.numbers import NO_INTERVAL, Number, undefined
from evaluations.stats.ranks import ranked
from evaluations.stats.score_sums import (
    DIFFERS,
    OF_TWO_ICC_AGREEMENT,
    OF_TWO_ICC_CONSISTENCY,
    alpha_of_two,
    mean_absolute_difference,
    mean_difference,
    mean_squared_difference,
    pearson,
    score_sums,
)

NOTHING_SHARED: Final = "No response has a score on both sides."
ONE_VALUE: Final = "Every score is the same: there is no variation that agreement could explain."
NO_DENOMINATOR: Final = "The responses vary too little for this number to have a denominator."

ANY: Final[Bounds] = (-np.inf, np.inf)
NOT_NEGATIVE: Final[Bounds] = (0.0, np.inf)


@dataclass(frozen=True)
class ScoreAgreement:
    """Two sides on the responses that both scored. Differences are first − second, in the units of the scale."""

    n: int
    pearson: Number
    spearman: Number
    kendall_tau_b: Number
    mean_difference: Number
    mean_absolute_difference: Number
    root_mean_square_difference: Number
    icc_agreement: Number
    icc_consistency: Number
    krippendorff_alpha: Number


def score_agreement(first: FloatArray, second: FloatArray, cluster: IntArray) -> ScoreAgreement:
    """One entry for each response that both scored, in every array. Correlations and ICC say why where undefined.

    Intervals take clusters whole. They are withheld below 10 clusters that hold a difference, and all but those of
    the mean differences below 40 clusters.
    """
    if not len(first):
        return ScoreAgreement(0, *(undefined(NOTHING_SHARED) for _ in range(9)))
    sides = sides_of(first, second, cluster)
    orders = sides.orders
    constant = CONSTANT if orders.x.is_constant or orders.y.is_constant else None
    return ScoreAgreement(
        n=len(first),
        pearson=sides.correlation(pearson, constant),
        spearman=sides.unless_few(spearman(orders)),
        kendall_tau_b=sides.unless_few(kendall_tau_b(orders)),
        mean_difference=sides.mean(mean_difference, ANY),
        mean_absolute_difference=sides.mean(mean_absolute_difference, NOT_NEGATIVE),
        root_mean_square_difference=sides.root_mean_square(),
        icc_agreement=sides.correlation(OF_TWO_ICC_AGREEMENT, constant),
        icc_consistency=sides.correlation(OF_TWO_ICC_CONSISTENCY, constant),
        krippendorff_alpha=sides.correlation(alpha_of_two, constant if sides.scale else ONE_VALUE),
    )


@dataclass(frozen=True)
class Sides:
    """Two sides as ranks and as totals, these of scores that are centred and divided by ``scale``, their common sd.

    ``few``: why an interval would promise too much, where it would. ``alike``: the same, however many the clusters.
    """

    orders: Orders
    spread: Spread
    scale: float
    few: str | None
    alike: str | None

    def number(self, statistic: Statistic) -> Number:
        return Number(float(statistic(self.spread.contributions.totals)), len(self.orders.x.code))

    def unless_few(self, number: Number) -> Number:
        return number if self.few is None or number.value is None else number.without_interval(self.few)

    def correlation(self, statistic: Statistic, why: str | None) -> Number:
        """``why``: the reason why it is undefined, where there is one."""
        with np.errstate(all="ignore"):
            found = self.number(statistic)
        if why is not None or found.value is None or not np.isfinite(found.value):
            return undefined(why or NO_DENOMINATOR, found.n)
        found = replace(found, value=min(found.value, 1.0))  # rounding may bring it above
        return self.unless_few(found) if self.few else self.spread.interval(found, statistic, CORRELATION)

    def mean(self, statistic: Statistic, bounds: Bounds) -> Number:
        """A mean of clusters' sums: from few of them it has the interval of t."""

        def in_units(totals: FloatArray) -> FloatArray:
            return self.scale * statistic(totals)

        found = self.number(in_units)
        if self.alike is not None:
            return found.without_interval(self.alike)
        if self.few is None:
            return self.spread.interval(found, in_units, bounds)
        return by_t(found, self.spread, in_units, bounds)

    def root_mean_square(self) -> Number:
        """The root of a mean, and of its interval's bounds."""
        found = self.number(mean_squared_difference)
        assert found.value is not None
        root = replace(found, value=self.scale * sqrt(found.value))
        if self.few is not None:
            return root.without_interval(self.few)
        spread = self.spread.interval(found, mean_squared_difference, NOT_NEGATIVE)
        if spread.ci95 is None:
            return replace(spread, value=root.value)
        low, high = (self.scale * sqrt(max(bound, 0.0)) for bound in spread.ci95)
        return replace(spread, value=root.value, ci95=(low, high))


def sides_of(first: FloatArray, second: FloatArray, cluster: IntArray) -> Sides:
    clusters = numbered(cluster)
    centre = (first.mean() + second.mean()) / 2
    x, y = first - centre, second - centre
    scale = sqrt(float((x * x + y * y).mean()) / 2)
    unit = scale or 1.0
    spread = Spread(score_sums(x / unit, y / unit, clusters))
    differing = spread.contributions.clusters_with(DIFFERS, LEAST_DISAGREEING)
    return Sides(
        orders=Orders(ranked(first), ranked(second), clusters),
        spread=spread,
        scale=scale,
        few=too_few_of(clusters.effective, differing, clusters=clusters.count),
        alike=too_few_of(LEAST_CLUSTERS, differing),
    )


def by_t(number: Number, spread: Spread, statistic: Statistic, bounds: Bounds) -> Number:
    """Linearised, with the t of effective clusters − 1 degrees of freedom."""
    assert number.value is not None
    clusters = spread.contributions.clusters
    effective = floor(spread.contributions.effective_clusters(DIFFERS) + ROUNDING)
    error = sqrt(spread.variance(statistic))
    if error <= NOISE * abs(number.value):
        return number.without_interval(NO_INTERVAL)
    margin = t_975(max(effective - 1, 1)) * error
    low, high = max(number.value - margin, bounds[0]), min(number.value + margin, bounds[1])
    return number.within(low, high, f"t over {clusters:,} clusters")
