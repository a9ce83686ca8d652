"""Agreement of two raters on scores of the same responses."""

from dataclasses import dataclass, replace
from math import floor, sqrt
from typing import Final

import numpy as np

from evaluations.stats.agreement_coefficients import icc_agreement, icc_consistency
from evaluations.stats.cluster_totals import Clusters, ClusterSums, number_clusters, sum_by_cluster
from evaluations.stats.coding import BoolArray, FloatArray, IntArray
from evaluations.stats.confidence_intervals import (
    CORRELATION_BOUNDS,
    MIN_CLUSTERS,
    MIN_DISAGREEING,
    NOISE,
    ROUNDING,
    UNBOUNDED,
    Bounds,
    Spread,
    Statistic,
    why_counts_withhold_interval,
)
from evaluations.stats.estimates import NO_INTERVAL, Estimate, undefined_estimate
from evaluations.stats.rank_correlation import CONSTANT, RankedPair, kendall_tau_b, spearman
from evaluations.stats.ranks import rank_values
from evaluations.stats.significance import t_975

# The cells of two sides x and y. The first five are those of `anova_mean_squares`.
N, SUMMED_SQUARED, SQUARES, X, Y, SQUARES_OF_X, DIFFERENCE, DIFFERENCE_SQUARED = range(8)
OF_VARIANCE: Final = slice(N, Y + 1)
DIFFERS: Final[BoolArray] = np.arange(DIFFERENCE_SQUARED + 1) == DIFFERENCE


def score_pair_totals(x: FloatArray, y: FloatArray, clusters: Clusters) -> ClusterSums:
    """Totals of two sides by cluster. Scores should be centred and of about unit size, for numerical accuracy."""
    return sum_by_cluster(clusters, (x + y) ** 2, x**2 + y**2, x, y, x**2, np.abs(x - y), (x - y) ** 2)


def pearson(totals: FloatArray) -> FloatArray:
    """Pearson's product-moment correlation (1896)."""
    n, x, y = totals[..., N], totals[..., X], totals[..., Y]
    of_x = totals[..., SQUARES_OF_X] - x**2 / n
    of_y = totals[..., SQUARES] - totals[..., SQUARES_OF_X] - y**2 / n
    of_both = (totals[..., SUMMED_SQUARED] - totals[..., SQUARES]) / 2 - x * y / n
    return np.asarray(of_both / np.sqrt(of_x * of_y))


def interval_alpha_of_two(totals: FloatArray) -> FloatArray:
    """Krippendorff's alpha (2004), interval, of two raters without gaps."""
    values, summed = 2 * totals[..., N], totals[..., X] + totals[..., Y]
    expected = values * totals[..., SQUARES] - summed**2
    return np.asarray(1 - (values - 1) * totals[..., DIFFERENCE_SQUARED] / expected)


def mean_score_difference(totals: FloatArray) -> FloatArray:
    return np.asarray((totals[..., X] - totals[..., Y]) / totals[..., N])


def mean_absolute_difference(totals: FloatArray) -> FloatArray:
    return np.asarray(totals[..., DIFFERENCE] / totals[..., N])


def mean_squared_difference(totals: FloatArray) -> FloatArray:
    return np.asarray(totals[..., DIFFERENCE_SQUARED] / totals[..., N])


NOTHING_SHARED: Final = "No response has a score on both sides."
ONE_VALUE: Final = "Every score is the same, so there is no variation to agree on."
NO_DENOMINATOR: Final = "The responses vary too little for this number to be defined."
NOT_NEGATIVE: Final[Bounds] = (0.0, np.inf)


@dataclass(frozen=True)
class ScoreAgreement:
    """Two sides on the responses that both scored. Differences are first − second, in the units of the scale."""

    n: int
    pearson: Estimate
    spearman: Estimate
    kendall_tau_b: Estimate
    mean_difference: Estimate
    mean_absolute_difference: Estimate
    root_mean_square_difference: Estimate
    icc_agreement: Estimate
    icc_consistency: Estimate
    krippendorff_alpha: Estimate


def score_agreement(first: FloatArray, second: FloatArray, cluster: IntArray) -> ScoreAgreement:
    """Agreement of two sides; all arrays have one entry for each response that both scored.

    Intervals take clusters whole. They are withheld below 10 clusters that hold a difference, and all but those of
    the mean differences below 40 clusters.
    """
    if not len(first):
        return ScoreAgreement(0, *(undefined_estimate(NOTHING_SHARED) for _ in range(9)))
    sides = pair_scores(first, second, cluster)
    orders = sides.orders
    constant = CONSTANT if orders.x.is_constant or orders.y.is_constant else None
    return ScoreAgreement(
        n=len(first),
        pearson=sides.correlation(pearson, constant),
        spearman=sides.withhold_if_few(spearman(orders)),
        kendall_tau_b=sides.withhold_if_few(kendall_tau_b(orders)),
        mean_difference=sides.mean(mean_score_difference, UNBOUNDED),
        mean_absolute_difference=sides.mean(mean_absolute_difference, NOT_NEGATIVE),
        root_mean_square_difference=sides.root_mean_square(),
        icc_agreement=sides.correlation(lambda totals: icc_agreement(totals[..., OF_VARIANCE]), constant),
        icc_consistency=sides.correlation(lambda totals: icc_consistency(totals[..., OF_VARIANCE]), constant),
        krippendorff_alpha=sides.correlation(interval_alpha_of_two, constant if sides.scale else ONE_VALUE),
    )


@dataclass(frozen=True)
class ScoredPair:
    """Two sides as ranks and as totals, these of scores that are centred and divided by ``scale``, their common sd.

    ``why_few_clusters``: why an interval would promise too much, where it would. ``why_too_alike``: the same, however
    many the clusters.
    """

    orders: RankedPair
    spread: Spread
    scale: float
    why_few_clusters: str | None
    why_too_alike: str | None

    def estimate(self, statistic: Statistic) -> Estimate:
        return Estimate(float(statistic(self.spread.contributions.totals)), len(self.orders.x.code))

    def withhold_if_few(self, number: Estimate) -> Estimate:
        return (
            number
            if self.why_few_clusters is None or number.value is None
            else number.without_interval(self.why_few_clusters)
        )

    def correlation(self, statistic: Statistic, why: str | None) -> Estimate:
        """``why``: the reason why it is undefined, where there is one."""
        with np.errstate(all="ignore"):
            estimate = self.estimate(statistic)
        if why is not None or estimate.value is None or not np.isfinite(estimate.value):
            return undefined_estimate(why or NO_DENOMINATOR, estimate.n)
        estimate = replace(estimate, value=min(estimate.value, 1.0))  # rounding may bring it above
        return (
            self.withhold_if_few(estimate)
            if self.why_few_clusters
            else self.spread.interval(estimate, statistic, CORRELATION_BOUNDS)
        )

    def mean(self, statistic: Statistic, bounds: Bounds) -> Estimate:
        """A mean of sums by cluster, in units of the scale; for few clusters its interval is by t."""

        def in_units(totals: FloatArray) -> FloatArray:
            return self.scale * statistic(totals)

        estimate = self.estimate(in_units)
        if self.why_too_alike is not None:
            return estimate.without_interval(self.why_too_alike)
        if self.why_few_clusters is None:
            return self.spread.interval(estimate, in_units, bounds)
        return t_interval_by_effective_clusters(estimate, self.spread, in_units, bounds)

    def root_mean_square(self) -> Estimate:
        """The root of a mean, and of its interval's bounds."""
        estimate = self.estimate(mean_squared_difference)
        assert estimate.value is not None
        root = replace(estimate, value=self.scale * sqrt(estimate.value))
        if self.why_few_clusters is not None:
            return root.without_interval(self.why_few_clusters)
        spread = self.spread.interval(estimate, mean_squared_difference, NOT_NEGATIVE)
        if spread.ci95 is None:
            return replace(spread, value=root.value)
        low, high = (self.scale * sqrt(max(bound, 0.0)) for bound in spread.ci95)
        return replace(spread, value=root.value, ci95=(low, high))


def pair_scores(first: FloatArray, second: FloatArray, cluster: IntArray) -> ScoredPair:
    clusters = number_clusters(cluster)
    centre = (first.mean() + second.mean()) / 2
    x, y = first - centre, second - centre
    scale = sqrt(float((x * x + y * y).mean()) / 2)
    unit = scale or 1.0
    spread = Spread(score_pair_totals(x / unit, y / unit, clusters))
    differing = spread.contributions.clusters_with(DIFFERS, MIN_DISAGREEING)
    return ScoredPair(
        orders=RankedPair(rank_values(first), rank_values(second), clusters),
        spread=spread,
        scale=scale,
        why_few_clusters=why_counts_withhold_interval(clusters.effective, differing, clusters=clusters.count),
        why_too_alike=why_counts_withhold_interval(MIN_CLUSTERS, differing),
    )


def t_interval_by_effective_clusters(
    number: Estimate, spread: Spread, statistic: Statistic, bounds: Bounds
) -> Estimate:
    """Linearised, with the t of effective clusters − 1 degrees of freedom."""
    assert number.value is not None
    clusters = spread.contributions.clusters
    effective = floor(spread.contributions.effective_clusters(DIFFERS) + ROUNDING)
    error = sqrt(spread.variance(statistic))
    if error <= NOISE * abs(number.value):
        return number.without_interval(NO_INTERVAL)
    return number.with_margin(t_975(max(effective - 1, 1)) * error, bounds, f"t over {clusters:,} clusters")
