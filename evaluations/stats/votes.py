"""Votes of several people on the same comparisons, and the pairs that they make."""

from dataclasses import dataclass

import numpy as np

from evaluations.domain import SplitRule
from evaluations.stats.coding import BoolArray, IntArray
from evaluations.stats.majority import majority


@dataclass(frozen=True)
class Votes:
    """Votes on one aspect in the order in which they were cast: the comparison's place, rater, order shown, choice."""

    item: IntArray
    rater: IntArray
    shown: IntArray
    choice: IntArray

    def where(self, kept: BoolArray) -> "Votes":
        return Votes(self.item[kept], self.rater[kept], self.shown[kept], self.choice[kept])


def one_vote_each(votes: Votes) -> Votes:
    """A person who voted twice on a comparison counts once, with the choice made more often, else a tie."""
    people = int(votes.rater.max(initial=0)) + 1
    units, first, unit = np.unique(votes.item * people + votes.rater, return_index=True, return_inverse=True)
    chosen = majority(unit, votes.choice, len(units), SplitRule.TIE).choice
    return Votes(votes.item[first], votes.rater[first], votes.shown[first], chosen)


def pairs_on_an_item(item: IntArray) -> tuple[IntArray, IntArray]:
    """Every unordered pair of entries of the same item, as the places of the earlier and the later one."""
    order = np.argsort(item, kind="stable")
    by_item = item[order]
    earlier, later = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    apart = 1
    while (same := by_item[apart:] == by_item[:-apart]).any():
        earlier.append(order[:-apart][same])
        later.append(order[apart:][same])
        apart += 1
    return np.concatenate(earlier), np.concatenate(later)


def majority_of_the_others(votes: Votes, each: Votes, rule: SplitRule) -> tuple[IntArray, BoolArray]:
    """For every entry of ``each`` (one vote each) the majority of all votes of other people, and where it is split."""
    joined = np.concatenate([each.item, votes.item])
    one, other = pairs_on_an_item(joined)
    # Of the pairs only those are wanted that hold a person against a vote of someone else.
    wanted = (one < len(each.item)) & (other >= len(each.item))
    unit, vote = one[wanted], other[wanted] - len(each.item)
    others = each.rater[unit] != votes.rater[vote]
    unit, vote = unit[others], vote[others]
    cast = np.argsort(vote, kind="stable")
    found = majority(unit[cast], votes.choice[vote[cast]], len(each.item), rule)
    return found.choice, found.split
