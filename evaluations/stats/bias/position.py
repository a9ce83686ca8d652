"""Position bias: how the order of showing changes the verdicts of a judge."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.domain.choices import PACKED_ORDERS
from evaluations.stats.bias.strata import Strata
from evaluations.stats.bias.stratified_shares import balance_shares, stratum_shares
from evaluations.stats.cluster_totals import Contributions, join_contributions
from evaluations.stats.coding import FOLDED, MISSING, BoolArray, FloatArray, IntArray, sides_of_choices
from evaluations.stats.confidence_intervals import SHARE_BOUNDS, Spread, why_interval_withheld, wilson_by_cluster
from evaluations.stats.estimates import Estimate, undefined_estimate
from evaluations.stats.judge_verdicts import ConsolidatedVerdicts, JudgeAnswers, JudgeVerdicts

ONE_ORDER: Final = "No comparison was judged in both orders, so position bias cannot be measured."
ALL_TIES: Final = "Every verdict on a comparison judged in both orders is a tie."
NO_GOLD: Final = "No comparison with a verdict has a gold label."

# A comparison's verdicts in both orders are of one of six kinds: the same side; no side twice; the first shown twice;
# the second shown twice; the first shown and no side; the second shown and no side.
KINDS: Final = 6
# By the choice as stored (A, B, no side, MISSING) and the choice swapped: A is shown first as stored, B swapped.
KIND: Final = np.array([[0, 2, 4, -1], [3, 0, 5, -1], [5, 4, 1, -1], [-1, -1, -1, -1]], dtype=np.int8)
CONSISTENT: Final = np.array([1, 1, 0, 0, 0, 0])
FLIPPED: Final = np.array([0, 0, 1, 1, 0, 0])
EACH: Final = np.array([1, 1, 1, 1, 1, 1])
FIRST: Final = np.array([1, 0, 2, 0, 1, 0])
SIDES: Final = np.array([2, 0, 2, 2, 1, 1])


@dataclass(frozen=True)
class AgreementCount:
    """A count ``agree`` out of ``n``, with its share."""

    agree: int
    n: int
    share: Estimate


NOT_IN_BOTH_ORDERS: Final = "No choice is based on both orders."


@dataclass(frozen=True)
class PositionBias:
    """Position bias over the comparisons answered in both orders.

    ``first_shown``: the share of choices of a side that are for the response shown first.
    """

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
    # Both low bits of MISSING are set, so that it becomes the fourth row or column.
    cell = (sides_of_choices(as_stored) & 3) * len(KIND) + (sides_of_choices(swapped) & 3)
    return KIND.ravel()[cell]


def position_bias_by_stratum(strata: Strata, kind: IntArray) -> list[PositionBias]:
    """Position bias in each stratum, from the kind of each item.

    Verdicts are consistent where both name the same side or neither names one; flipped where one names A, the other B.
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
    return position_bias_by_stratum(everything, order_kinds(own.as_stored, own.swapped))[0]


def judged_in_both_orders(own: ConsolidatedVerdicts) -> BoolArray:
    """Whether each comparison has a choice that is based on both orders."""
    orders = np.zeros(len(own.choice), dtype=np.int8)
    for choices in own.by_order:
        if choices is not None:
            orders += choices != MISSING
    both = (orders > 1) | own.inconsistent
    folded = own.by_order[FOLDED]
    return (both if folded is None else both | (folded != MISSING)) & ~own.incomplete


def count_inconsistent(own: ConsolidatedVerdicts, cluster: IntArray) -> AgreementCount:
    """The number of comparisons with verdicts from both orders on which the judge was inconsistent.

    Both orders were stored, or a file brought the one choice that was made from both.
    """
    judged = np.flatnonzero(judged_in_both_orders(own))
    contributions = Contributions(cluster[judged], own.inconsistent[judged].astype(np.int64), 2)
    n, inconsistent = len(judged), int(own.inconsistent[judged].sum())
    if not n:
        return AgreementCount(0, 0, undefined_estimate(NOT_IN_BOTH_ORDERS))
    return AgreementCount(
        inconsistent, n, wilson_by_cluster(Estimate(inconsistent / n, n), Spread(contributions), correct_share)
    )


def accuracy_by_order(
    verdicts: JudgeVerdicts, agree: AgreementCount, gold: IntArray, cluster: IntArray
) -> AccuracyByOrder:
    """Accuracy of single verdicts against gold (one choice or MISSING per comparison), as the mean of the orders.

    ``agree``: on how many comparisons the orders agree.
    """
    contributions = {
        str(PACKED_ORDERS[answer.shown]): correctness_by_cluster(answer, gold, cluster) for answer in verdicts.answers
    }
    contributions = {name: correctness for name, correctness in contributions.items() if correctness.clusters}
    by_order = {name: accuracy_of_verdicts(correctness) for name, correctness in contributions.items()}
    return AccuracyByOrder(mean_accuracy(by_order, contributions), by_order, agree)


def correctness_by_cluster(answers: JudgeAnswers, gold: IntArray, cluster: IntArray) -> Contributions:
    """Counts by cluster of wrong and right verdicts on comparisons with gold."""
    has_gold = gold[answers.item] != MISSING
    item = answers.item[has_gold]
    return Contributions(cluster[item], (answers.choice[has_gold] == gold[item]).astype(np.int64), 2)


def accuracy_of_verdicts(contributions: Contributions) -> Estimate:
    n = int(contributions.totals.sum())
    return wilson_by_cluster(Estimate(float(contributions.totals[1]) / n, n), Spread(contributions), correct_share)


def correct_share(totals: FloatArray) -> FloatArray:
    return np.asarray(totals[..., 1] / totals.sum(axis=-1))


def mean_accuracy(by_order: Mapping[str, Estimate], contributions: Mapping[str, Contributions]) -> Estimate:
    """The mean accuracy of the orders, with an interval that keeps the orders of a comparison in one cluster."""
    if not by_order:
        return undefined_estimate(NO_GOLD)
    together = join_contributions(*contributions.values())
    n = sum(accuracy.n for accuracy in by_order.values())
    number = Estimate(float(mean_correct_share(together.totals)), n)
    spread, wrong = Spread(together), np.tile([True, False], len(contributions))
    if why_interval_withheld(together, wrong, among=np.ones_like(wrong)):
        return wilson_by_cluster(number, spread, mean_correct_share)
    return spread.interval(number, mean_correct_share, SHARE_BOUNDS)


def mean_correct_share(totals: FloatArray) -> FloatArray:
    orders = totals.reshape(*totals.shape[:-1], -1, 2)
    return np.asarray((orders[..., 1] / orders.sum(axis=-1)).mean(axis=-1))
