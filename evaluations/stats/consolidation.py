"""A judge's one verdict per comparison, for all comparisons at once: the equal of `domain.fold`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from evaluations.domain import FAILURE_STATES, CallState, FailedRule
from evaluations.stats.coding import AS_STORED, CHOICES, FOLDED, MISSING, ORDERS, SWAPPED, TIE, B, BoolArray, IntArray

# The code of a state of a call without a verdict is its place here; those that can still be
# answered stand last.
STATES: Final = (*FAILURE_STATES, CallState.PENDING, CallState.RUNNING, CallState.CANCELLED)

Choices = npt.NDArray[np.int8]


@dataclass(frozen=True)
class Answers:
    """What a judge said on one aspect in one order: the comparison's place and the choice, one entry for each sample.

    ``is_single``: no comparison has two entries.
    """

    shown: int
    item: IntArray
    choice: Choices
    is_single: bool = False


@dataclass(frozen=True)
class Verdicts:
    """One judge's verdicts on one aspect, each order once. ``marked``: comparisons said to be inconsistent."""

    answers: tuple[Answers, ...] = ()
    marked: IntArray | None = None

    @property
    def n(self) -> int:
        return sum(len(one.item) for one in self.answers)


@dataclass(frozen=True)
class Unanswered:
    """Calls of the judge that brought no verdict: the comparison's place, order shown, state."""

    item: IntArray
    shown: IntArray
    state: IntArray

    @property
    def failed(self) -> BoolArray:
        return self.state < len(FAILURE_STATES)


@dataclass(frozen=True)
class Consolidated:
    """One entry per comparison. ``by_order``: for each of ORDERS that was answered, MISSING where there is no verdict.

    ``asked``: whether there is a verdict or a call without one.
    """

    choice: Choices
    inconsistent: BoolArray
    incomplete: BoolArray
    asked: BoolArray
    by_order: tuple[Choices | None, ...]

    @property
    def as_stored(self) -> Choices:
        return self.in_order(AS_STORED)

    @property
    def swapped(self) -> Choices:
        return self.in_order(SWAPPED)

    def in_order(self, shown: int) -> Choices:
        """The choice in one order, MISSING everywhere where it was never answered."""
        found = self.by_order[shown]
        return none_chosen(len(self.choice)) if found is None else found


def none_chosen(items: int) -> Choices:
    return np.full(items, MISSING, dtype=np.int8)


def with_failures(verdicts: Verdicts, unanswered: Unanswered) -> Verdicts:
    """Every failed call as a tie among the verdicts; of scores, whose calls are about one side, one each comparison."""
    known = {one.shown: one for one in verdicts.answers}
    answers = dict(known)
    for shown in np.unique(unanswered.shown[unanswered.failed]).tolist():
        item = unanswered.item[unanswered.failed & (unanswered.shown == shown)]
        before = known.get(shown, Answers(shown, item[:0], none_chosen(0)))
        if shown == FOLDED:
            item = np.setdiff1d(item, before.item)
        choice = np.concatenate([before.choice, np.full(len(item), TIE, dtype=np.int8)])
        answers[shown] = Answers(shown, np.concatenate([before.item, item]), choice)
    return Verdicts(tuple(answers[shown] for shown in sorted(answers)), verdicts.marked)


def consolidate(
    verdicts: Verdicts, unanswered: Unanswered, items: int, failed: FailedRule = FailedRule.EXCLUDE
) -> Consolidated:
    """Per order the plurality of its samples, then the orders together; an unanswered order makes it missing."""
    by_order: list[Choices | None] = [None] * len(ORDERS)
    for one in verdicts.answers:
        by_order[one.shown] = plurality(one, items)
    choice, inconsistent = fold_orders([one for one in by_order if one is not None], items)
    if verdicts.marked is not None:
        inconsistent[verdicts.marked] = True
    asked = choice != MISSING
    asked[unanswered.item] = True
    lacking = without_answer(unanswered, by_order)
    incomplete, waiting = np.zeros((2, items), dtype=bool)
    incomplete[unanswered.item[lacking]] = True
    waiting[unanswered.item[lacking & ~unanswered.failed]] = True
    choice[incomplete] = MISSING
    inconsistent &= ~incomplete
    if failed is FailedRule.TIE:
        choice[incomplete & ~waiting] = TIE
        failed_tie(by_order, unanswered, lacking & unanswered.failed, items)
    return Consolidated(choice, inconsistent, incomplete, asked, tuple(by_order))


def failed_tie(by_order: list[Choices | None], unanswered: Unanswered, failed: BoolArray, items: int) -> None:
    """In each order a tie where its calls failed. ``failed``: which of the calls did, in an order without an answer."""
    for shown in np.unique(unanswered.shown[failed]).tolist():
        chosen = by_order[shown]
        by_order[shown] = chosen = none_chosen(items) if chosen is None else chosen
        chosen[unanswered.item[failed & (unanswered.shown == shown)]] = TIE


def plurality(answers: Answers, items: int) -> Choices:
    """Per comparison the choice of most samples, a tie where no single one leads, else MISSING."""
    if answers.is_single:
        chosen = none_chosen(items)
        chosen[answers.item] = answers.choice
        return chosen
    cell = answers.item * len(CHOICES) + answers.choice
    counts = np.bincount(cell, minlength=items * len(CHOICES)).reshape(items, len(CHOICES))
    most = counts.max(axis=1)
    leading = (counts == most[:, None]).sum(axis=1)
    found = np.where(leading == 1, counts.argmax(axis=1), TIE)
    return np.where(most > 0, found, MISSING).astype(np.int8)


def fold_orders(orders: Sequence[Choices], items: int) -> tuple[Choices, BoolArray]:
    """The orders together: equal stays, else a tie, inconsistent where any order chose a side."""
    choice, inconsistent = none_chosen(items), np.zeros(items, dtype=bool)
    for other in orders:
        differs = (choice != other) & (choice != MISSING) & (other != MISSING)
        inconsistent |= differs & (np.minimum(choice, other) <= B)
        choice = np.where(choice == MISSING, other, choice)
        choice[differs] = TIE
    return choice, inconsistent


def without_answer(unanswered: Unanswered, by_order: Sequence[Choices | None]) -> BoolArray:
    """Which of the calls are in an order in which the comparison has no answer at all."""
    lacking = np.ones(len(unanswered.item), dtype=bool)
    for shown, chosen in enumerate(by_order):
        if chosen is not None:
            here = unanswered.shown == shown
            lacking[here] = chosen[unanswered.item[here]] == MISSING
    return lacking


def orders_in(item: IntArray, shown: IntArray, items: int) -> BoolArray:
    """Comparisons × orders: whether somebody saw it so."""
    present = np.zeros((items, len(ORDERS)), dtype=bool)
    present[item, shown] = True
    return present
