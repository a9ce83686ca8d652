"""The majority of votes: the choice made most often, where there is a single one."""

from collections.abc import Collection
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from evaluations.domain.reports import SplitRule
from evaluations.stats.coding import CHOICES, MISSING, TIE, BoolArray, IntArray

MAX_CODES: Final = 2**16  # of tallies: up to fifteen votes for a choice


@dataclass(frozen=True)
class Majority:
    """The majority by unit: MISSING without votes, and where a split was dropped."""

    choice: IntArray
    split: BoolArray

    def at(self, positions: IntArray) -> "Majority":
        return Majority(self.choice[positions], self.split[positions])


def effective_split_rule(rule: SplitRule, offered: Collection[int]) -> SplitRule:
    """A split majority cannot count as a tie where the rubric offers none: it is dropped.

    Every coefficient of a block is then of the same items, and of the choices that were offered.
    """
    return SplitRule.DROP if rule is SplitRule.TIE and TIE not in offered else rule


def majority_of_votes(unit: IntArray, choice: IntArray, units: int, rule: SplitRule = SplitRule.TIE) -> Majority:
    """The majority in each unit; votes are in the order in which they were cast, MISSING is no vote."""
    votes = tally_votes(unit, choice, units)
    majority = leading_choice(votes, rule)
    if rule is SplitRule.FIRST:
        majority.choice[majority.split] = earliest_leading_choice(unit, choice, votes)[majority.split]
    return majority


def tally_votes(unit: IntArray, choice: IntArray, units: int) -> IntArray:
    """How many votes each choice has in each unit: choices × units."""
    is_vote_cast = choice != MISSING
    if not is_vote_cast.all():
        unit, choice = unit[is_vote_cast], choice[is_vote_cast]
    tally = np.empty((CHOICES, units), dtype=np.int32)
    for code, votes in enumerate(tally):
        votes[:] = np.bincount(unit[choice == code], minlength=units)
    return tally


def leading_choice(votes: IntArray, rule: SplitRule) -> Majority:
    """The majority of votes counted by choice and unit; a split is left MISSING by every rule but that of ties."""
    most = votes.max(axis=0)
    is_leading = votes == most
    split = (is_leading.sum(axis=0, dtype=np.int8) > 1) & (most > 0)
    chosen = np.zeros(len(most), dtype=np.int8)
    for code, leading_here in enumerate(is_leading):
        chosen += leading_here * np.int8(code)  # a sum of one, but for splits
    chosen[most == 0] = MISSING
    chosen[split] = TIE if rule is SplitRule.TIE else MISSING
    return Majority(chosen, split)


@lru_cache(maxsize=4)
def enumerate_tallies(most: int) -> IntArray:
    """All tallies of up to ``most`` votes for each choice, indexed by code: choices × codes."""
    codes = np.arange((most + 1) ** CHOICES)
    return np.stack([codes // weight % (most + 1) for weight in tally_code_weights(most)])


def tally_code_weights(most: int) -> list[int]:
    """The weight of a vote for each choice in the code of a tally."""
    return [(most + 1) ** code for code in range(CHOICES)]


def earliest_leading_choice(unit: IntArray, choice: IntArray, votes: IntArray) -> IntArray:
    """Per unit the leading choice whose first vote came earliest."""
    is_leading = votes == votes.max(axis=0)
    counted = (choice != MISSING) & is_leading[choice, unit]
    units_found, where = np.unique(unit[counted], return_index=True)
    first = np.full(votes.shape[1], MISSING)
    first[units_found] = choice[counted][where]
    return first
