"""What the order of showing does to a judge."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.stats.bias.shares import balances, shares
from evaluations.stats.bias.sides import sides
from evaluations.stats.bias.strata import Strata
from evaluations.stats.coding import FOLDED, MISSING, ORDERS, IntArray
from evaluations.stats.consolidation import Answers, Consolidated, Verdicts
from evaluations.stats.contributions import Contributions, FloatArray, side_by_side
from evaluations.stats.intervals import SHARE, Spread, too_few, wilson
from evaluations.stats.numbers import Number, undefined

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
class Tally:
    """``agree`` out of ``n``."""

    agree: int
    n: int
    share: Number


NO_FOLD: Final = "No choice was made from both orders."


@dataclass(frozen=True)
class Position:
    """Over the comparisons answered in both orders. ``first_shown``: how often the first shown won, ties aside."""

    consistency: Tally
    flip: Number
    first_shown: Number


@dataclass(frozen=True)
class EachOrder:
    """Every verdict on its own, before the orders are put together."""

    accuracy: Number
    by_order: dict[str, Number]
    orders_agree: Tally


def in_both_orders(as_stored: IntArray, swapped: IntArray) -> IntArray:
    """What kind each item's verdicts are of, from its choice in either order; MISSING where one is."""
    place = (sides(as_stored) & 3) * len(KIND) + (sides(swapped) & 3)  # of MISSING the two low bits are set
    return KIND.ravel()[place]


def positions(strata: Strata, kind: IntArray) -> list[Position]:
    """For each stratum, from the kind of each item `in_both_orders`.

    Consistency counts ties, and tie and both bad, which name no side, as the same; a flip says A once and B once.
    """
    counts = strata.counts(kind, KINDS)
    consistent = shares(counts, CONSISTENT, EACH, ONE_ORDER)
    flipped = shares(counts, FLIPPED, EACH, ONE_ORDER)
    first = balances(counts, FIRST, SIDES, FIRST * 2 != SIDES, ALL_TIES)
    agree = (counts.totals @ CONSISTENT).tolist()
    return [
        Position(Tally(same, share.n, share), flip, shown if share.n else undefined(ONE_ORDER))
        for same, share, flip, shown in zip(agree, consistent, flipped, first, strict=True)
    ]


def position(own: Consolidated, everything: Strata) -> Position:
    """Over all comparisons, ``everything`` holding them undivided."""
    return positions(everything, in_both_orders(own.as_stored, own.swapped))[0]


def inconsistent(own: Consolidated, cluster: IntArray) -> Tally:
    """On how many of the comparisons with a verdict from both orders the judge was inconsistent.

    Both orders were stored, or a file brought the one choice that was made from both.
    """
    orders = np.array([one != MISSING for one in own.by_order if one is not None]).sum(axis=0)
    folded = own.in_order(FOLDED) != MISSING
    both = np.flatnonzero(((orders > 1) | folded | own.inconsistent) & ~own.incomplete)
    found = Contributions(cluster[both], own.inconsistent[both].astype(np.int64), 2)
    n, many = len(both), int(own.inconsistent[both].sum())
    rate = wilson(Number(many / n, n), Spread(found), share_right) if n else undefined(NO_FOLD)
    return Tally(many, n, rate)


def each_order(verdicts: Verdicts, agree: Tally, gold: IntArray, cluster: IntArray) -> EachOrder:
    """Accuracy of single verdicts against gold (one choice or MISSING per comparison), as the mean of the orders.

    ``agree``: on how many comparisons the orders do.
    """
    held = {str(ORDERS[one.shown]): right_and_wrong(one, gold, cluster) for one in verdicts.answers}
    held = {name: found for name, found in held.items() if found.clusters}
    by_order = {name: accuracy(found) for name, found in held.items()}
    return EachOrder(mean_of(by_order, held), by_order, agree)


def right_and_wrong(answers: Answers, gold: IntArray, cluster: IntArray) -> Contributions:
    """Two cells, wrong and right, of the verdicts on comparisons with gold."""
    held = gold[answers.item] != MISSING
    item = answers.item[held]
    return Contributions(cluster[item], (answers.choice[held] == gold[item]).astype(np.int64), 2)


def accuracy(found: Contributions) -> Number:
    n = int(found.totals.sum())
    return wilson(Number(float(found.totals[1]) / n, n), Spread(found), share_right)


def share_right(totals: FloatArray) -> FloatArray:
    return np.asarray(totals[..., 1] / totals.sum(axis=-1))


def mean_of(by_order: Mapping[str, Number], held: Mapping[str, Contributions]) -> Number:
    """Orders of one comparison stand in one cluster, so that the interval knows how they go together."""
    if not by_order:
        return undefined(NO_GOLD)
    together = side_by_side(*held.values())
    n = sum(one.n for one in by_order.values())
    number = Number(float(mean_right(together.totals)), n)
    spread, wrong = Spread(together), np.tile([True, False], len(held))
    if too_few(together, wrong, among=np.ones_like(wrong)):
        return wilson(number, spread, mean_right)
    return spread.interval(number, mean_right, SHARE)


def mean_right(totals: FloatArray) -> FloatArray:
    orders = totals.reshape(*totals.shape[:-1], -1, 2)
    return np.asarray((orders[..., 1] / orders.sum(axis=-1)).mean(axis=-1))
