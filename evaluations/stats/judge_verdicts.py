"""A judge's one verdict per comparison, from orders and samples, from scores or from a panel."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from evaluations.domain.choices import PACKED_ORDERS
from evaluations.domain.judges import FAILURE_STATES, CallState
from evaluations.domain.reports import FailedRule
from evaluations.stats.coding import (
    AS_STORED,
    CHOICES,
    FOLDED,
    MISSING,
    SWAPPED,
    TIE,
    A,
    B,
    BoolArray,
    FloatArray,
    IntArray,
)
from evaluations.stats.estimates import drop_rounding_noise

# The code of the state of a call without a verdict is its position here; states that can still change come last.
STATES: Final = (*FAILURE_STATES, CallState.PENDING, CallState.RUNNING, CallState.CANCELLED)
Choices = npt.NDArray[np.int8]


@dataclass(frozen=True)
class JudgeAnswers:
    """The choices of a judge on one aspect in one order: comparison and choice of each sample.

    ``is_single``: whether no comparison has two entries.
    """

    shown: int
    item: IntArray
    choice: Choices
    is_single: bool = False


@dataclass(frozen=True)
class JudgeVerdicts:
    """A judge's verdicts on one aspect by order. ``marked``: comparisons that a file marks inconsistent."""

    answers: tuple[JudgeAnswers, ...] = ()
    marked: IntArray | None = None

    @property
    def n(self) -> int:
        return sum(len(answer.item) for answer in self.answers)


@dataclass(frozen=True)
class UnansweredCalls:
    """Calls of the judge without a verdict: comparison, order shown, state."""

    item: IntArray
    shown: IntArray
    state: IntArray

    @property
    def failed(self) -> BoolArray:
        return self.state < len(FAILURE_STATES)


@dataclass(frozen=True)
class ConsolidatedVerdicts:
    """A judge's one verdict on each comparison; every array has one entry for each.

    ``choice``: MISSING where there is none. ``incomplete``: whether an order was asked and has no answer. ``failed``:
    whether it is incomplete and no call that it lacks is waiting. ``asked``: whether there is a verdict or a call
    without one. ``by_order``: of each order in PACKED_ORDERS, the choices in it, or None where it was never answered.
    """

    choice: Choices
    inconsistent: BoolArray
    incomplete: BoolArray
    failed: BoolArray
    asked: BoolArray
    by_order: tuple[Choices | None, ...]

    @property
    def as_stored(self) -> Choices:
        return self.in_order(AS_STORED)

    @property
    def swapped(self) -> Choices:
        return self.in_order(SWAPPED)

    def in_order(self, shown: int) -> Choices:
        """The choices in one order; all MISSING where it was never answered."""
        choices = self.by_order[shown]
        return no_choices(len(self.choice)) if choices is None else choices


def no_choices(items: int) -> Choices:
    return np.full(items, MISSING, dtype=np.int8)


def count_failures_as_ties(verdicts: JudgeVerdicts, unanswered: UnansweredCalls) -> JudgeVerdicts:
    """The verdicts with a tie for every failed call; for scores, whose calls are about one side, one per comparison."""
    by_order = {answer.shown: answer for answer in verdicts.answers}
    answers = dict(by_order)
    for shown in np.unique(unanswered.shown[unanswered.failed]).tolist():
        item = unanswered.item[unanswered.failed & (unanswered.shown == shown)]
        before = by_order.get(shown, JudgeAnswers(shown, item[:0], no_choices(0)))
        if shown == FOLDED:
            item = np.setdiff1d(item, before.item)
        choice = np.concatenate([before.choice, np.full(len(item), TIE, dtype=np.int8)])
        answers[shown] = JudgeAnswers(shown, np.concatenate([before.item, item]), choice)
    return JudgeVerdicts(tuple(answers[shown] for shown in sorted(answers)), verdicts.marked)


def consolidate_verdicts(
    verdicts: JudgeVerdicts, unanswered: UnansweredCalls, items: int, failed: FailedRule = FailedRule.EXCLUDE
) -> ConsolidatedVerdicts:
    """One verdict per comparison: the plurality of samples per order, orders combined; missing if one is unanswered."""
    by_order: list[Choices | None] = [None] * len(PACKED_ORDERS)
    for answer in verdicts.answers:
        by_order[answer.shown] = plurality_of_samples(answer, items)
    choice, inconsistent = combine_orders([choices for choices in by_order if choices is not None], items)
    if verdicts.marked is not None:
        inconsistent[verdicts.marked] = True
    asked = choice != MISSING
    asked[unanswered.item] = True
    in_unanswered_order = is_in_unanswered_order(unanswered, by_order)
    incomplete, waiting = np.zeros((2, items), dtype=bool)
    incomplete[unanswered.item[in_unanswered_order]] = True
    waiting[unanswered.item[in_unanswered_order & ~unanswered.failed]] = True
    choice[incomplete] = MISSING
    inconsistent &= ~incomplete
    if failed is FailedRule.TIE:
        choice[incomplete & ~waiting] = TIE
        fill_failures_with_ties(by_order, unanswered, in_unanswered_order & unanswered.failed, items)
    return ConsolidatedVerdicts(choice, inconsistent, incomplete, incomplete & ~waiting, asked, tuple(by_order))


def fill_failures_with_ties(
    by_order: list[Choices | None], unanswered: UnansweredCalls, failed: BoolArray, items: int
) -> None:
    """Write a tie in each order whose calls failed. ``failed``: which calls did, in an order without an answer."""
    for shown in np.unique(unanswered.shown[failed]).tolist():
        chosen = by_order[shown]
        by_order[shown] = chosen = no_choices(items) if chosen is None else chosen
        chosen[unanswered.item[failed & (unanswered.shown == shown)]] = TIE


def plurality_of_samples(answers: JudgeAnswers, items: int) -> Choices:
    """Per comparison the choice of most samples, a tie where several lead, MISSING without samples."""
    if answers.is_single:
        chosen = no_choices(items)
        chosen[answers.item] = answers.choice
        return chosen
    cell = answers.item * CHOICES + answers.choice
    counts = np.bincount(cell, minlength=items * CHOICES).reshape(items, CHOICES)
    most = counts.max(axis=1)
    leading = (counts == most[:, None]).sum(axis=1)
    plurality = np.where(leading == 1, counts.argmax(axis=1), TIE)
    return np.where(most > 0, plurality, MISSING).astype(np.int8)


def combine_orders(orders: Sequence[Choices], items: int) -> tuple[Choices, BoolArray]:
    """Orders combined: equal choices stay, others make a tie, which is inconsistent where an order chose a side."""
    choice, inconsistent = no_choices(items), np.zeros(items, dtype=bool)
    for other in orders:
        differs = (choice != other) & (choice != MISSING) & (other != MISSING)
        inconsistent |= differs & (np.minimum(choice, other) <= B)
        choice = np.where(choice == MISSING, other, choice)
        choice[differs] = TIE
    return choice, inconsistent


def is_in_unanswered_order(unanswered: UnansweredCalls, by_order: Sequence[Choices | None]) -> BoolArray:
    """Whether each call is in an order in which its comparison has no answer."""
    unanswered_order = np.ones(len(unanswered.item), dtype=bool)
    for shown, chosen in enumerate(by_order):
        if chosen is not None:
            in_order = unanswered.shown == shown
            unanswered_order[in_order] = chosen[unanswered.item[in_order]] == MISSING
    return unanswered_order


def find_orders_seen(item: IntArray, shown: IntArray, items: int) -> BoolArray:
    """Whether each comparison was shown in each order: comparisons × orders."""
    present = np.zeros((items, len(PACKED_ORDERS)), dtype=bool)
    present[item, shown] = True
    return present


MIN_COVERED: Final = 95  # percent

PARTLY_JUDGED: Final = (
    "The judge has a verdict on {} of {} comparisons. Corrected win rates and rankings need {}% of all of them, or of "
    "a random selection."
)


@dataclass(frozen=True)
class JudgeCoverage:
    """How many comparisons a judge has a verdict on.

    ``selected``: how many it was asked to judge: all, or a random selection. ``why``: why there is no corrected win
    rate and no ranking; None where coverage suffices.
    """

    judged: int
    selected: int
    comparisons: int
    why: str | None


def selection_mask(own: ConsolidatedVerdicts, random_order: IntArray | None) -> BoolArray:
    """The comparisons that the judge was asked to judge.

    These are the first ones in random order, if it was asked about exactly those; otherwise all. ``random_order``: the
    number of each comparison in the random order of review; None for imported judges, whose selection is unknown.
    """
    if random_order is not None and own.asked.any() and not own.asked.all():
        in_order = own.asked[np.argsort(random_order, kind="stable")]
        if in_order[: int(in_order.sum())].all():
            return own.asked
    return np.ones_like(own.asked)


def judge_coverage(choice: IntArray, selected: BoolArray) -> JudgeCoverage:
    """A judge's coverage. ``choice``: its verdict on each comparison, or MISSING; ``selected``: what it was asked."""
    judged = int(((choice != MISSING) & selected).sum())
    why = why_coverage_too_low(judged, int(selected.sum()))
    return JudgeCoverage(judged=judged, selected=int(selected.sum()), comparisons=len(choice), why=why)


def why_coverage_too_low(judged: int, selected: int) -> str | None:
    """The reason why verdicts on part of the selection are not extrapolated, or None."""
    if 100 * judged >= MIN_COVERED * selected:
        return None
    return PARTLY_JUDGED.format(f"{judged:,}", f"{selected:,}", MIN_COVERED)


@dataclass(frozen=True)
class Derivation:
    """The source of derived choices: ``scores`` with a margin, or a ``panel`` of judges."""

    source: str
    margin: float | None = None
    judges: tuple[str, ...] = ()
    n_split: int | None = None


def mean_by_unit(unit: IntArray, value: FloatArray, units: int) -> FloatArray:
    """The mean value per unit; NaN where there is none."""
    count = np.bincount(unit, minlength=units)
    total = np.bincount(unit, weights=value, minlength=units)
    return drop_rounding_noise(np.where(count > 0, total / np.maximum(count, 1), np.nan))


def verdicts_from_scores(a: FloatArray, b: FloatArray, margin: float) -> JudgeVerdicts:
    """Per comparison the side with the higher mean score, a tie within the margin; none where either is missing.

    ``a`` and ``b``: mean scores of both sides by comparison, NaN where missing.
    """
    (item,) = np.nonzero(~np.isnan(a) & ~np.isnan(b))
    choice = choices_from_scores(a[item], b[item], margin).astype(np.int8)
    # Without an order, so that position statistics ignore it.
    return JudgeVerdicts((JudgeAnswers(FOLDED, item, choice, is_single=True),))


def choices_from_scores(a: FloatArray, b: FloatArray, margin: float | FloatArray) -> IntArray:
    """Codes of choices from pairs of scores that are both present."""
    apart = drop_rounding_noise(a - b)  # 0.3 - 0.2 is not to be more than 0.1
    return np.where(np.abs(apart) <= margin, TIE, np.where(apart > 0, A, B))


def panel_verdicts(members: Mapping[str, ConsolidatedVerdicts], items: int) -> tuple[ConsolidatedVerdicts, Derivation]:
    """The choice of more than half of the judges that have one, else a tie; none where fewer than half of them have.

    A comparison is incomplete where every judge was asked about it and fewer than half could answer.
    """
    choices = np.array([member.choice for member in members.values()])
    votes = np.array([(choices == code).sum(axis=0) for code in range(CHOICES)])
    answered = votes.sum(axis=0)
    has_choice = (answered > 0) & (2 * answered >= len(members))
    agreed = 2 * votes.max(axis=0) > answered
    choice = np.where(has_choice, np.where(agreed, votes.argmax(axis=0), TIE), MISSING).astype(np.int8)
    asked = np.logical_and.reduce([member.asked for member in members.values()])
    incomplete = asked & ~has_choice & np.logical_or.reduce([member.incomplete for member in members.values()])
    own = ConsolidatedVerdicts(
        choice, np.zeros(items, dtype=bool), incomplete, incomplete, asked, by_order=(None,) * len(PACKED_ORDERS)
    )
    return own, Derivation("panel", judges=tuple(members), n_split=int((has_choice & ~agreed).sum()))
