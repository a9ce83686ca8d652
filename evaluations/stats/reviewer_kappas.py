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


def mean_kappas(sums: FloatArray, counts: IntArray, influence: FloatArray, verdicts: FloatArray) -> MeanKappas:
    """Means of kappas from their sums and counts. ``influence``, ``verdicts``: reviewers × clusters, of the sums."""
    clusters = np.count_nonzero(verdicts, axis=1)
    n, squares = verdicts.sum(axis=1), np.einsum("rg,rg->r", verdicts, verdicts)
    with np.errstate(all="ignore"):
        variance = np.einsum("rg,rg->r", influence, influence) * clusters / (clusters - 1)
        value, error = sums / counts, np.sqrt(variance) / counts
        effective = np.where(squares > 0, n**2 / squares, 0.0)
    return MeanKappas(np.where(counts > 0, value, np.nan), error, n, effective)


@dataclass(frozen=True)
class RemainingKappas:
    """The kappas among the reviewers who remain. ``kappa``: reviewers × reviewers, NaN without one.

    ``sums``: what each cluster adds to the sum of a reviewer's kappas, and to the verdicts shared with others:
    2 × reviewers × clusters.
    """

    pairs: ReviewerPairs
    kappa: FloatArray
    sums: FloatArray

    @cached_property
    def counts(self) -> IntArray:
        """With how many others each reviewer has a kappa: 0 for those who do not remain."""
        return np.asarray(np.isfinite(self.kappa).sum(axis=1))

    @cached_property
    def with_others(self) -> MeanKappas:
        """The mean kappa of each reviewer with the others."""
        return mean_kappas(np.nansum(self.kappa, axis=1), self.counts, *self.sums)

    @cached_property
    def among_others(self) -> MeanKappas:
        """The mean kappa among the others of each reviewer."""
        own = np.nansum(self.kappa, axis=1)
        between = self.sums.sum(axis=1, keepdims=True) / 2 - self.sums
        return mean_kappas(own.sum() / 2 - own, self.counts.sum() // 2 - self.counts, *between)

    @cached_property
    def difference_t_error(self) -> FloatArray:
        """The standard error of mean kappa among the others − with the others, stretched as `t_error`."""
        own, between = self.sums[0], self.sums[0].sum(axis=0) / 2 - self.sums[0]
        pairs = self.counts.sum() // 2 - self.counts
        with np.errstate(all="ignore"):
            added = between / pairs[:, None] - own / self.counts[:, None]
            stretch = self.with_others.t_error / self.with_others.error
        clusters = int(np.count_nonzero(self.sums[1].any(axis=0)))
        return np.asarray(np.sqrt(np.einsum("rg,rg->r", added, added) * bessel_factor(clusters)) * stretch)

    def without(self, reviewer: int) -> "RemainingKappas":
        kappa, (_, reviewers, clusters) = self.kappa.copy(), self.sums.shape
        kappa[reviewer], kappa[:, reviewer] = np.nan, np.nan
        sums = self.sums.copy()
        for added in self.pairs.influences_of(reviewer):
            cell = added.other * clusters + added.cluster
            for total, values in zip(sums, (added.influence, added.verdicts), strict=True):
                total -= np.bincount(cell, values, reviewers * clusters).reshape(reviewers, clusters)
        sums[:, ~np.isfinite(kappa).any(axis=1)] = 0.0
        return RemainingKappas(self.pairs, kappa, sums)


def kappas_of_all(pairs: ReviewerPairs) -> RemainingKappas:
    sums = np.zeros((2, pairs.reviewers, pairs.clusters))
    for reviewer in range(pairs.reviewers):
        for added in pairs.influences_of(reviewer):
            for total, values in zip(sums, (added.influence, added.verdicts), strict=True):
                total[reviewer] += np.bincount(added.cluster, values, pairs.clusters)
    return RemainingKappas(pairs, pairs.square(pairs.kappa), sums)
