"""A judge's one verdict per comparison, for all comparisons at once: the equal of `domain.fold`."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.domain import FAILURE_STATES, CallState, FailedRule
from evaluations.stats.coding import CHOICES, MISSING, ORDERS, TIE, B, BoolArray, IntArray

# The code of a state of a call without a verdict is its place here; those that can still be
# answered stand last.
STATES: Final = (*FAILURE_STATES, CallState.PENDING, CallState.RUNNING, CallState.CANCELLED)


@dataclass(frozen=True)
class Verdicts:
    """One judge's verdicts on one aspect, one entry each: the comparison's place, order shown, sample, choice."""

    item: IntArray
    shown: IntArray
    sample: IntArray
    choice: IntArray
    inconsistent: BoolArray


@dataclass(frozen=True)
class Unanswered:
    """Calls of the judge that brought no verdict: the comparison's place, order shown, sample, state."""

    item: IntArray
    shown: IntArray
    sample: IntArray
    state: IntArray

    @property
    def failed(self) -> BoolArray:
        return self.state < len(FAILURE_STATES)

    def without(self, verdicts: Verdicts) -> "Unanswered":
        """Those of them that really lack a verdict on this aspect: imported verdicts stand aspect by aspect."""
        samples = int(max(self.sample.max(initial=0), verdicts.sample.max(initial=0))) + 1
        asked = (self.item * len(ORDERS) + self.shown) * samples + self.sample
        given = (verdicts.item * len(ORDERS) + verdicts.shown) * samples + verdicts.sample
        kept = ~np.isin(asked, given)
        return Unanswered(self.item[kept], self.shown[kept], self.sample[kept], self.state[kept])


@dataclass(frozen=True)
class Consolidated:
    """One entry per comparison. ``by_order`` is comparisons × orders; MISSING where there is no verdict."""

    choice: IntArray
    inconsistent: BoolArray
    incomplete: BoolArray
    by_order: IntArray


def consolidate(
    verdicts: Verdicts, unanswered: Unanswered, items: int, failed: FailedRule = FailedRule.EXCLUDE
) -> Consolidated:
    """Per order the plurality of its samples, then the orders together; an unanswered order makes it missing."""
    by_order = plurality_by_order(verdicts, items)
    answered = by_order != MISSING
    open_orders = orders_in(unanswered.item, unanswered.shown, items) & ~answered
    complete = answered.any(axis=1) & ~open_orders.any(axis=1)
    choice, differs = fold_orders(by_order)
    marked = np.zeros(items, dtype=bool)
    marked[verdicts.item[verdicts.inconsistent]] = True
    if failed is FailedRule.TIE:
        choice = np.where(complete, choice, np.where(only_failures(unanswered, open_orders), TIE, MISSING))
    else:
        choice = np.where(complete, choice, MISSING)
    incomplete = open_orders.any(axis=1)
    return Consolidated(choice, complete & (differs | marked), incomplete, by_order)


def plurality_by_order(verdicts: Verdicts, items: int) -> IntArray:
    """Per comparison and order the choice of most samples, a tie where no single one leads, else MISSING."""
    cell = verdicts.item * len(ORDERS) + verdicts.shown
    flat = np.bincount(cell * len(CHOICES) + verdicts.choice, minlength=items * len(ORDERS) * len(CHOICES))
    counts = flat.reshape(items, len(ORDERS), len(CHOICES))
    most = counts.max(axis=2)
    leading = (counts == most[:, :, None]).sum(axis=2)
    chosen = np.where(leading == 1, counts.argmax(axis=2), TIE)
    return np.where(most > 0, chosen, MISSING)


def fold_orders(by_order: IntArray) -> tuple[IntArray, BoolArray]:
    """The orders together: equal stays, else a tie, inconsistent where any order chose a side."""
    answered = by_order != MISSING
    least = np.where(answered, by_order, len(CHOICES)).min(axis=1)
    most = by_order.max(axis=1)
    equal = least == most
    return np.where(equal, most, TIE), ~equal & (least <= B)


def orders_in(item: IntArray, shown: IntArray, items: int) -> BoolArray:
    present = np.zeros((items, len(ORDERS)), dtype=bool)
    present[item, shown] = True
    return present


def only_failures(unanswered: Unanswered, open_orders: BoolArray) -> BoolArray:
    """Where every order without an answer has failed for good and nothing waits to be asked again."""
    items = len(open_orders)
    waiting = orders_in(unanswered.item[~unanswered.failed], unanswered.shown[~unanswered.failed], items)
    return np.logical_and(open_orders.any(axis=1), ~(open_orders & waiting).any(axis=1))
