"""Bradley–Terry rankings of candidates with intervals and ranges of ranks."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp
from typing import Final

import numpy as np

from evaluations.stats.bradley_terry import (
    MAX_DENSE,
    WinTable,
    bradley_terry_scores,
    explain_missing_scores,
    incidence_matrix,
    information_matrix,
    win_probabilities,
)
from evaluations.stats.coding import FloatArray, IntArray
from evaluations.stats.confidence_intervals import (
    BOOTSTRAP_UP_TO,
    RESAMPLES,
    SEED,
    UNBOUNDED,
    Spread,
    bca_accelerations,
    why_counts_withhold_interval,
)
from evaluations.stats.estimates import Estimate, drop_rounding_noise
from evaluations.stats.outcomes import JudgedMatches, ReviewedMatches
from evaluations.stats.ranking_evidence import RankingEvidence
from evaluations.stats.significance import Z_975

NOTHING_SAID: Final = "No choices to rank by."
MAX_DRAWN: Final = 60  # candidates; with more, scores are not fitted again in every resample
TOO_MANY: Final = "Too many models for a CI ({:,} > {:,})."
NOT_FOUND: Final = "The Bradley–Terry fit did not converge."


@dataclass(frozen=True)
class Standing:
    """``score``: log odds, 0 the mean of all. ``win_probability``: against a candidate whose score is 0.

    ``ranks``: from the best to the worst of the ranks in which 95 % of the draws end.
    """

    rank: int
    ranks: tuple[int, int] | None
    score: Estimate
    win_probability: Estimate


@dataclass(frozen=True)
class Ranking:
    """``standings``: by candidate, the best first; empty for the reason ``why`` where there are no scores.

    ``judge_weight``: λ, where people correct the judge.
    """

    standings: dict[str, Standing]
    why: str | None
    comparisons: int
    clusters: int
    judge_weight: float | None = None


@dataclass(frozen=True)
class FittedScores:
    """``at``: a score for each candidate, NaN for the reason ``why`` where there is none."""

    evidence: RankingEvidence
    table: WinTable
    at: FloatArray
    why: str | None


def fit_scores(evidence: RankingEvidence) -> FittedScores:
    table = evidence.table(evidence.totals)
    if not evidence.comparisons:
        return FittedScores(evidence, table, np.full(len(evidence.names), np.nan), NOTHING_SAID)
    at = bradley_terry_scores(table)
    why = explain_missing_scores(table, evidence.names) or (NOT_FOUND if np.isnan(at).any() else None)
    return FittedScores(evidence, table, at, why)


def rank_candidates(outcomes: ReviewedMatches | JudgedMatches) -> Ranking:
    """The ranking with bootstrap intervals, or linearised ones for many clusters or candidates.

    A candidate has none with too few clusters that have another outcome than its commonest.
    """
    evidence = outcomes.evidence
    fit, comparisons, clusters = fit_scores(evidence), evidence.comparisons, evidence.clusters
    if fit.why:
        return Ranking({}, fit.why, comparisons, clusters)
    numbers, draws = score_estimates(evidence, fit.at), None
    reasons = interval_reasons_by_candidate(evidence)
    if None in reasons:
        is_drawn = clusters <= BOOTSTRAP_UP_TO and len(numbers) <= MAX_DRAWN
        numbers, draws = (bootstrap_scores if is_drawn else linearise_scores)(fit, numbers)
    standings = make_standings(evidence.names, withhold_intervals(numbers, reasons), draws)
    return Ranking(standings, None, comparisons, clusters)


def interval_reasons_by_candidate(evidence: RankingEvidence) -> list[str | None]:
    """Why each candidate has no interval, where it has none."""
    if (count := len(evidence.names)) > MAX_DENSE:
        return [TOO_MANY.format(count, MAX_DENSE)] * count
    effective, clusters = evidence.effective_clusters, evidence.clusters
    return [why_counts_withhold_interval(effective, varied, clusters=clusters) for varied in evidence.varied.tolist()]


def withhold_intervals(numbers: Sequence[Estimate], reasons: Sequence[str | None]) -> list[Estimate]:
    """Estimates without interval where there is a reason."""
    pairs = zip(numbers, reasons, strict=True)
    return [number if reason is None else number.without_interval(reason) for number, reason in pairs]


def score_estimates(evidence: RankingEvidence, at: FloatArray) -> list[Estimate]:
    """The score of each candidate; n is the number of its comparisons."""
    return [Estimate(float(score), int(n)) for score, n in zip(at, evidence.comparison_counts, strict=True)]


def bootstrap_scores(fit: FittedScores, numbers: Sequence[Estimate]) -> tuple[list[Estimate], FloatArray]:
    """The scores with intervals from resampled clusters, and all resampled scores that there are."""
    spread = Spread(fit.evidence.contributions)
    scores = bradley_terry_scores(fit.evidence.table(spread.resampled_totals), fit.at)
    ordered = np.sort(scores.T, axis=1)  # NaN comes last
    moves = incidence_matrix(fit.table) @ np.linalg.inv(information_matrix(fit.table, fit.at))
    influences = spread.influences(np.vstack([-win_probabilities(fit.table, fit.at)[:, None] * moves, moves]))
    parts = zip(numbers, fit.at.tolist(), ordered, bca_accelerations(influences).tolist(), strict=True)
    within = [spread.bca_interval(number, observed, row, skewness) for number, observed, row, skewness in parts]
    return within, scores[np.isfinite(scores).all(axis=1)]


def linearise_scores(fit: FittedScores, numbers: Sequence[Estimate]) -> tuple[list[Estimate], FloatArray]:
    """The scores with intervals from their cluster-robust covariance, and draws from a normal with that covariance."""
    products, clusters = fit.evidence.residuals(fit.at).products[:-1, :-1], fit.evidence.clusters
    covariance = sandwich_covariance(fit.table, fit.at, products, clusters)
    rule = f"linearised over {clusters:,} clusters"
    return score_intervals(numbers, covariance, Z_975, rule), normal_draws(fit.at, covariance)


def sandwich_covariance(table: WinTable, at: FloatArray, products: FloatArray, clusters: int) -> FloatArray:
    """J⁻¹ (Σ s_g s_gᵀ) J⁻¹ · G ÷ (G − 1), with J the curvature (Liang and Zeger 1986)."""
    bread = np.linalg.inv(information_matrix(table, at))
    return np.asarray(bread @ products @ bread * clusters / (clusters - 1))


def score_intervals(numbers: Sequence[Estimate], covariance: FloatArray, quantile: float, rule: str) -> list[Estimate]:
    margins = (quantile * np.sqrt(np.diag(covariance))).tolist()
    return [number.with_margin(margin, UNBOUNDED, rule) for number, margin in zip(numbers, margins, strict=True)]


def normal_draws(at: FloatArray, covariance: FloatArray) -> FloatArray:
    """Draws of scores from a normal distribution: RESAMPLES × candidates."""
    return np.random.default_rng(SEED).multivariate_normal(at, covariance, RESAMPLES, method="eigh")


def make_standings(names: Sequence[str], numbers: Sequence[Estimate], draws: FloatArray | None) -> dict[str, Standing]:
    """Standings by candidate. ``draws``: resampled scores, draws × candidates, or None."""
    at = np.array([number.value for number in numbers])
    ranks = competition_ranks(at)
    ranges = [None] * len(names) if draws is None else rank_ranges(draws, numbers)
    return {
        names[each]: Standing(
            int(ranks[each]), ranges[each], numbers[each], win_probability_against_average(numbers[each])
        )
        for each in np.argsort(-at, kind="stable")
    }


def competition_ranks(at: FloatArray) -> IntArray:
    """Ranks, one more than the number of better candidates: (…, candidates). Rounding differences are ties."""
    at = drop_rounding_noise(at)
    if at.shape[-1] <= MAX_DRAWN:
        return np.asarray(1 + (at[..., None, :] > at[..., :, None]).sum(axis=-1))
    rows = at.reshape(-1, at.shape[-1])
    better = [at.shape[-1] - np.searchsorted(np.sort(row), row, side="right") for row in rows]
    return 1 + np.array(better, dtype=np.int64).reshape(at.shape)


def rank_ranges(draws: FloatArray, numbers: Sequence[Estimate]) -> list[tuple[int, int] | None]:
    """The range of each rank over the draws, None where the score has no interval."""
    if not len(draws):
        return [None] * len(numbers)
    ranks = np.sort(competition_ranks(draws), axis=0)
    low, high = ranks[int(0.025 * len(ranks))], ranks[len(ranks) - 1 - int(0.025 * len(ranks))]
    return [
        (int(best), int(worst)) if number.ci95 else None for number, best, worst in zip(numbers, low, high, strict=True)
    ]


def win_probability_against_average(score: Estimate) -> Estimate:
    """1 ÷ (1 + exp −score), with its interval."""
    assert score.value is not None
    number = Estimate(logistic_probability(score.value), score.n, ci95_why=score.ci95_why)
    if score.ci95 is None or score.ci95_rule is None:
        return number
    return number.with_interval(
        logistic_probability(score.ci95[0]), logistic_probability(score.ci95[1]), score.ci95_rule
    )


def logistic_probability(log_odds: float) -> float:
    return 1 / (1 + exp(-log_odds))
