"""Position bias: how the order of showing changes the verdicts of a judge."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.domain.packed_votes import PACKED_ORDERS
from evaluations.stats.bias.strata import Strata
from evaluations.stats.bias.stratified_shares import balance_shares, stratum_shares
from evaluations.stats.cluster_totals import Contributions, join_contributions
from evaluations.stats.coding import FOLDED, MISSING, FloatArray, IntArray, sides_of_choices
from evaluations.stats.confidence_intervals import SHARE_BOUNDS, Spread, why_interval_withheld, wilson_by_cluster
from evaluations.stats.estimates import Estimate, undefined_estimate
from evaluations.stats.judge_verdicts import ConsolidatedVerdicts, JudgeAnswers, JudgeVerdicts

ONE_ORDER: Final = "No comparison was answered in both orders, so place and candidate cannot be told apart."
ALL_TIES: Final = "Every verdict on a comparison that was answered in both orders is a tie."
NO_GOLD: Final = "No verdict is on a comparison with a gold label."

# What a comparison's two verdicts say together is one of six: the same side; no side twice; the first shown twice; the
# second shown twice; the first shown once, the second shown once, and no side beside it.
KINDS: Final = 6
# By the choice as stored (A, B, no side, MISSING) and the choice swapped: as stored A stands first, swapped B does.
KIND: Final = np.array([[0, 2, 4, -1], [3, 0, 5, -1], [5, 4, 1, -1], [-1, -1, -1, -1]], dtype=np.int8)
CONSISTENT: Final = np.array([1, 1, 0, 0, 0, 0])
FLIPPED: Final = np.array([0, 0, 1, 1, 0, 0])
EACH: Final = np.array([1, 1, 1, 1, 1, 1])
FIRST: Final = np.array([1, 0, 2, 0, 1, 0])
SIDES: Final = np.array([2, 0, 2, 2, 1, 1])


@dataclass(frozen=True)
class AgreementCount:
    """``agree`` out of ``n``."""

    agree: int
    n: int
    share: Estimate


NOT_IN_BOTH_ORDERS: Final = "No choice was made from both orders."


@dataclass(frozen=True)
class PositionBias:
    """Over the comparisons answered in both orders. ``first_shown``: how often the first shown won, ties aside."""

    consistency: AgreementCount
    flip: Estimate
    first_shown: Estimate


@dataclass(frozen=True)
class AccuracyByOrder:
    """Accuracy of single verdicts, before the orders are combined."""

    accuracy: Estimate
    by_order: dict[str, Estimate]
    orders_agree: AgreementCount


def order_kinds(as_stored: IntArray, swapped: IntArray) -> IntArray:
    """The kind of each item's pair of verdicts (consistent, flipped …); MISSING where one is missing."""
    place = (sides_of_choices(as_stored) & 3) * len(KIND) + (
        sides_of_choices(swapped) & 3
    )  # of MISSING the two low bits are set
    return KIND.ravel()[place]


def position_bias_by_stratum(strata: Strata, kind: IntArray) -> list[PositionBias]:
    """Position bias in each stratum, from the kind of each item.

    Consistency counts ties, and tie and both bad, which name no side, as the same; a flip says A once and B once.
    """
    counts = strata.counts(kind, KINDS)
    consistent = stratum_shares(counts, CONSISTENT, EACH, ONE_ORDER)
    flipped = stratum_shares(counts, FLIPPED, EACH, ONE_ORDER)
    first = balance_shares(counts, FIRST, SIDES, FIRST * 2 != SIDES, ALL_TIES)
    agree = (counts.totals @ CONSISTENT).tolist()
    return [
        PositionBias(AgreementCount(same, share.n, share), flip, shown if share.n else undefined_estimate(ONE_ORDER))
        for same, share, flip, shown in zip(agree, consistent, flipped, first, strict=True)
    ]


def position_bias(own: ConsolidatedVerdicts, everything: Strata) -> PositionBias:
    """Position bias over all comparisons."""
    return position_bias_by_stratum(everything, order_kinds(own.as_stored, own.swapped))[0]


def count_inconsistent(own: ConsolidatedVerdicts, cluster: IntArray) -> AgreementCount:
    """The number of comparisons with verdicts from both orders on which the judge was inconsistent.

    Both orders were stored, or a file brought the one choice that was made from both.
    """
    orders = np.array([one != MISSING for one in own.by_order if one is not None]).sum(axis=0)
    folded = own.in_order(FOLDED) != MISSING
    both = np.flatnonzero(((orders > 1) | folded | own.inconsistent) & ~own.incomplete)
    found = Contributions(cluster[both], own.inconsistent[both].astype(np.int64), 2)
    n, many = len(both), int(own.inconsistent[both].sum())
    rate = (
        wilson_by_cluster(Estimate(many / n, n), Spread(found), correct_share)
        if n
        else undefined_estimate(NOT_IN_BOTH_ORDERS)
    )
    return AgreementCount(many, n, rate)


def accuracy_by_order(
    verdicts: JudgeVerdicts, agree: AgreementCount, gold: IntArray, cluster: IntArray
) -> AccuracyByOrder:
    """Accuracy of single verdicts against gold (one choice or MISSING per comparison), as the mean of the orders.

    ``agree``: on how many comparisons the orders do.
    """
    held = {str(PACKED_ORDERS[one.shown]): correctness_by_cluster(one, gold, cluster) for one in verdicts.answers}
    held = {name: found for name, found in held.items() if found.clusters}
    by_order = {name: accuracy_of_verdicts(found) for name, found in held.items()}
    return AccuracyByOrder(mean_accuracy(by_order, held), by_order, agree)


def correctness_by_cluster(answers: JudgeAnswers, gold: IntArray, cluster: IntArray) -> Contributions:
    """Counts by cluster of wrong and right verdicts on comparisons with gold."""
    held = gold[answers.item] != MISSING
    item = answers.item[held]
    return Contributions(cluster[item], (answers.choice[held] == gold[item]).astype(np.int64), 2)


def accuracy_of_verdicts(found: Contributions) -> Estimate:
    n = int(found.totals.sum())
    return wilson_by_cluster(Estimate(float(found.totals[1]) / n, n), Spread(found), correct_share)


def correct_share(totals: FloatArray) -> FloatArray:
    return np.asarray(totals[..., 1] / totals.sum(axis=-1))


def mean_accuracy(by_order: Mapping[str, Estimate], held: Mapping[str, Contributions]) -> Estimate:
    """The mean accuracy of the orders, with an interval that keeps the orders of a comparison in one cluster."""
    if not by_order:
        return undefined_estimate(NO_GOLD)
    together = join_contributions(*held.values())
    n = sum(one.n for one in by_order.values())
    number = Estimate(float(mean_correct_share(together.totals)), n)
    spread, wrong = Spread(together), np.tile([True, False], len(held))
    if why_interval_withheld(together, wrong, among=np.ones_like(wrong)):
        return wilson_by_cluster(number, spread, mean_correct_share)
    return spread.interval(number, mean_correct_share, SHARE_BOUNDS)


def mean_correct_share(totals: FloatArray) -> FloatArray:
    orders = totals.reshape(*totals.shape[:-1], -1, 2)
    return np.asarray((orders[..., 1] / orders.sum(axis=-1)).mean(axis=-1))
