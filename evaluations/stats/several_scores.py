"""All people's scores together: alpha takes what there is, the intraclass correlations what everyone scored."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.stats.cluster_sums import numbered
from evaluations.stats.coding import BoolArray, IntArray
from evaluations.stats.contributions import FloatArray
from evaluations.stats.correlation import CONSTANT
from evaluations.stats.icc import icc_agreement, icc_consistency, icc_sums
from evaluations.stats.intervals import CORRELATION, LEAST_DISAGREEING, Spread, Statistic, too_few_of
from evaluations.stats.numbers import Number, undefined
from evaluations.stats.score_agreement import NO_DENOMINATOR
from evaluations.stats.score_alpha import interval_alpha, ordinal_alpha, paired

TWO: Final = 2
TWO_PEOPLE: Final = "It needs scores of two people."


@dataclass(frozen=True)
class Scores:
    """One person's score of one response each: the response's place, the person's, and the value."""

    unit: IntArray
    rater: IntArray
    value: FloatArray


@dataclass(frozen=True)
class SeveralScores:
    """All people together. ``units``: responses with two scores; ``complete``: those that everyone scored."""

    units: int
    complete: int
    krippendorff_alpha_interval: Number
    krippendorff_alpha_ordinal: Number
    icc_agreement: Number
    icc_consistency: Number


def several_scores(each: Scores, scores: IntArray, cluster: IntArray) -> SeveralScores:
    """``scores``: how many each response has."""
    people, found = int(np.count_nonzero(np.bincount(each.rater))), paired(each.unit, each.value, cluster)
    if people == TWO and has_constant(each, scores > 1):
        nothing, units = undefined(CONSTANT, found.units), found.units
        return SeveralScores(units, units, nothing, nothing, nothing, nothing)
    complete = scores[each.unit] == people
    unit = each.unit[complete][: int(complete.sum()) // max(people, 1)]
    value = each.value[complete].reshape(max(people, 1), -1)
    return SeveralScores(
        units=int((scores > 1).sum()),
        complete=len(unit) if people > 1 else 0,
        krippendorff_alpha_interval=interval_alpha(found),
        krippendorff_alpha_ordinal=ordinal_alpha(found),
        icc_agreement=icc_of_people(icc_agreement, value, cluster[unit]),
        icc_consistency=icc_of_people(icc_consistency, value, cluster[unit]),
    )


def has_constant(each: Scores, shared: BoolArray) -> bool:
    """Whether one of two people gives every response that both scored the same score, and the other does not."""
    kept = shared[each.unit]
    if np.count_nonzero(shared) < LEAST_DISAGREEING:
        return False
    rater, value = each.rater[kept], each.value[kept]
    varying = [bool(np.ptp(value[rater == one])) for one in np.unique(rater)]
    return any(varying) and not all(varying)


def icc_of_people(icc: Statistic, value: FloatArray, cluster: IntArray) -> Number:
    """``value``: people × responses that all of them scored."""
    people, responses = value.shape
    if people < 2:
        return undefined(TWO_PEOPLE)
    if responses < 2:
        return undefined(
            f"It needs two responses that all {people} people scored; alpha takes every response that two of them did.",
            responses,
        )
    clusters = numbered(cluster)
    spread = Spread(icc_sums(value - value.mean(), clusters))
    with np.errstate(all="ignore"):
        found = float(icc(spread.contributions.totals))
    if not np.isfinite(found):
        return undefined(NO_DENOMINATOR, responses)
    number = Number(min(found, 1.0), responses)
    few = too_few_of(clusters.effective, clusters.holding(np.ptp(value, axis=0)), clusters=clusters.count)
    return number.without_interval(few) if few else spread.interval(number, icc, CORRELATION)
