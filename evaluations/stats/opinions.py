"""What each person said of an item, beside what the others said of it."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from evaluations.domain import SplitRule
from evaluations.stats.coding import MISSING, BoolArray, IntArray
from evaluations.stats.consolidation import Choices
from evaluations.stats.contributions import FloatArray
from evaluations.stats.majority import leading
from evaluations.stats.polls import Poll


@dataclass(frozen=True)
class Opinions:
    """One entry for each person and item on which they said something; who voted there twice has one.

    ``kept``: the entries among those of ``poll.each``. ``item``: the place among the poll's. ``cast``: among the votes
    as they came, of the first one. ``others``: choices × entries, the votes of other people on the item.
    """

    poll: Poll
    kept: IntArray
    item: IntArray
    rater: IntArray
    cast: IntArray
    choice: IntArray
    cluster: IntArray
    others: IntArray

    def __len__(self) -> int:
        return len(self.kept)

    @cached_property
    def others_voted(self) -> BoolArray:
        return np.asarray(self.others.any(axis=0))

    @cached_property
    def alike(self) -> FloatArray:
        """The share of the other votes on the item that are the same; 0 where there are none."""
        same = self.others[self.choice, np.arange(len(self))]
        return np.asarray(same / np.maximum(self.others.sum(axis=0), 1))

    def majority_of_the_others(self, rule: SplitRule) -> IntArray:
        """MISSING where nobody else voted, and where a split is dropped."""
        if rule is SplitRule.FIRST:
            return self.poll.majority_of_the_others(rule).choice[self.kept].astype(np.int64)
        return leading(self.others, rule).choice.astype(np.int64)


def opinions(poll: Poll) -> Opinions:
    each = poll.each
    kept = np.flatnonzero(each.choice != MISSING)
    item = each.turnout.unit[kept]
    return Opinions(
        poll=poll,
        kept=kept,
        item=item,
        rater=each.turnout.rater[kept],
        cast=each.turnout.order[kept],
        choice=each.choice[kept].astype(np.int64),
        cluster=each.cluster[kept],
        others=poll.tally[:, item] - poll.own[:, kept],
    )


def held(judge: Choices, found: Opinions) -> tuple[BoolArray, BoolArray]:
    """Of each entry whether the judge chose the same, and whether it chose at all. ``judge``: by item of the poll."""
    judged = judge[found.item]
    return judged == found.choice, judged != MISSING
