"""A poll: the votes on one aspect, item by item, and what follows from them for everyone who is held against them."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from evaluations.domain import SplitRule
from evaluations.stats.coding import CHOICES, IntArray
from evaluations.stats.contributions import Contributions, narrow
from evaluations.stats.majority import (
    MOST_CODES,
    Majority,
    code_weights,
    every_tally,
    first_of_the_leading,
    leading,
    majority,
    tally,
)
from evaluations.stats.turnout import Turnout
from evaluations.stats.votes import Votes


@dataclass(frozen=True)
class Poll:
    """``choice`` and ``cluster`` have one entry for each of the turnout; MISSING where nothing was said on this.

    Clusters are numbered from 0 among those that somebody voted in.
    """

    turnout: Turnout
    choice: IntArray
    cluster: IntArray

    @property
    def items(self) -> IntArray:
        return self.turnout.items

    @cached_property
    def cluster_of_items(self) -> IntArray:
        return self.cluster[self.turnout.starts]

    @cached_property
    def given(self) -> IntArray:
        """How many votes each item has on this aspect."""
        return np.asarray(self.tally.sum(axis=0))

    @cached_property
    def tally(self) -> IntArray:
        """How many votes each choice has on each item: choices × items."""
        return tally(self.turnout.unit, self.choice, len(self.items))

    @cached_property
    def each(self) -> "Poll":
        """One vote of each person on an item: the choice made more often where there are two, else a tie."""
        seats = self.turnout.seats
        if seats is self.turnout:
            return self
        chosen = majority(self.turnout.seat, self.choice, len(seats.item)).choice
        cluster = np.empty(len(seats.item), dtype=self.cluster.dtype)
        cluster[self.turnout.seat] = self.cluster
        return Poll(seats, chosen, cluster)

    @cached_property
    def most(self) -> int:
        """The most votes that a choice has on an item."""
        return int(self.tally.max(initial=0))

    @property
    def is_coded(self) -> bool:
        """Whether tallies are few enough to be counted by their codes."""
        return bool((self.most + 1) ** len(CHOICES) <= MOST_CODES)

    @cached_property
    def code(self) -> IntArray:
        """That of the tally of each item, `every_tally`."""
        added = [votes * weight for votes, weight in zip(self.tally, code_weights(self.most), strict=True)]
        return np.asarray(sum(added))

    def majority(self, rule: SplitRule) -> Majority:
        """One entry for each item."""
        if self.is_coded and rule is not SplitRule.FIRST:
            return leading(every_tally(self.most), rule).at(self.code)
        found = leading(self.tally, rule)
        if rule is SplitRule.FIRST:
            first = first_of_the_leading(self.turnout.unit, self.choice, self.tally)
            found.choice[found.split] = first[found.split]
        return found

    def majority_of_the_others(self, rule: SplitRule) -> Majority:
        """For each entry of ``each`` the majority of all votes of other people on its item."""
        if rule is SplitRule.FIRST:
            return self.first_of_the_others()
        if self.is_coded and self.each is self:
            own = np.array([*code_weights(self.most), 0])[self.choice]  # MISSING is the last place
            return leading(every_tally(self.most), rule).at(self.code[self.turnout.unit] - own)
        votes = self.tally[:, self.each.turnout.unit]
        votes -= self.own
        return leading(votes, rule)

    @property
    def own(self) -> IntArray:
        """How many votes each choice has from each person on an item: choices × entries of ``each``."""
        return tally(self.turnout.seat, self.choice, len(self.each.choice))

    def first_of_the_others(self) -> Majority:
        """The same where a split goes to the choice that was made first: every vote of every other is looked at."""
        one, other = self.turnout.pairs
        apart = self.turnout.rater[one] != self.turnout.rater[other]
        facing = np.concatenate([one[apart], other[apart]]), np.concatenate([other[apart], one[apart]])
        seat, vote = self.turnout.seat[facing[0]], facing[1]
        _, once = np.unique(seat * len(self.choice) + vote, return_index=True)
        # Sorted by seat and then by vote, which is the order in which votes on an item were cast.
        return majority(seat[once], self.choice[vote[once]], len(self.each.choice), SplitRule.FIRST)


def poll(votes: Votes, cluster: IntArray) -> Poll:
    """``cluster``: the cluster of every item."""
    found = votes.turnout
    in_order = Contributions(cluster[found.item], found.item, 1)
    return Poll(found, narrow(votes.choice[found.order]), in_order.numbered)
