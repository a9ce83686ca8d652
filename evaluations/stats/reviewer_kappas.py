"""Each reviewer's mean kappa with the others, and the mean kappa among these, while reviewers are removed."""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from evaluations.stats.coding import FloatArray, IntArray
from evaluations.stats.confidence_intervals import CORRELATION_BOUNDS, ROUNDING, bessel_factor
from evaluations.stats.estimates import NO_INTERVAL, Estimate, undefined_estimate
from evaluations.stats.reviewer_pairs import ReviewerPairs
from evaluations.stats.significance import Z_975, t_975

NO_KAPPA: Final = "No two of them share enough verdicts."


@dataclass(frozen=True)
class MeanKappas:
    """A mean of kappas for each reviewer, NaN where there is none, with its standard error by cluster.

    ``n``: the pairs of verdicts behind each. ``clusters``: the effective number of clusters behind each.
    """

    value: FloatArray
    error: FloatArray
    n: FloatArray
    clusters: FloatArray

    @cached_property
    def margin(self) -> FloatArray:
        """Half the width of the 95% interval; NaN below two effective clusters."""
        degrees = np.floor(self.clusters + ROUNDING).astype(np.int64) - 1
        t = np.array([t_975(number) if number > 0 else np.nan for number in degrees.tolist()], dtype=np.float64)
        return np.asarray(self.error * t)

    @property
    def t_error(self) -> FloatArray:
        """The standard error, stretched for few clusters as t is to the normal."""
        return self.margin / Z_975

    def estimate(self, reviewer: int) -> Estimate:
        value, margin, n = float(self.value[reviewer]), float(self.margin[reviewer]), int(self.n[reviewer])
        if np.isnan(value):
            return undefined_estimate(NO_KAPPA, n)
        number = Estimate(value, n)
        if not margin > 0:
            return number.without_interval(NO_INTERVAL)
        rule = f"linearised over {self.clusters[reviewer]:,.0f} effective clusters"
        return number.with_margin(margin, CORRELATION_BOUNDS, rule)


def mean_kappas(sums: FloatArray, counts: IntArray, n: FloatArray, added: FloatArray, shared: FloatArray) -> MeanKappas:
    """Means of kappas from their sums and counts.

    ``added`` to the sums, and ``shared`` verdicts: reviewers × clusters.
    """
    clusters, squares = np.count_nonzero(shared, axis=1), np.einsum("rg,rg->r", shared, shared)
    with np.errstate(all="ignore"):
        variance = np.einsum("rg,rg->r", added, added) * clusters / (clusters - 1)
        value, error = np.where(counts > 0, sums / counts, np.nan), np.sqrt(variance) / counts
        effective = np.where(squares > 0, shared.sum(axis=1) ** 2 / squares, 0.0)
    return MeanKappas(value, error, n, effective)


@dataclass(frozen=True)
class RemainingKappas:
    """The kappas among the reviewers who remain. ``kappa``: reviewers × reviewers, NaN without one.

    ``added``: what each cluster adds to the sum of a reviewer's kappas, reviewers × clusters. ``shared``: the verdicts
    that a reviewer shares with anybody in each, for the effective number of clusters.
    """

    pairs: ReviewerPairs
    kappa: FloatArray
    added: FloatArray
    shared: FloatArray

    @cached_property
    def counts(self) -> IntArray:
        """With how many others each reviewer has a kappa: 0 for those who do not remain."""
        return np.asarray(np.isfinite(self.kappa).sum(axis=1))

    @cached_property
    def other_counts(self) -> IntArray:
        """How many kappas there are among the others of each reviewer."""
        return np.asarray(self.counts.sum() // 2 - self.counts)

    @cached_property
    def n(self) -> FloatArray:
        """The pairs of verdicts behind the kappas of each reviewer."""
        return np.asarray(np.nansum(np.where(np.isfinite(self.kappa), self.pairs.square(self.pairs.n), 0.0), axis=1))

    @cached_property
    def added_among_others(self) -> FloatArray:
        return np.asarray(self.added.sum(axis=0) / 2 - self.added)

    @cached_property
    def with_others(self) -> MeanKappas:
        """The mean kappa of each reviewer with the others."""
        return mean_kappas(np.nansum(self.kappa, axis=1), self.counts, self.n, self.added, self.shared)

    @cached_property
    def among_others(self) -> MeanKappas:
        """The mean kappa among the others of each reviewer."""
        sums, shared = np.nansum(self.kappa, axis=1), self.shared.sum(axis=0) - self.shared
        return mean_kappas(
            sums.sum() / 2 - sums, self.other_counts, self.n.sum() / 2 - self.n, self.added_among_others, shared
        )

    @cached_property
    def difference_t_error(self) -> FloatArray:
        """The standard error of the mean kappa among the others − that with the others, stretched as `t_error`."""
        with np.errstate(all="ignore"):
            added = self.added_among_others / self.other_counts[:, None] - self.added / self.counts[:, None]
            stretch = self.with_others.t_error / self.with_others.error
        clusters = int(np.count_nonzero(self.shared.any(axis=0)))
        return np.asarray(np.sqrt(np.einsum("rg,rg->r", added, added) * bessel_factor(clusters)) * stretch)

    def without(self, reviewer: int) -> "RemainingKappas":
        kappa, added, shared = self.kappa.copy(), self.added.copy(), self.shared.copy()
        kappa[reviewer], kappa[:, reviewer] = np.nan, np.nan
        for facing in self.pairs.influences_of(reviewer):
            cell = facing.other.astype(np.int64) * self.pairs.clusters + facing.cluster
            added -= np.bincount(cell, facing.influence, added.size).reshape(added.shape)
        gone = ~np.isfinite(kappa).any(axis=1)
        added[gone], shared[gone] = 0.0, 0.0
        return RemainingKappas(self.pairs, kappa, added, shared)


def kappas_of_all(pairs: ReviewerPairs) -> RemainingKappas:
    added, kappa, shared = (
        np.zeros((pairs.reviewers, pairs.clusters)),
        pairs.square(pairs.kappa),
        pairs.shared_by_cluster(),
    )
    has_kappa = np.isfinite(kappa).any(axis=1)
    for reviewer in np.flatnonzero(has_kappa).tolist():
        for facing in pairs.influences_of(reviewer):
            added[reviewer] += np.bincount(facing.cluster, facing.influence, pairs.clusters)
    shared[~has_kappa] = 0.0
    return RemainingKappas(pairs, kappa, added, shared)
