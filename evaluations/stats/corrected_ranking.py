"""A judge's ranking corrected by people's sample: PPI++ for Bradley–Terry.

The gradient of the likelihood is linear in the wins, so the corrected gradient is that of a corrected table
(Angelopoulos, Duchi and Zrnic 2023, on generalised linear models). With Hájek's means over the sample,

    λ mean over all x(F − p) + mean over the sample x(Y − p) − λ mean over the sample x(F − p) = 0,

x is 1 for the first candidate of a comparison and −1 for the second, p the probability that the scores predict.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from evaluations.stats.bradley_terry import WinTable, bradley_terry_scores, incidence_matrix, win_probabilities
from evaluations.stats.coding import MISSING, FloatArray, IntArray
from evaluations.stats.confidence_intervals import MIN_DISAGREEING
from evaluations.stats.estimates import Estimate
from evaluations.stats.matches import Matches
from evaluations.stats.outcomes import JudgedMatches, ReviewedMatches
from evaluations.stats.ppi import SampleWithJudge, common_lambda
from evaluations.stats.ranking import (
    NOT_FOUND,
    Ranking,
    fit_scores,
    interval_reasons_by_candidate,
    make_standings,
    normal_draws,
    sandwich_covariance,
    score_estimates,
    score_intervals,
    withhold_intervals,
)
from evaluations.stats.ranking_evidence import score_residuals, win_table_of
from evaluations.stats.significance import t_975
from evaluations.stats.win_rates import HARDLY_CORRECTED, NOT_JUDGED


@dataclass(frozen=True)
class RankingCorrection:
    reviewed: ReviewedMatches
    judgement: JudgedMatches
    judge_weight: float

    @property
    def matches(self) -> Matches:
        return self.reviewed.matches

    @cached_property
    def share(self) -> FloatArray:
        """w ÷ Σ w of each reviewed comparison, in order of clusters."""
        return np.asarray(self.reviewed.weight / self.reviewed.weight.sum())

    @cached_property
    def positions(self) -> IntArray:
        """The positions of the reviewed comparisons among all in order of clusters."""
        return self.matches.cluster_position[self.reviewed.items]

    @cached_property
    def people(self) -> FloatArray:
        """Y of the reviewed comparisons."""
        return self.reviewed.evidence.outcome

    @cached_property
    def judge(self) -> FloatArray:
        """F of the reviewed comparisons."""
        return self.judgement.evidence.outcome[self.positions]

    def by_pair(self, values: FloatArray) -> FloatArray:
        """The sum of values of reviewed comparisons by pair of candidates."""
        return np.bincount(self.reviewed.evidence.pair, values, len(self.matches.compared_pairs)).astype(np.float64)

    @cached_property
    def table(self) -> WinTable:
        """The corrected table, people and judge together: matches and wins of each pair, as shares of all matches."""
        of_judge = self.judgement.pairs.counts * (self.judge_weight / len(self.matches.items))
        met = (1 - self.judge_weight) * self.by_pair(self.share) + of_judge.sum(axis=1)
        wins = self.by_pair(self.share * (self.people - self.judge_weight * self.judge)) + of_judge @ [0.0, 0.5, 1.0]
        return win_table_of(self.matches, met, wins)

    def products(self, at: FloatArray) -> FloatArray:
        """Σ s_g s_gᵀ over clusters, with the influence of a cluster on the two sums in the denominators."""
        matches, every, p = self.matches, 1 / len(self.matches.items), win_probabilities(self.table, at)
        surplus = (self.judge_weight * every) * (self.judgement.evidence.outcome - p[matches.pair_by_cluster])
        extra = np.full(len(surplus), -every)
        of_pair = p[self.reviewed.evidence.pair]
        added = self.share * (self.people - of_pair - self.judge_weight * (self.judge - of_pair))
        surplus[self.positions] += added
        extra[self.positions] += self.share
        products = score_residuals(matches, matches.pair_by_cluster, matches.number_by_cluster, surplus, extra).products
        # The mean over the sample is as far above 0 as the mean over all comparisons is below it.
        mean = self.by_pair(added) @ incidence_matrix(self.table)
        centring = np.column_stack([np.eye(len(mean)), -mean])
        return np.asarray(centring @ products @ centring.T)

    @property
    def differing(self) -> int:
        """The reviewed clusters in which judge and people differ on a comparison."""
        return len(np.unique(self.reviewed.evidence.cluster[self.people != self.judge]))


def rank_by_corrected_judge(reviewed: ReviewedMatches, judgement: JudgedMatches) -> Ranking:
    """The corrected ranking with t over the reviewed clusters; λ minimises the summed variance of win rates."""
    alone = fit_scores(reviewed.evidence)
    comparisons, clusters = alone.evidence.comparisons, alone.evidence.clusters
    why = alone.why or (None if (judgement.choice != MISSING).any() else NOT_JUDGED)
    if why:
        return Ranking({}, why, comparisons, clusters)
    judge_weight = common_lambda(SampleWithJudge(reviewed.candidates, judgement.candidates))
    correction = RankingCorrection(reviewed, judgement, judge_weight)
    at = bradley_terry_scores(correction.table)
    if np.isnan(at).any():
        return Ranking({}, NOT_FOUND, comparisons, clusters, judge_weight)
    standings = corrected_intervals(correction, score_estimates(alone.evidence, at), at, clusters)
    return Ranking(make_standings(alone.evidence.names, *standings), None, comparisons, clusters, judge_weight)


def corrected_intervals(
    correction: RankingCorrection, numbers: list[Estimate], at: FloatArray, clusters: int
) -> tuple[list[Estimate], FloatArray | None]:
    """The scores with intervals, and draws of them, where enough differs for the variance to be known."""
    reasons = interval_reasons_by_candidate(correction.reviewed.evidence)
    if correction.judge_weight and correction.differing < MIN_DISAGREEING:
        reasons = [reason or HARDLY_CORRECTED.format(correction.differing, MIN_DISAGREEING) for reason in reasons]
    if None not in reasons:
        return withhold_intervals(numbers, reasons), None
    covariance = sandwich_covariance(correction.table, at, correction.products(at), clusters)
    rule = f"linearised, t over {clusters:,} reviewed clusters"
    intervals = score_intervals(numbers, covariance, t_975(clusters - 1), rule)
    return withhold_intervals(intervals, reasons), normal_draws(at, covariance)
