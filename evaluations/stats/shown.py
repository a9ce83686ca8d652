"""The other coding: sides as first and second shown instead of candidates."""

from dataclasses import replace
from typing import Final

import numpy as np

from evaluations.stats.coding import FLIP, MISSING, SWAPPED, IntArray
from evaluations.stats.consolidation import orders_in
from evaluations.stats.votes import Votes

NO_ORDER: Final = "No comparison was shown to everyone compared here in the same known order."


def common_order(item: IntArray, shown: IntArray, items: int) -> IntArray:
    """Per comparison the one known order in which everybody saw it, else MISSING."""
    seen = orders_in(item, shown, items)
    order = seen.argmax(axis=1)
    return np.where((seen.sum(axis=1) == 1) & (order <= SWAPPED), order, MISSING)


def by_place(choice: IntArray, order: IntArray) -> IntArray:
    """Choices in terms of first and second shown; MISSING where the order is."""
    turned = np.where(order == SWAPPED, FLIP[choice], choice)
    return np.where((order == MISSING) | (choice == MISSING), MISSING, turned)


def votes_by_place(votes: Votes, items: int) -> Votes:
    """The votes on comparisons that every voter saw in the same known order."""
    order = common_order(votes.item, votes.shown, items)[votes.item]
    return replace(votes, choice=by_place(votes.choice, order)).where(order != MISSING)
