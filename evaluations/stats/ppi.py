"""Prediction-powered inference (PPI++): a judge's means corrected by people's sample.

PPI++ (Angelopoulos, Duchi and Zrnic 2023), with inclusion weights, for a sample that is part of what it samples, and
with clusters. With F̂ the judge's mean over all and Hájek's means over the sample, all of them over queries
(`group_means` defines a),

    θ(λ) = λ F̂ + Ȳ − λ F̄,    influence of cluster g:  y_g − λ d_g,
    y_g = Σ w (Y − Ȳ) ÷ Σ w,    d_g = Σ w (F − F̄) ÷ Σ w − Σ a (F − F̂) ÷ Σ a.

A reviewed comparison is in both halves of d_g, so the sum over clusters includes their covariance.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from evaluations.stats.coding import FloatArray, IntArray
from evaluations.stats.group_means import JudgedOutcomes, ReviewedSample, bessel_factors, quadratic_form, slice_products

NOTHING: Final = 1e-12  # Σ d_g² as a share of Σ y_g²: rounding where everything was reviewed, or the judge never varies


@dataclass(frozen=True)
class PpiMeans:
    """One entry for each group; NaN where undefined.

    ``judge_weight``: λ. ``differing``: the reviewed clusters in which judge and people differ on a comparison.
    """

    value: FloatArray
    variance: FloatArray
    judge_weight: FloatArray
    differing: IntArray


@dataclass(frozen=True)
class SampleWithJudge:
    """People's sample, with the judge's outcomes on all entries."""

    sample: ReviewedSample
    judged: JudgedOutcomes

    @cached_property
    def among_reviewed(self) -> FloatArray:
        """F of the reviewed entries."""
        return self.judged.of_entries(self.sample.entry)

    @cached_property
    def mean(self) -> FloatArray:
        """F̄: Hájek's mean of these."""
        sample = self.sample
        with np.errstate(invalid="ignore"):
            return np.asarray(sample.by_group(sample.weight * self.among_reviewed) / sample.by_group(sample.weight))

    @cached_property
    def judge_lead(self) -> tuple[FloatArray, FloatArray]:
        """F̄ − Ȳ, judge and people on the same reviewed entries, and its variance: one entry for each group."""
        value, none = self.mean - self.sample.means.value, np.zeros(len(self.mean))
        with np.errstate(invalid="ignore", divide="ignore"):
            share = 1 / self.sample.by_group(self.sample.weight)
            influence = np.stack([none, none, -value * share, -share, share], axis=1)
            variance = quadratic_form(self.products, influence, influence) * bessel_factors(self.sample.means.clusters)
        return value, variance

    @cached_property
    def spreads(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Σ y_g², Σ y_g d_g and Σ d_g² over the clusters of each group; NaN where there is none."""
        judge, zeros, ones = self.judged.means, np.zeros(len(self.mean)), np.ones(len(self.mean))
        with np.errstate(invalid="ignore", divide="ignore"):
            per, share = 1 / self.judged.totals[0][:, None], 1 / self.sample.by_group(self.sample.weight)[:, None]
            everywhere = per * np.stack([-judge.value, ones, zeros, zeros, zeros], axis=1)
            y = share * np.stack([zeros, zeros, -self.sample.means.value, ones, zeros], axis=1)
            reviewed = share * np.stack([zeros, zeros, -self.mean, zeros, ones], axis=1)
            # Clusters that nobody reviewed have the last part of d alone.
            over_all = quadratic_form(self.judged.products, everywhere[:, :2], everywhere[:, :2])
            dd = (
                quadratic_form(self.products, reviewed, reviewed)
                - 2 * quadratic_form(self.products, reviewed, everywhere)
                + over_all
            )
            return quadratic_form(self.products, y, y), quadratic_form(self.products, y, reviewed - everywhere), dd

    @cached_property
    def products(self) -> FloatArray:
        """Σ v vᵀ over the reviewed clusters of each group, v = (Σ a, Σ aF, Σ w, Σ wY, Σ wF): groups × 5 × 5."""
        sample, w = self.sample, self.sample.weight
        return slice_products(
            sample.starts,
            self.judged.groups.sizes[sample.cells],
            self.judged.sums_at_cells(sample),
            sample.by_cell(w),
            sample.by_cell(w * sample.outcome),
            sample.by_cell(w * self.among_reviewed),
        )


def ppi_means(together: SampleWithJudge, judge_weight: FloatArray | None = None) -> PpiMeans:
    """The mean with the least variance among 0 ≤ λ ≤ 1, or with the λ given, one for each group.

    One reviewed cluster has no variance: λ is 0 there.
    """
    sample, judge, (yy, yd, dd) = together.sample, together.judged.means, together.spreads
    with np.errstate(invalid="ignore"):
        best = np.where(sample.means.clusters > 1, optimal_lambda(yy, yd, dd), 0.0)
        chosen = best if judge_weight is None else judge_weight
        variance = (yy - 2 * chosen * yd + chosen**2 * dd) * bessel_factors(sample.means.clusters)
        value = sample.means.value + chosen * (judge.value - together.mean)
    return PpiMeans(value, variance, chosen, sample.clusters_where(together.among_reviewed != sample.outcome))


def common_lambda(together: SampleWithJudge) -> float:
    """The one λ with which the variances of all groups that people reviewed have the least sum."""
    sums = np.array(together.spreads)[:, together.sample.means.clusters > 0].sum(axis=1, keepdims=True)
    return float(optimal_lambda(*sums)[0])


def optimal_lambda(yy: FloatArray, yd: FloatArray, dd: FloatArray) -> FloatArray:
    """The λ in [0, 1] that minimises yy − 2λ yd + λ² dd; 0 where the judge adds nothing."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.clip(np.where(dd > NOTHING * np.maximum(yy, 0.0), yd / dd, 0.0), 0.0, 1.0)  # yy may round below 0
