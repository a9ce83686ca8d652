"""Votes of several people on the same comparisons."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from evaluations.stats.coding import CHOICES, MISSING, BoolArray, IntArray
from evaluations.stats.majority import majority
from evaluations.stats.turnout import Turnout, in_order, pairs_within, turnout


@dataclass(frozen=True)
class Votes:
    """Votes on one aspect in the order in which they were cast: the comparison's place, rater, order shown, choice.

    A choice is MISSING where the person said nothing on this aspect. ``known``: the turnout, where another aspect
    has found it already.
    """

    item: IntArray
    rater: IntArray
    shown: IntArray
    choice: IntArray
    known: Turnout | None = field(default=None, kw_only=True)

    def __len__(self) -> int:
        return int(np.count_nonzero(self.choice != MISSING))

    def where(self, kept: BoolArray) -> "Votes":
        if kept.all():
            return self
        return Votes(self.item[kept], self.rater[kept], self.shown[kept], self.choice[kept])

    def about(self, choice: IntArray) -> "Votes":
        """What the same people said of the same comparisons on another aspect."""
        return replace(self, choice=choice, known=self.turnout)

    @cached_property
    def turnout(self) -> Turnout:
        return self.known or turnout(self.item, self.rater)


def with_turnout_of(votes: Votes, others: Iterable[Votes]) -> Votes:
    """The same votes; their turnout is that of others, where the same people voted on the same items in the same order.

    It is found once then, which for a million votes is worth more than looking whether they are the same.
    """
    for other in others:
        if np.array_equal(votes.item, other.item) and np.array_equal(votes.rater, other.rater):
            return replace(votes, known=other.turnout)
    return votes


def each_choice_once(votes: Votes) -> Votes:
    """Each choice on an item counts once, however many made it: no majority outvotes another choice."""
    _, first = np.unique(votes.item * len(CHOICES) + votes.choice, return_index=True)
    kept = np.zeros(len(votes.item), dtype=bool)
    kept[first] = True
    return votes.where(kept & (votes.choice != MISSING))


def one_vote_each(votes: Votes) -> Votes:
    """A person who voted twice on a comparison counts once, with the choice made more often, else a tie."""
    seats, order = votes.turnout.seats, votes.turnout.order
    chosen = majority(votes.turnout.seat, votes.choice[order], len(seats.item)).choice
    return Votes(seats.item, seats.rater, votes.shown[seats.order], chosen).where(chosen != MISSING)


def pairs_on_an_item(item: IntArray) -> tuple[IntArray, IntArray]:
    """Every unordered pair of entries of the same item, as the places of the earlier and the later one."""
    order = in_order(item)
    one, other = pairs_within(item[order])
    return order[one], order[other]
