"""The majority of votes: the choice made most often, where one choice alone is."""

from dataclasses import dataclass

import numpy as np

from evaluations.domain import SplitRule
from evaluations.stats.coding import MISSING, TIE, BoolArray, IntArray, counts_by_unit


@dataclass(frozen=True)
class Majority:
    """One entry per unit: MISSING where nobody voted, and where a split was dropped."""

    choice: IntArray
    split: BoolArray


def majority(unit: IntArray, choice: IntArray, units: int, rule: SplitRule = SplitRule.TIE) -> Majority:
    """The majority in each unit of votes that stand in the order in which they were cast."""
    counts = counts_by_unit(unit, choice, units)
    most = counts.max(axis=1, initial=0)
    leading = (counts == most[:, None]) & (most > 0)[:, None]
    split = leading.sum(axis=1) > 1
    chosen = np.where(most > 0, counts.argmax(axis=1), MISSING)
    if rule is SplitRule.FIRST:
        chosen[split] = first_of_the_leading(unit, choice, leading)[split]
    else:
        chosen[split] = TIE if rule is SplitRule.TIE else MISSING
    return Majority(chosen, split)


def first_of_the_leading(unit: IntArray, choice: IntArray, leading: BoolArray) -> IntArray:
    """Per unit the leading choice whose first vote came earliest."""
    counted = leading[unit, choice]
    found, where = np.unique(unit[counted], return_index=True)
    first = np.full(len(leading), MISSING)
    first[found] = choice[counted][where]
    return first
