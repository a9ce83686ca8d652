"""95% confidence intervals by cluster: a bootstrap, a linearisation for many clusters, Wilson for few.

A statistic is a function of totals, given as an array whose last axis holds them: (…, cells) → (…), NaN where it is
undefined. The same function is evaluated at the observed totals, at resampled totals and, for its gradient, at slightly
moved totals, so nothing is derived by hand. Several statistics of the same totals are one function
(…, cells) → (…, numbers), which is as quick as one.

Where a number is no function of a few totals, an entry's influence is its derivative by that entry's weight (Hampel
1974; the infinitesimal jackknife of Jaeckel 1972). Influences sum to 0 and are summed by cluster.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import atanh, floor, sqrt, tanh
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt

from evaluations.stats.cluster_totals import Clusters, ClusterSums, Contributions
from evaluations.stats.coding import BoolArray, FloatArray
from evaluations.stats.estimates import NO_INTERVAL, Estimate, undefined_estimate
from evaluations.stats.significance import Z_975, t_975

SEED: Final = 95
RESAMPLES: Final = 2_000
CLUSTERS_PER_CHUNK: Final = 250
MAX_COUNTED: Final = 2**20  # in a sample; a resample that drew the largest clusters alone stays below 2**24
NORMAL: Final = NormalDist()


@lru_cache(maxsize=8)
def poisson_draws(part: int) -> npt.NDArray[np.uint8]:
    """How often each of CLUSTERS_PER_CHUNK clusters is drawn in each resample, by Poisson: clusters × RESAMPLES."""
    rng = np.random.default_rng([SEED, part])
    return rng.poisson(1, size=(CLUSTERS_PER_CHUNK, RESAMPLES)).astype(np.uint8)


@lru_cache(maxsize=4)
def poisson_weights(part: int) -> npt.NDArray[np.float32]:
    """`poisson_draws` as weights; kept of the first clusters alone, because most tables have no more."""
    return poisson_draws(part).astype(np.float32)


def resample_totals(by_cluster: FloatArray, *, whole: bool = False) -> FloatArray:
    """Totals of RESAMPLES resamples of clusters: RESAMPLES × cells, each cell contiguous in memory.

    Each takes every cluster a number of times that is Poisson with mean 1, independent of the others (Hanley and
    MacGibbon 2006). The number of clusters in a resample then varies, on which no share or coefficient depends, and the
    same draws serve for any number of clusters. ``whole``: whether totals are counts, which float32 holds exactly.
    """
    kind: type[np.floating] = np.float32 if whole and by_cluster.sum() < MAX_COUNTED else np.float64
    totals = np.zeros((by_cluster.shape[1], RESAMPLES))
    for part, first in enumerate(range(0, len(by_cluster), CLUSTERS_PER_CHUNK)):
        some = by_cluster[first : first + CLUSTERS_PER_CHUNK].astype(kind)
        totals += some.T @ poisson_weights(part)[: len(some)].astype(kind, copy=False)
    return totals.T


def bca_bounds(ordered: FloatArray, observed: float, skewness: float, clusters: int) -> tuple[float, float]:
    """The 95% bounds, bias-corrected and accelerated (Efron 1987), from sorted resampled numbers.

    ``observed``: the number itself. ``skewness``: its acceleration. ``clusters``: the effective number of clusters.
    Plain quantiles are too narrow for few clusters, having normal tails in place of those of t (Hesterberg 2015), and
    miss a number that cannot exceed 1 mostly on one side: at 60 clusters and agreement .92 they cover 92.4 %, these
    94.8 %.
    """
    below = (np.searchsorted(ordered, observed) + np.searchsorted(ordered, observed, side="right")) / (2 * len(ordered))
    bias = NORMAL.inv_cdf(min(max(float(below), 1 / len(ordered)), 1 - 1 / len(ordered)))
    z = t_975(clusters - 1)
    low, high = (NORMAL.cdf(bias + at / (1 - skewness * at)) for at in (bias - z, bias + z))
    return interpolated_quantile(ordered, low), interpolated_quantile(ordered, high)


def bca_accelerations(influences: FloatArray) -> FloatArray:
    """A sixth of the skewness of the sum over clusters, between −1/6 and 1/6; 0 where nothing varies.

    ``influences``: numbers × clusters, what each cluster adds to each number, around 0.
    """
    squares = influences * influences
    spread = squares.sum(axis=1) ** 1.5
    cubes = (squares * influences).sum(axis=1)
    return np.asarray(np.divide(cubes, 6 * spread, out=np.zeros_like(cubes), where=spread > 0))


def interpolated_quantile(ordered: FloatArray, level: float) -> float:
    """A quantile, interpolated linearly between the two nearest values."""
    position = level * (len(ordered) - 1)
    lower = int(position)
    upper = min(lower + 1, len(ordered) - 1)
    return float(ordered[lower] + (position - lower) * (ordered[upper] - ordered[lower]))


Statistic = Callable[[FloatArray], FloatArray]

# Of the gradient, as a share of the sum of all totals: small compared with a cell that holds few entries of many.
GRADIENT_STEP: Final = 1e-8


@dataclass(frozen=True)
class StatisticWithGradient:
    """A statistic with its values at some totals and its slopes there: cells × numbers, 0 where it has none."""

    statistic: Statistic
    values: FloatArray
    slopes: FloatArray


def differentiate(statistic: Statistic, totals: FloatArray) -> StatisticWithGradient:
    """The values of a statistic at these totals, with its slopes by central differences."""
    step = GRADIENT_STEP * max(float(np.abs(totals).sum()), 1.0)
    moves = np.eye(len(totals)) * step
    with np.errstate(all="ignore"):
        values = statistic(np.concatenate([totals[None], totals + moves, totals - moves]))
        raised, lowered = values[1 : len(totals) + 1], values[len(totals) + 1 :]
        slopes = (raised - lowered) / (2 * step)
    return StatisticWithGradient(statistic, values[0], np.where(np.isfinite(slopes), slopes, 0.0))


Bounds = tuple[float, float]
BOOTSTRAP_UP_TO: Final = 2_000  # clusters; above, the linearised interval is the same to two digits and quicker
# Clusters for each effective one; above, a few clusters dominate: a giant of 9 % of the items among 1,000 clusters is
# drawn twice or not at all in most resamples, and the bootstrap covers 90 %, the linearised interval 94 %.
MAX_UNEVENNESS: Final = 2
MIN_CLUSTERS: Final = 40  # effective ones
ROUNDING: Final = 1e-9  # the rounding error of sums of sizes
NOISE: Final = 1e-8  # as a share of a value: the error of numerical slopes where nothing varies
MIN_DISAGREEING: Final = 10
CORRELATION_BOUNDS: Final[Bounds] = (-1.0, 1.0)
SHARE_BOUNDS: Final[Bounds] = (0.0, 1.0)
UNBOUNDED: Final[Bounds] = (-np.inf, np.inf)
ONE_CLUSTER: Final = "A CI needs at least two clusters."


@dataclass(frozen=True)
class Spread:
    """How numbers made of these contributions vary. Draws are shared by all numbers, so differences are paired."""

    contributions: Contributions | ClusterSums

    @cached_property
    def resampled_totals(self) -> FloatArray:
        """The totals of RESAMPLES samples, each cluster taken a Poisson number of times: RESAMPLES × cells."""
        return resample_totals(self.contributions.by_cluster(), whole=self.contributions.is_counted)

    @cached_property
    def effective(self) -> int:
        """The effective number of clusters, (Σn)² ÷ Σn², rounded down: a few large clusters may dominate a variance."""
        effective_clusters = self.contributions.effective_clusters(np.ones(self.contributions.cells, dtype=bool))
        return max(floor(effective_clusters + ROUNDING), 2)

    def interval(self, number: Estimate, statistic: Statistic, bounds: Bounds = UNBOUNDED) -> Estimate:
        """The number with its interval, or with the reason why it has none."""
        return self.intervals([number], lambda totals: statistic(totals)[..., None], [bounds])[0]

    def intervals(self, numbers: Sequence[Estimate], statistic: Statistic, bounds: Sequence[Bounds]) -> list[Estimate]:
        """The intervals of several numbers of one statistic, (…, cells) → (…, numbers)."""
        if all(number.value is None for number in numbers):
            return list(numbers)
        return self.intervals_around(numbers, differentiate(statistic, self.contributions.totals), bounds)

    def intervals_around(
        self, numbers: Sequence[Estimate], statistic: StatisticWithGradient, bounds: Sequence[Bounds]
    ) -> list[Estimate]:
        """The intervals of several numbers, given their statistic already measured at the totals."""
        if self.contributions.clusters < 2:
            return [number if number.value is None else number.without_interval(ONE_CLUSTER) for number in numbers]
        if self.contributions.clusters <= min(BOOTSTRAP_UP_TO, MAX_UNEVENNESS * self.effective):
            return self.bootstrap_intervals(numbers, statistic)
        return self.linearised_intervals(numbers, statistic.slopes, bounds)

    def intervals_or_wilson(
        self,
        numbers: Sequence[Estimate],
        statistic: StatisticWithGradient,
        bounds: Sequence[Bounds],
        few: Sequence[str | None],
        among: Sequence[BoolArray],
    ) -> list[Estimate]:
        """The intervals of several numbers; where ``few`` has a reason against one, a share has Wilson's, others none.

        ``few``: of each number, why it has too few clusters, or None. ``among``: of each number, the cells that it is
        made of; Wilson's interval is over the clusters with an entry in one of them.
        """
        estimates = self.intervals_around(numbers, statistic, bounds) if None in few else list(numbers)
        variances = self.variances(statistic.slopes) if any(few) else np.zeros(len(numbers))
        for k, (number, why) in enumerate(zip(numbers, few, strict=True)):
            if why is not None and number.value is not None:
                is_share = bounds[k] is SHARE_BOUNDS
                estimates[k] = (
                    self.wilson_interval(number, variances[k], among[k]) if is_share else number.without_interval(why)
                )
        return estimates

    def wilson_interval(self, number: Estimate, variance: float, among: BoolArray) -> Estimate:
        """Wilson's interval over the clusters with an entry in ``among``; ``variance``: over all clusters."""
        all_of_them, clusters = self.contributions.clusters, self.contributions.clusters_with(among)
        effective = self.contributions.effective_clusters(among)
        return wilson_from_variance(
            number, clusters, variance * bessel_factor(clusters) / bessel_factor(all_of_them), effective
        )

    def bootstrap_intervals(self, numbers: Sequence[Estimate], statistic: StatisticWithGradient) -> list[Estimate]:
        with np.errstate(all="ignore"):
            resampled = statistic.statistic(self.resampled_totals)
        ordered = np.sort(np.where(np.isfinite(resampled), resampled, np.nan).T, axis=1)  # NaN comes last
        skewness = bca_accelerations(self.influences(statistic.slopes))
        return [
            number if number.value is None else self.bca_interval(number, number.value, ordered[k], float(skewness[k]))
            for k, number in enumerate(numbers)
        ]

    def bca_interval(self, number: Estimate, observed: float, ordered: FloatArray, skewness: float) -> Estimate:
        missing = int(np.isnan(ordered).sum())
        if missing > RESAMPLES // 2:
            return number.without_interval(f"Undefined in {missing:,} of {RESAMPLES:,} bootstrap resamples.")
        defined = ordered[: RESAMPLES - missing]
        if defined[-1] - defined[0] <= NOISE * max(abs(defined[0]), abs(defined[-1])):
            return number.without_interval(NO_INTERVAL)
        clusters = self.contributions.clusters
        rule = f"bootstrap, {RESAMPLES:,} resamples of {clusters:,} clusters"
        low, high = bca_bounds(defined, observed, skewness, self.effective)
        return number.with_interval(low, high, f"{rule}, {missing:,} of them undefined" if missing else rule)

    def linearised_intervals(
        self, numbers: Sequence[Estimate], u: FloatArray, bounds: Sequence[Bounds]
    ) -> list[Estimate]:
        """Linearised intervals, number ± t · error (z for many clusters), cut off at the bounds. ``u``: the slopes."""
        quantile = t_975(self.effective - 1) if self.effective <= BOOTSTRAP_UP_TO else Z_975
        rule = f"linearised over {self.contributions.clusters:,} clusters"
        intervals = []
        for number, variance, limits in zip(numbers, self.variances(u).tolist(), bounds, strict=True):
            if number.value is None:
                intervals.append(number)
            elif not NOISE * abs(number.value) < sqrt(variance) < np.inf:
                intervals.append(number.without_interval(NO_INTERVAL))
            else:
                intervals.append(number.with_margin(quantile * sqrt(variance), limits, rule))
        return intervals

    def variance(self, statistic: Statistic) -> float:
        """uᵀSu · G ÷ (G − 1), u the slopes of the statistic at the totals (Binder 1983)."""
        gradient = differentiate(lambda totals: statistic(totals)[..., None], self.contributions.totals)
        return float(self.variances(gradient.slopes)[0])

    def variances(self, u: FloatArray) -> FloatArray:
        """The variance uᵀSu · G ÷ (G − 1) for each column of u, cells × numbers; 0 below two clusters."""
        g = self.contributions.clusters
        if g < 2:
            return np.zeros(u.shape[1])
        # The clusters' influences sum to 0 for a statistic that does not grow with the sample; else the mean is
        # removed.
        means = (self.contributions.totals @ u) / g
        squares = self.contributions.squares(u) - g * means**2
        return np.asarray(np.maximum(squares, 0.0) * bessel_factor(g))

    def influences(self, u: FloatArray) -> FloatArray:
        """The influence of each cluster on each number, centred at 0: numbers × clusters."""
        values = (self.contributions.by_cluster() @ u).T
        return np.asarray(values - values.mean(axis=1, keepdims=True))


def bessel_factor(clusters: int) -> float:
    """G ÷ (G − 1); of fewer than two clusters, which have no variance, 1."""
    return clusters / (clusters - 1) if clusters > 1 else 1.0


def why_interval_withheld(
    contributions: Contributions | ClusterSums, disagreements: BoolArray, among: BoolArray | None = None
) -> str | None:
    """Why an interval cannot promise 95% coverage, or None. ``disagreements``: the cells of a disagreement.

    ``among``: the cells that the number is made of; the others of these are agreements, which have to occur too,
    because a share near 0 is as difficult as one near 1. None: all cells, and agreements do not matter.
    """
    counted = np.ones(contributions.cells, dtype=bool) if among is None else among
    effective = contributions.effective_clusters(counted, MIN_CLUSTERS)
    if effective < MIN_CLUSTERS:
        return explain_too_few_clusters(effective, contributions.clusters_with(counted))
    differing = contributions.clusters_with(disagreements & counted, MIN_DISAGREEING)
    if among is None:
        return why_counts_withhold_interval(effective, differing)
    return why_counts_withhold_interval(
        effective, differing, contributions.clusters_with(among & ~disagreements, MIN_DISAGREEING)
    )


def why_counts_withhold_interval(
    effective: float, differing: int, agreeing: int | None = None, *, clusters: int | None = None
) -> str | None:
    """Why an interval cannot promise 95% coverage, from counts of effective, disagreeing and agreeing clusters.

    ``clusters``: how many there are, where they may be of different sizes.
    """
    if effective < MIN_CLUSTERS:
        return explain_too_few_clusters(effective, clusters)
    for what, count in (("a disagreement", differing), ("an agreement", agreeing)):
        if count is not None and count < MIN_DISAGREEING:
            return f"Too few clusters with {what} for a CI ({count:,} < {MIN_DISAGREEING}): it would be too narrow."
    return None


def explain_too_few_clusters(effective: float, clusters: int | None = None) -> str:
    counted = floor(effective + ROUNDING)
    why = f"Too few clusters for a CI ({counted:,} < {MIN_CLUSTERS})."
    if clusters is None or clusters < MIN_CLUSTERS:
        return why
    return f"{why} The {clusters:,} clusters differ in size, which lowers their effective number."


def wilson_by_cluster(number: Estimate, spread: Spread, statistic: Statistic) -> Estimate:
    """A share's score interval (Wilson 1927) with n divided by the design effect (Kish 1965), for few clusters.

    It uses t with clusters − 1 degrees of freedom, for few clusters hardly know their design effect (Dean and Pagano
    2015).
    """
    contributions = spread.contributions
    effective = contributions.effective_clusters(np.ones(contributions.cells, dtype=bool))
    return wilson_from_variance(
        number, contributions.clusters, spread.variance(statistic) if number.n else 0.0, effective
    )


def wilson_from_variance(number: Estimate, clusters: int, variance: float, effective: float | None = None) -> Estimate:
    """Wilson's interval from a known variance by cluster. ``effective``: the effective number of clusters."""
    if number.value is None:
        return number
    if clusters < 2:
        return number.without_interval(ONE_CLUSTER)
    p, counted = number.value, clusters if effective is None else max(floor(effective + ROUNDING), 2)
    t = t_975(counted - 1)
    size = design_effect_n(p, number.n, counted, variance)
    centre = (p + t**2 / (2 * size)) / (1 + t**2 / size)
    margin = t * sqrt(p * (1 - p) / size + t**2 / (4 * size**2)) / (1 + t**2 / size)
    rule = f"Wilson, {number.n:,} ÷ design effect {number.n / size:.2f} over {clusters:,} clusters"
    return number.with_interval(max(centre - margin, 0.0), min(centre + margin, 1.0), rule)


def design_effect_n(p: float, n: int, clusters: int, variance: float) -> float:
    """n ÷ design effect, of a share p of n entries with this variance by cluster.

    Where p is 0 or 1 nothing shows how similar the entries of a cluster are: each cluster counts once. A few entries
    that differ show hardly more, so that n counts in full only from MIN_DISAGREEING entries of the rarer kind on, or
    from half the number of clusters if that is less; these entries too are divided by the design effect
    (docs/decisions/0012).
    """
    by_chance = p * (1 - p) / n
    if not by_chance:
        return float(clusters)
    effective_n = n / max(variance / by_chance, 1.0)
    if effective_n <= clusters:
        return effective_n
    counted_share = min(effective_n * min(p, 1 - p) / min(MIN_DISAGREEING, clusters / 2), 1.0)
    return clusters + (effective_n - clusters) * counted_share


def estimate_share(spread: Spread, part: BoolArray, whole: BoolArray, empty: str) -> Estimate:
    """The share of ``part`` in ``whole``, both masks of cells; undefined for the reason ``empty`` where whole is 0.

    Where few clusters have an entry in the part, or in the rest of the whole, the interval is Wilson's.
    """
    contributions = spread.contributions
    n = int(contributions.totals[whole].sum())
    if not n:
        return undefined_estimate(empty)
    number = Estimate(float(contributions.totals[part].sum()) / n, n)
    ratio = differentiate(ratio_statistic((part, whole)), contributions.totals)
    few = why_interval_withheld(contributions, part, among=whole)
    return spread.intervals_or_wilson([number], ratio, [SHARE_BOUNDS], [few], [whole])[0]


def ratio_statistic(*shares: tuple[BoolArray, BoolArray]) -> Statistic:
    """A statistic of shares, each of a ``part`` in a ``whole``, both masks of cells: (…, cells) → (…, shares)."""

    def statistic(totals: FloatArray) -> FloatArray:
        ratios = [totals[..., part].sum(axis=-1) / totals[..., whole].sum(axis=-1) for part, whole in shares]
        return np.stack(ratios, axis=-1)

    return statistic


@dataclass(frozen=True)
class Influence:
    """The influence of each entry on a number, and the clusters of the entries."""

    values: FloatArray
    clusters: Clusters

    @property
    def standard_error(self) -> float:
        """√(Σ_g (Σ_{i in g} values_i)² · G ÷ (G − 1)) over two clusters g or more."""
        by_cluster = self.clusters.total(self.values)
        count = self.clusters.count
        return sqrt(float((by_cluster**2).sum()) * count / (count - 1))


def fisher_z_interval(number: Estimate, influence: Influence) -> Estimate:
    """The interval of a correlation, symmetric on the scale of atanh (Fisher 1921), so that it never exceeds ±1."""
    clusters = influence.clusters.count
    if number.value is None or clusters < 2:
        return number
    error = influence.standard_error
    if abs(number.value) >= 1 or not np.isfinite(error):
        return number.without_interval(NO_INTERVAL)
    margin = t_975(clusters - 1) * error / (1 - number.value**2)
    low, high = tanh(atanh(number.value) - margin), tanh(atanh(number.value) + margin)
    return number.with_interval(low, high, f"linearised on Fisher's scale over {clusters:,} clusters")
