"""What the order of showing does to a judge."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.stats.coding import AS_STORED, MISSING, ORDERS, SWAPPED, TIE, A, B, BoolArray, IntArray
from evaluations.stats.consolidation import Verdicts
from evaluations.stats.numbers import Number, share, undefined

ONE_ORDER: Final = "No comparison was answered in both orders, so place and candidate cannot be told apart."
ALL_TIES: Final = "Every verdict on a comparison that was answered in both orders is a tie."
NO_GOLD: Final = "No verdict is on a comparison with a gold label."


@dataclass(frozen=True)
class Tally:
    """``agree`` out of ``n``."""

    agree: int
    n: int
    share: Number


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


def both_orders(by_order: IntArray) -> IntArray:
    """The choices as stored and swapped of the comparisons that have both: n × 2."""
    answered = (by_order[:, AS_STORED] != MISSING) & (by_order[:, SWAPPED] != MISSING)
    return np.stack([by_order[answered, AS_STORED], by_order[answered, SWAPPED]], axis=1)


def orders_agree(by_order: IntArray) -> Tally:
    """How often both orders say the same; tie and both_bad name no side and count as the same."""
    pair = np.minimum(both_orders(by_order), TIE)
    agree, n = int((pair[:, 0] == pair[:, 1]).sum()), len(pair)
    return Tally(agree, n, share(agree, n, ONE_ORDER))


def position(by_order: IntArray) -> Position:
    pair = both_orders(by_order)
    sides = (pair <= B).all(axis=1)
    flips = int((sides & (pair[:, 0] != pair[:, 1])).sum())
    # As stored A stands first, swapped B does.
    first = int((pair[:, 0] == A).sum() + (pair[:, 1] == B).sum())
    chosen = int((pair <= B).sum())
    return Position(
        consistency=orders_agree(by_order),
        flip=share(flips, len(pair), ONE_ORDER),
        first_shown=share(first, chosen, ALL_TIES if len(pair) else ONE_ORDER),
    )


def each_order(verdicts: Verdicts, by_order: IntArray, gold: IntArray) -> EachOrder:
    """Accuracy of single verdicts against gold (one choice or MISSING per comparison), as the mean of the orders."""
    held = gold[verdicts.item] != MISSING
    right = verdicts.choice == gold[verdicts.item]
    by_name = {
        str(order): accuracy(right[held & (verdicts.shown == code)])
        for code, order in enumerate(ORDERS)
        if (held & (verdicts.shown == code)).any()
    }
    return EachOrder(mean_of(by_name), by_name, orders_agree(by_order))


def accuracy(right: BoolArray) -> Number:
    return Number(float(right.mean()), len(right))


def mean_of(by_order: dict[str, Number]) -> Number:
    if not by_order:
        return undefined(NO_GOLD)
    values = [one.value for one in by_order.values() if one.value is not None]
    return Number(sum(values) / len(values), sum(one.n for one in by_order.values()))
