"""Reliability of all people's scores together: Krippendorff's alpha and intraclass correlations.

Alpha is 1 − observed ÷ expected disagreement (Krippendorff 2004) over responses with two scores or more. Interval
alpha: the disagreement of two scores is the square of their difference. Ordinal alpha: the square of the difference of
their mid-ranks among all scores, which is Krippendorff's Σ of the scores between them.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from evaluations.stats.agreement_coefficients import alpha_ordinal, icc_agreement, icc_consistency, icc_totals
from evaluations.stats.cluster_totals import Clusters, Contributions, number_clusters, sum_by_cluster
from evaluations.stats.coding import BoolArray, FloatArray, IntArray
from evaluations.stats.confidence_intervals import (
    BOOTSTRAP_UP_TO,
    CORRELATION_BOUNDS,
    MIN_DISAGREEING,
    Influence,
    Spread,
    Statistic,
    fisher_z_interval,
    why_counts_withhold_interval,
)
from evaluations.stats.estimates import Estimate, undefined_estimate
from evaluations.stats.rank_correlation import CONSTANT, DRAWN_CELLS
from evaluations.stats.ranks import RankedValues, rank_values
from evaluations.stats.score_agreement import NO_DENOMINATOR
from evaluations.stats.votes import vote_pairs

ROUNDING: Final = 1e-9  # a disagreement of scores in standard deviations that is none
TOO_FEW_SCORES: Final = "No response has two scores."
ONE_VALUE: Final = "Every score is the same, so there is no variation to agree on."


@dataclass(frozen=True)
class PairableScores:
    """The scores of units that have two or more. ``unit``: numbers of these without gaps. ``clusters``: of units."""

    unit: IntArray
    value: FloatArray
    clusters: Clusters

    @cached_property
    def scores(self) -> FloatArray:
        """How many each unit has."""
        return np.bincount(self.unit).astype(np.float64)

    @property
    def units(self) -> int:
        return len(self.scores)

    def total(self, value: FloatArray) -> FloatArray:
        return np.bincount(self.unit, value, self.units).astype(np.float64, copy=False)

    def disagreement(self, value: FloatArray) -> FloatArray:
        """Per unit: Σ of (v − w)² over ordered pairs of its scores ÷ (scores − 1)."""
        apart = self.scores * self.total(value**2) - self.total(value) ** 2
        return np.asarray(2 * apart / (self.scores - 1))

    @property
    def standardised(self) -> FloatArray:
        """The values centred and of standard deviation 1."""
        centred = self.value - self.value.mean()
        return np.asarray(centred / centred.std())

    def why_undefined(self) -> str | None:
        """Why there is no alpha, where there is none."""
        if not len(self.unit):
            return TOO_FEW_SCORES
        return ONE_VALUE if self.value.min() == self.value.max() else None

    def why_withheld(self) -> str | None:
        """Why its interval would promise too much, where it would."""
        apart = self.disagreement(self.standardised)
        differing = self.clusters.holding(np.where(apart > ROUNDING, apart, 0.0))
        return why_counts_withhold_interval(self.clusters.effective, differing, clusters=self.clusters.count)


def pairable_scores(unit: IntArray, value: FloatArray, cluster: IntArray) -> PairableScores:
    """``unit``, ``value``: one entry for each score. ``cluster``: of each unit."""
    counts = np.bincount(unit, minlength=len(cluster))
    pairable = counts[unit] > 1
    return PairableScores(number_clusters(unit[pairable]).of, value[pairable], number_clusters(cluster[counts > 1]))


def interval_alpha(scores: PairableScores) -> Estimate:
    """Alpha of scores whose distances mean something. n counts the units.

    Undefined where no unit has two scores, and where every score is the same.
    """
    if (why := scores.why_undefined()) is not None:
        return undefined_estimate(why, scores.units)
    number, spread = alpha_estimate_from_sums(scores, scores.standardised)
    few = scores.why_withheld()
    return number.without_interval(few) if few else spread.interval(number, alpha_from_sums, CORRELATION_BOUNDS)


def ordinal_alpha(scores: PairableScores) -> Estimate:
    """Alpha of scores of which only the order counts. n and undefined as for `interval_alpha`.

    By bootstrap of clusters where there are up to eleven values and few clusters, else linearised.
    """
    if (why := scores.why_undefined()) is not None:
        return undefined_estimate(why, scores.units)
    ranks = rank_values(scores.value)
    number, _ = alpha_estimate_from_sums(scores, ranks.standing / len(ranks.code))
    if (few := scores.why_withheld()) is not None:
        return number.without_interval(few)
    if len(ranks.count) ** 2 <= DRAWN_CELLS and scores.clusters.count <= BOOTSTRAP_UP_TO:
        statistic = ordinal_alpha_statistic(len(ranks.count))
        return Spread(score_coincidences(scores, ranks)).interval(number, statistic, CORRELATION_BOUNDS)
    return fisher_z_interval(number, Influence(alpha_influence(scores, ranks), scores.clusters))


def alpha_estimate_from_sums(scores: PairableScores, value: FloatArray) -> tuple[Estimate, Spread]:
    sums = sum_by_cluster(
        scores.clusters, scores.scores, scores.total(value), scores.total(value**2), scores.disagreement(value)
    )
    return Estimate(min(float(alpha_from_sums(sums.totals)), 1.0), scores.units), Spread(sums)


def alpha_from_sums(totals: FloatArray) -> FloatArray:
    """From (…, 5): units, scores, their sum, their squares' sum, the sum of disagreements."""
    scores, summed, squares, disagreement = (totals[..., cell] for cell in range(1, 5))
    return np.asarray(1 - (scores - 1) * disagreement / (2 * (scores * squares - summed**2)))


def score_coincidences(scores: PairableScores, ranks: RankedValues) -> Contributions:
    """How often two values meet on a unit, each unit's pairs weighing 1 ÷ (scores − 1): values × values cells."""
    earlier, later = vote_pairs(scores.unit)
    unit, values = scores.unit[earlier], len(ranks.count)
    cell = ranks.code[earlier] * values + ranks.code[later]
    return Contributions(scores.clusters.of[unit], cell, values**2, 1 / (scores.scores[unit] - 1))


def ordinal_alpha_statistic(values: int) -> Statistic:
    def ordinal(totals: FloatArray) -> FloatArray:
        one_way = totals.reshape(*totals.shape[:-1], values, values)
        return alpha_ordinal(one_way + np.swapaxes(one_way, -1, -2))

    return ordinal


def alpha_influence(pairable: PairableScores, ranks: RankedValues) -> FloatArray:
    """The influence of each unit on alpha; a score enters at its own rank and by moving the ranks of others."""
    rank, scores = ranks.standing, pairable.scores[pairable.unit]
    observed = pairable.disagreement(rank)
    slope = 4 * (scores * rank - pairable.total(rank)[pairable.unit]) / (scores - 1)
    on_observed = observed + pairable.total(ranks.above(slope))
    on_expected = pairable.total(rank**2 + 2 * ranks.above(rank))
    total, variation = float(observed.sum()), float((rank**2).sum())
    return -(on_observed - total / variation * on_expected) / (2 * variation)


TWO: Final = 2
TWO_PEOPLE: Final = "Needs scores of two reviewers."


@dataclass(frozen=True)
class PersonScores:
    """Scores of people on responses: response, person and value of each."""

    unit: IntArray
    rater: IntArray
    value: FloatArray


@dataclass(frozen=True)
class ScoreReliability:
    """All people together. ``units``: responses with two scores; ``complete``: those that everyone scored."""

    units: int
    complete: int
    krippendorff_alpha_interval: Estimate
    krippendorff_alpha_ordinal: Estimate
    icc_agreement: Estimate
    icc_consistency: Estimate


def score_reliability(each: PersonScores, scores: IntArray, cluster: IntArray) -> ScoreReliability:
    """``scores``: how many each response has."""
    people, pairable = int(np.count_nonzero(np.bincount(each.rater))), pairable_scores(each.unit, each.value, cluster)
    if people == TWO and has_constant_scorer(each, scores > 1):
        nothing, units = undefined_estimate(CONSTANT, pairable.units), pairable.units
        return ScoreReliability(units, units, nothing, nothing, nothing, nothing)
    complete = scores[each.unit] == people
    unit = each.unit[complete][: int(complete.sum()) // max(people, 1)]
    value = each.value[complete].reshape(max(people, 1), -1)
    return ScoreReliability(
        units=int((scores > 1).sum()),
        complete=len(unit) if people > 1 else 0,
        krippendorff_alpha_interval=interval_alpha(pairable),
        krippendorff_alpha_ordinal=ordinal_alpha(pairable),
        icc_agreement=icc_estimate(icc_agreement, value, cluster[unit]),
        icc_consistency=icc_estimate(icc_consistency, value, cluster[unit]),
    )


def has_constant_scorer(each: PersonScores, shared: BoolArray) -> bool:
    """Whether exactly one of two people gives all shared responses the same score."""
    kept = shared[each.unit]
    if np.count_nonzero(shared) < MIN_DISAGREEING:
        return False
    rater, value = each.rater[kept], each.value[kept]
    varying = [bool(np.ptp(value[rater == person])) for person in np.unique(rater)]
    return any(varying) and not all(varying)


def icc_estimate(icc: Statistic, value: FloatArray, cluster: IntArray) -> Estimate:
    """``value``: people × responses that all of them scored."""
    people, responses = value.shape
    if people < 2:
        return undefined_estimate(TWO_PEOPLE)
    if responses < 2:
        return undefined_estimate(
            f"Needs two responses scored by all {people} reviewers. Alpha uses every response scored by two.",
            responses,
        )
    clusters = number_clusters(cluster)
    spread = Spread(icc_totals(value - value.mean(), clusters))
    with np.errstate(all="ignore"):
        icc_value = float(icc(spread.contributions.totals))
    if not np.isfinite(icc_value):
        return undefined_estimate(NO_DENOMINATOR, responses)
    number = Estimate(min(icc_value, 1.0), responses)
    few = why_counts_withhold_interval(
        clusters.effective, clusters.holding(np.ptp(value, axis=0)), clusters=clusters.count
    )
    return number.without_interval(few) if few else spread.interval(number, icc, CORRELATION_BOUNDS)
