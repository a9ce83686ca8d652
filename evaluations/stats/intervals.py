"""95 % intervals that take clusters whole: a seeded bootstrap, above a size linearisation, Wilson for few.

A number is a function of totals, given as an array whose last axis holds them: (…, cells) → (…), NaN
where it is undefined. The same function is asked about the totals at hand, about resampled ones and,
for its slopes, about totals moved a little, so nothing is derived by hand. Several numbers of the same
totals are one function (…, cells) → (…, numbers), which is as quick as one.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import floor, sqrt
from typing import Final

import numpy as np

from evaluations.stats import bootstrap
from evaluations.stats.bootstrap import RESAMPLES, accelerated, accelerations
from evaluations.stats.cluster_sums import ClusterSums
from evaluations.stats.coding import BoolArray
from evaluations.stats.contributions import Contributions, FloatArray
from evaluations.stats.distributions import Z_975, t_975
from evaluations.stats.numbers import NO_INTERVAL, Number
from evaluations.stats.slopes import Measured, measured
from evaluations.stats.slopes import Statistic as Statistic

Bounds = tuple[float, float]

BOOTSTRAP_UP_TO: Final = 2_000  # clusters; above, the linearised interval is the same to two digits and quicker

LEAST_CLUSTERS: Final = 40  # effective ones
ROUNDING: Final = 1e-9  # what sums of sizes lose
NOISE: Final = 1e-8  # of a value: what slopes by differences leave behind where nothing varies
LEAST_DISAGREEING: Final = 10
CORRELATION: Final[Bounds] = (-1.0, 1.0)
SHARE: Final[Bounds] = (0.0, 1.0)
UNBOUNDED: Final[Bounds] = (-np.inf, np.inf)

ONE_CLUSTER: Final = "An interval needs two clusters or more."


@dataclass(frozen=True)
class Spread:
    """How numbers made of these contributions vary. Draws are shared by all numbers, so differences are paired."""

    contributions: Contributions | ClusterSums

    @cached_property
    def draws(self) -> FloatArray:
        """The totals of RESAMPLES samples, each cluster taken a Poisson number of times: RESAMPLES × cells."""
        return bootstrap.resampled(self.contributions.by_cluster(), whole=self.contributions.is_counted)

    @cached_property
    def effective(self) -> int:
        """How many clusters of one size tell as much of a variance: a few large ones may decide it."""
        found = self.contributions.effective_clusters(np.ones(self.contributions.cells, dtype=bool))
        return max(floor(found + ROUNDING), 2)

    @property
    def is_drawn(self) -> bool:
        return self.contributions.clusters <= BOOTSTRAP_UP_TO

    def interval(self, number: Number, statistic: Statistic, bounds: Bounds = UNBOUNDED) -> Number:
        """The number with its interval, or with the reason why it has none."""
        return self.intervals([number], lambda totals: statistic(totals)[..., None], [bounds])[0]

    def intervals(self, numbers: Sequence[Number], statistic: Statistic, bounds: Sequence[Bounds]) -> list[Number]:
        """The same of several numbers of one statistic, (…, cells) → (…, numbers)."""
        if all(number.value is None for number in numbers):
            return list(numbers)
        return self.around(numbers, measured(statistic, self.contributions.totals), bounds)

    def around(self, numbers: Sequence[Number], found: Measured, bounds: Sequence[Bounds]) -> list[Number]:
        """The same where the statistic has been measured at the totals."""
        if self.contributions.clusters < 2:
            return [number if number.value is None else number.without_interval(ONE_CLUSTER) for number in numbers]
        return self.drawn(numbers, found) if self.is_drawn else self.linearised(numbers, found.slopes, bounds)

    def hedged(
        self,
        numbers: Sequence[Number],
        found: Measured,
        bounds: Sequence[Bounds],
        few: Sequence[str | None],
        among: Sequence[BoolArray],
    ) -> list[Number]:
        """The same where ``few`` says of each number, or not, why there is too little for such an interval.

        A share then has Wilson's, over the clusters that hold one of the cells that it is made of; anything else is
        left with the reason. ``among``: these cells for each number.
        """
        within = self.around(numbers, found, bounds) if None in few else list(numbers)
        variances = self.variances(found.slopes) if any(few) else np.zeros(len(numbers))
        for k, (number, why) in enumerate(zip(numbers, few, strict=True)):
            if why is not None and number.value is not None:
                is_share = bounds[k] is SHARE
                within[k] = self.wilson(number, variances[k], among[k]) if is_share else number.without_interval(why)
        return within

    def wilson(self, number: Number, variance: float, among: BoolArray) -> Number:
        """Over the clusters that hold one of these cells; ``variance`` counts all there are."""
        all_of_them, clusters = self.contributions.clusters, self.contributions.clusters_with(among)
        effective = self.contributions.effective_clusters(among)
        return wilson_of(number, clusters, variance * spare(clusters) / spare(all_of_them), effective)

    def drawn(self, numbers: Sequence[Number], found: Measured) -> list[Number]:
        """By resampled clusters."""
        with np.errstate(all="ignore"):
            resampled = found.statistic(self.draws)
        ordered = np.sort(np.where(np.isfinite(resampled), resampled, np.nan).T, axis=1)  # NaN comes last
        skewness = accelerations(self.influences(found.slopes))
        return [
            number if number.value is None else self.within(number, number.value, ordered[k], float(skewness[k]))
            for k, number in enumerate(numbers)
        ]

    def within(self, number: Number, held: float, ordered: FloatArray, skewness: float) -> Number:
        missing = int(np.isnan(ordered).sum())
        if missing > RESAMPLES // 2:
            return number.without_interval(f"It is undefined in {missing:,} of {RESAMPLES:,} resamples of clusters.")
        defined = ordered[: RESAMPLES - missing]
        if defined[-1] - defined[0] <= NOISE * max(abs(defined[0]), abs(defined[-1])):
            return number.without_interval(NO_INTERVAL)
        clusters = self.contributions.clusters
        rule = f"bootstrap, {RESAMPLES:,} resamples of {clusters:,} clusters"
        low, high = accelerated(defined, held, skewness, self.effective)
        return number.within(low, high, f"{rule}, {missing:,} of them undefined" if missing else rule)

    def linearised(self, numbers: Sequence[Number], u: FloatArray, bounds: Sequence[Bounds]) -> list[Number]:
        """By t, of many clusters by the normal distribution, around the number, within its bounds."""
        quantile = t_975(self.effective - 1) if self.effective <= BOOTSTRAP_UP_TO else Z_975
        rule = f"linearised over {self.contributions.clusters:,} clusters"
        found = []
        for number, variance, (least, most) in zip(numbers, self.variances(u).tolist(), bounds, strict=True):
            if number.value is None:
                found.append(number)
            elif not NOISE * abs(number.value) < sqrt(variance) < np.inf:
                found.append(number.without_interval(NO_INTERVAL))
            else:
                margin = quantile * sqrt(variance)
                found.append(number.within(max(number.value - margin, least), min(number.value + margin, most), rule))
        return found

    def variance(self, statistic: Statistic) -> float:
        """uᵀSu · G ÷ (G − 1), u the slopes of the statistic at the totals (Binder 1983)."""
        found = measured(lambda totals: statistic(totals)[..., None], self.contributions.totals)
        return float(self.variances(found.slopes)[0])

    def variances(self, u: FloatArray) -> FloatArray:
        """The same for each column of u, cells × numbers."""
        g = self.contributions.clusters
        if g < 2:
            return np.zeros(u.shape[1])
        # The sum of all clusters' shares is 0 for a statistic that does not grow with the sample; else it is taken out.
        means = (self.contributions.totals @ u) / g
        squares = self.contributions.squares(u) - g * means**2
        return np.asarray(np.maximum(squares, 0.0) * spare(g))

    def influences(self, u: FloatArray) -> FloatArray:
        """What each cluster adds to each number: numbers × clusters, around 0."""
        found = (self.contributions.by_cluster() @ u).T
        return np.asarray(found - found.mean(axis=1, keepdims=True))


def spare(clusters: int) -> float:
    """G ÷ (G − 1); of fewer than two clusters, which have no variance, 1."""
    return clusters / (clusters - 1) if clusters > 1 else 1.0


def too_few(
    contributions: Contributions | ClusterSums, disagreements: BoolArray, among: BoolArray | None = None
) -> str | None:
    """Why 95 % are not promised of an interval here. ``disagreements``: the cells that speak of one.

    ``among``: the cells that the number is made of, where these are not all; those left then speak of agreement,
    which has to occur too, for a share near 0 is no easier than one near 1.
    """
    counted = np.ones(contributions.cells, dtype=bool) if among is None else among
    effective = contributions.effective_clusters(counted, LEAST_CLUSTERS)
    if effective < LEAST_CLUSTERS:
        return too_few_clusters(effective, contributions.clusters_with(counted))
    differing = contributions.clusters_with(disagreements & counted, LEAST_DISAGREEING)
    if among is None:
        return too_few_of(effective, differing)
    return too_few_of(effective, differing, contributions.clusters_with(among & ~disagreements, LEAST_DISAGREEING))


def too_few_of(
    effective: float, differing: int, agreeing: int | None = None, *, clusters: int | None = None
) -> str | None:
    """The same, where the effective clusters and those that hold a disagreement, and an agreement, are counted.

    ``clusters``: how many there are, where they may be of different sizes.
    """
    if effective < LEAST_CLUSTERS:
        return too_few_clusters(effective, clusters)
    for what, held in (("a disagreement", differing), ("an agreement", agreeing)):
        if held is not None and held < LEAST_DISAGREEING:
            return (
                f"Only {held:,} clusters hold {what}; an interval is given from {LEAST_DISAGREEING} on, "
                "for with fewer it would be too narrow."
            )
    return None


def too_few_clusters(effective: float, clusters: int | None = None) -> str:
    counted = floor(effective + ROUNDING)
    why = f"Too few clusters for a CI ({counted:,} < {LEAST_CLUSTERS})."
    if clusters is None or clusters < LEAST_CLUSTERS:
        return why
    return f"{why} {clusters:,} clusters of uneven size tell no more than that."


def wilson(number: Number, spread: Spread, statistic: Statistic) -> Number:
    """A share's score interval (Wilson 1927) with n divided by the design effect (Kish 1965), for few clusters.

    It uses t with clusters − 1 degrees of freedom, for few clusters hardly know their design effect (Dean and Pagano
    2015).
    """
    found = spread.contributions
    effective = found.effective_clusters(np.ones(found.cells, dtype=bool))
    return wilson_of(number, found.clusters, spread.variance(statistic) if number.n else 0.0, effective)


def wilson_of(number: Number, clusters: int, variance: float, effective: float | None = None) -> Number:
    """The same, where the variance by cluster is known. ``effective``: how many clusters of one size tell as much."""
    if number.value is None:
        return number
    if clusters < 2:
        return number.without_interval(ONE_CLUSTER)
    p, counted = number.value, clusters if effective is None else max(floor(effective + ROUNDING), 2)
    t = t_975(counted - 1)
    size = effective_size(p, number.n, counted, variance)
    centre = (p + t**2 / (2 * size)) / (1 + t**2 / size)
    margin = t * sqrt(p * (1 - p) / size + t**2 / (4 * size**2)) / (1 + t**2 / size)
    rule = f"Wilson, {number.n:,} ÷ design effect {number.n / size:.2f} over {clusters:,} clusters"
    return number.within(max(centre - margin, 0.0), min(centre + margin, 1.0), rule)


def effective_size(p: float, n: int, clusters: int, variance: float) -> float:
    """n ÷ design effect, of a share p of n entries with this variance by cluster.

    Where all is one way nothing tells how alike the entries of a cluster are: each cluster counts once. One entry that
    differs hardly tells more, so that n counts for what it is only from LEAST_DISAGREEING entries of the rarer kind
    on, for few clusters from half as many as there are; they are counted as independent ones, divided by the design
    effect too (docs/decisions/0018).
    """
    by_chance = p * (1 - p) / n
    if not by_chance:
        return float(clusters)
    found = n / max(variance / by_chance, 1.0)
    if found <= clusters:
        return found
    known = min(found * min(p, 1 - p) / min(LEAST_DISAGREEING, clusters / 2), 1.0)
    return clusters + (found - clusters) * known
