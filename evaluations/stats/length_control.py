"""Length-controlled win rates, after AlpacaEval 2.

A logistic model predicts the winner from the two candidates and from how much longer one response is (Dubois,
Galambosi, Liang and Hashimoto 2024), log odds = sᵢ − sⱼ + φ tanh(Δ ÷ σ), and the win rate is its prediction at Δ = 0.
Where length has no effect this is the plain win rate, for the scores predict as many wins of each candidate as it has.
"""

from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import Final

import numpy as np

from evaluations.stats.bias.length_slope import explain_slope_withheld
from evaluations.stats.bradley_terry import explain_unconnected, incidence_matrix, win_probabilities
from evaluations.stats.coding import FloatArray, IntArray
from evaluations.stats.confidence_intervals import SHARE_BOUNDS, UNBOUNDED, Bounds
from evaluations.stats.estimates import Estimate, undefined_estimate
from evaluations.stats.logistic import LogisticFit, firth_logistic, logistic_probabilities
from evaluations.stats.matches import INDEX_TYPE, Matches
from evaluations.stats.outcomes import JudgedMatches, ReviewedMatches
from evaluations.stats.ranking import NOTHING_SAID, interval_reasons_by_candidate
from evaluations.stats.ranking_evidence import RankingEvidence, score_residuals, win_table_of
from evaluations.stats.significance import t_975

BINS: Final = 64  # of tanh(Δ ÷ σ), between −1 and 1
MAX_CANDIDATES: Final = 200
MAX_CELLS: Final = 40_000_000  # of the design
TOO_MANY: Final = "Too many models for length control ({:,})."
NO_LENGTHS: Final = "The two responses of every comparison are equally long."
ONE_LENGTH_A_PAIR: Final = (
    "Within each pair of models the length difference does not vary, so length cannot be separated from the models."
)
NOT_TOLD_APART: Final = "Length cannot be separated from the models: the fit has no solution."


@dataclass(frozen=True)
class LengthControlled:
    """``win_rates``: by candidate, at equal length; empty for the reason ``why``.

    ``slope``: φ, the log odds that a response gains by being longer by many times ``scale_characters``, σ.
    """

    win_rates: dict[str, Estimate]
    slope: Estimate
    scale_characters: float | None
    why: str | None


@dataclass(frozen=True)
class LengthDifferences:
    """How much longer each comparison's earlier candidate was. Made once; all aspects and judges use it."""

    matches: Matches

    @cached_property
    def longer_by(self) -> IntArray:
        """The length difference Δ in characters."""
        by = self.matches.items.characters_a - self.matches.items.characters_b
        return np.where(self.matches.is_turned, -by, by)

    @cached_property
    def scale(self) -> float:
        """σ, the root of the mean of Δ²: not about the mean, so that it does not depend on the order of candidates."""
        return sqrt(float(np.mean(self.longer_by.astype(np.float64) ** 2))) if len(self.longer_by) else 0.0

    @cached_property
    def covariate(self) -> FloatArray:
        """The covariate tanh(Δ ÷ σ)."""
        return np.tanh(self.longer_by / self.scale)

    @cached_property
    def row(self) -> IntArray:
        """Comparisons of the same pair whose covariate is nearly the same have the same row of the design."""
        bin_index = ((self.covariate + 1) * (BINS / 2)).astype(INDEX_TYPE)
        return self.matches.pair * BINS + np.minimum(bin_index, BINS - 1)

    @cached_property
    def design(self) -> FloatArray:
        """Rows × candidates: who the two are, for all but the first candidate, and then the row's mean covariate."""
        size = BINS * len(self.matches.compared_pairs)
        nothing = np.zeros(len(self.matches.compared_pairs))
        counts = np.bincount(self.row, minlength=size)
        means = np.bincount(self.row, self.covariate, size) / np.maximum(counts, 1)
        pairs = np.repeat(incidence_matrix(win_table_of(self.matches, nothing, nothing)), BINS, axis=0)
        return np.column_stack([pairs[:, 1:], means])


def control_for_length(outcomes: ReviewedMatches | JudgedMatches, lengths: LengthDifferences) -> LengthControlled:
    evidence = outcomes.evidence
    why = explain_no_length_control(evidence, lengths)
    if why:
        return without_length_control(why, evidence.comparisons)
    rows, size = lengths.row[evidence.item], len(lengths.design)
    weight = evidence.weight * (evidence.comparisons / evidence.weight.sum())
    trials, wins = (np.bincount(rows, added, size).astype(np.float64) for added in (weight, weight * evidence.outcome))
    fit = firth_logistic(lengths.design, wins, trials)
    if not fit.converged:
        return without_length_control(NOT_TOLD_APART, evidence.comparisons)
    surplus = weight * (evidence.outcome - logistic_probabilities(lengths.design, fit.coefficients)[rows])
    return length_controlled_estimates(
        fit, cluster_robust_covariance(fit, evidence, surplus, lengths), evidence, lengths
    )


def explain_no_length_control(evidence: RankingEvidence, lengths: LengthDifferences) -> str | None:
    if not evidence.comparisons:
        return NOTHING_SAID
    if apart := explain_unconnected(evidence.table(evidence.totals), evidence.names):
        return apart
    count, pairs = len(evidence.names), len(lengths.matches.compared_pairs)
    if count > MAX_CANDIDATES or BINS * pairs * count > MAX_CELLS:
        return TOO_MANY.format(count)
    if not lengths.scale:
        return NO_LENGTHS
    rows = np.unique(lengths.row[evidence.item[evidence.has_choice]])
    return ONE_LENGTH_A_PAIR if len(np.unique(rows // BINS)) == len(rows) else None


def without_length_control(why: str, comparisons: int) -> LengthControlled:
    return LengthControlled({}, undefined_estimate(why, comparisons), None, why)


def cluster_robust_covariance(
    fit: LogisticFit, evidence: RankingEvidence, surplus: FloatArray, lengths: LengthDifferences
) -> FloatArray:
    """The covariance of the coefficients by cluster, I⁻¹ (Σ s_g s_gᵀ) I⁻¹ · G ÷ (G − 1); NaN for a lone cluster."""
    extra = surplus * lengths.covariate[evidence.item]
    residuals = score_residuals(evidence.matches, evidence.pair, evidence.cluster, surplus, extra)
    spare = evidence.clusters / (evidence.clusters - 1) if evidence.clusters > 1 else np.nan
    return np.asarray(fit.covariance @ residuals.products[1:, 1:] @ fit.covariance * spare)


def length_controlled_estimates(
    fit: LogisticFit, covariance: FloatArray, evidence: RankingEvidence, lengths: LengthDifferences
) -> LengthControlled:
    clusters, slope = evidence.clusters, Estimate(float(fit.coefficients[-1]), evidence.comparisons)
    values, gradients = win_rates_at_equal_length(fit, evidence)
    variances = ((gradients @ covariance) * gradients).sum(axis=1)
    parts = zip(values, variances, evidence.comparison_counts, interval_reasons_by_candidate(evidence), strict=True)
    rates = [
        t_interval_by_clusters(Estimate(float(value), int(n)), float(variance), clusters, reason, SHARE_BOUNDS)
        for value, variance, n, reason in parts
    ]
    interval = t_interval_by_clusters(
        slope, float(covariance[-1, -1]), clusters, explain_no_length_slope(evidence, lengths), UNBOUNDED
    )
    return LengthControlled(dict(zip(evidence.names, rates, strict=True)), interval, lengths.scale, None)


def explain_no_length_slope(evidence: RankingEvidence, lengths: LengthDifferences) -> str | None:
    """The reason why the slope has no interval: few clusters, or lengths that all but decide the choices."""
    longer_by = lengths.longer_by[evidence.item]
    chosen = evidence.has_choice & (evidence.outcome != 1 / 2) & (longer_by != 0)
    chose_longer = (longer_by > 0) == (evidence.outcome == 1)
    return explain_slope_withheld(evidence.cluster[chosen], chose_longer[chosen], evidence.clusters)


def win_rates_at_equal_length(fit: LogisticFit, evidence: RankingEvidence) -> tuple[FloatArray, FloatArray]:
    """Each candidate's expected share of its comparisons at Δ = 0, and its gradient by the coefficients."""
    pairs = evidence.table(evidence.totals)
    p = win_probabilities(pairs, np.append(0.0, fit.coefficients[:-1]))
    sides = incidence_matrix(pairs).T
    met = np.abs(sides) @ pairs.matches
    values = (np.where(sides > 0, p, 1 - p) * np.abs(sides)) @ pairs.matches / met
    gradients = (sides * (pairs.matches * p * (1 - p))) @ sides.T / met[:, None]
    return values, np.column_stack([gradients[:, 1:], np.zeros(len(met))])


def t_interval_by_clusters(
    number: Estimate, variance: float, clusters: int, reason: str | None, bounds: Bounds
) -> Estimate:
    """± t · √variance with clusters − 1 degrees of freedom, but for a ``reason`` why it is not to be relied on."""
    if reason:
        return number.without_interval(reason)
    margin = t_975(clusters - 1) * sqrt(max(variance, 0.0))
    return number.with_margin(margin, bounds, f"t over {clusters:,} clusters")
