"""Choices recoded as first and second shown instead of candidates."""

from dataclasses import replace
from typing import Final

import numpy as np

from evaluations.stats.coding import FLIP, MISSING, SWAPPED, IntArray
from evaluations.stats.judge_verdicts import ConsolidatedVerdicts, find_orders_seen
from evaluations.stats.votes import Votes

NO_ORDER: Final = "No comparison was shown to all compared raters in the same known order."


def find_common_order(item: IntArray, shown: IntArray, items: int) -> IntArray:
    """Per comparison the one known order in which everybody saw it, else MISSING."""
    seen = find_orders_seen(item, shown, items)
    order = seen.argmax(axis=1)
    return np.where((seen.sum(axis=1) == 1) & (order <= SWAPPED), order, MISSING)


def order_shown_to_judge(judge: ConsolidatedVerdicts) -> IntArray:
    """Per comparison the one known order in which the judge answered, else MISSING."""
    order = np.full(len(judge.choice), MISSING)
    several = np.zeros(len(order), dtype=bool)
    for shown, chosen in enumerate(judge.by_order):
        if chosen is not None:
            answered = chosen != MISSING
            several |= answered & (order != MISSING)
            order[answered] = shown
    return np.where(several | (order > SWAPPED), MISSING, order)


def recode_by_position(choice: IntArray, order: IntArray) -> IntArray:
    """Choices in terms of first and second shown; MISSING where the order is."""
    turned = np.where(order == SWAPPED, FLIP[choice], choice)
    return np.where((order == MISSING) | (choice == MISSING), MISSING, turned)


def recode_votes_by_position(votes: Votes, items: int) -> Votes:
    """The votes on comparisons that every voter saw in the same known order."""
    order = find_common_order(votes.item, votes.shown, items)[votes.item]
    return replace(votes, choice=recode_by_position(votes.choice, order)).where(order != MISSING)
