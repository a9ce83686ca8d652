"""Agreement of two raters, from the square table of what they chose on the same items.

``table[i, j]`` counts the items on which the first chose i and the second j. All sums are whole
numbers until the last division, so that perfect and chance agreement come out exactly.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.stats.coding import IntArray
from evaluations.stats.numbers import Number, share, undefined

SIDES: Final = 2  # without ties only A and B are left

NOTHING_SHARED: Final = "No comparison has a choice on both sides."
CONSTANT: Final = "Both sides made the same one choice throughout: agreement by chance would be complete as well."
ONE_CHOICE: Final = "With a single choice on offer there is nothing to agree on."
NO_RATERS: Final = (
    "Pooled pairs of votes have no first and second rater: see Scott's pi here, and Cohen's kappa for each two "
    "people under pairs."
)


@dataclass(frozen=True)
class Agreement:
    agree: int
    n: int
    agreement: Number
    cohen_kappa: Number
    scott_pi: Number
    gwet_ac1: Number


@dataclass(frozen=True)
class Block:
    """With ties (S1) and without (S2); ``dropped`` is the share of items that S2 leaves out."""

    with_ties: Agreement
    without_ties: Agreement
    dropped: Number


@dataclass(frozen=True)
class MajorityBlock(Block):
    """Held against a majority; ``n_split`` counts the items on which no single choice led."""

    n_split: int


@dataclass(frozen=True)
class PooledBlock(Block):
    """Every pair of votes on the same item; ``self_pairs`` counts those of one person with itself."""

    self_pairs: int


def raw_agreement(table: IntArray, empty: str = NOTHING_SHARED) -> Number:
    """The share of items on which both chose the same."""
    return share(int(np.trace(table)), int(table.sum()), empty)


def cohen_kappa(table: IntArray, empty: str = NOTHING_SHARED) -> Number:
    """(po − pe) ÷ (1 − pe), chance from each rater's own choices (Cohen 1960)."""
    n = int(table.sum())
    if not n:
        return undefined(empty)
    by_chance = int(table.sum(axis=1) @ table.sum(axis=0))
    if by_chance == n * n:
        return undefined(CONSTANT, n)
    return Number((n * int(np.trace(table)) - by_chance) / (n * n - by_chance), n)


def scott_pi(table: IntArray, empty: str = NOTHING_SHARED) -> Number:
    """(po − pe) ÷ (1 − pe), chance from the choices of both together (Scott 1955)."""
    n = int(table.sum())
    if not n:
        return undefined(empty)
    both = table.sum(axis=0) + table.sum(axis=1)
    by_chance = int(both @ both)
    if by_chance == 4 * n * n:
        return undefined(CONSTANT, n)
    return Number((4 * n * int(np.trace(table)) - by_chance) / (4 * n * n - by_chance), n)


def gwet_ac1(table: IntArray, q: int, empty: str = NOTHING_SHARED) -> Number:
    """Gwet's AC1 of two raters (Gwet 2008): chance = Σ π(1 − π) ÷ (q − 1), q the choices on offer."""
    n = int(table.sum())
    if not n:
        return undefined(empty)
    if q < SIDES:
        return undefined(ONE_CHOICE, n)
    prevalence = (table.sum(axis=0) + table.sum(axis=1)) / (2 * n)
    by_chance = float((prevalence * (1 - prevalence)).sum()) / (q - 1)
    return Number((int(np.trace(table)) / n - by_chance) / (1 - by_chance), n)


def agreement(table: IntArray, q: int, *, empty: str = NOTHING_SHARED, raters_known: bool = True) -> Agreement:
    """Every number of one table. ``q`` counts the choices on offer; one that occurs was on offer."""
    occurring = int(np.count_nonzero(table.sum(axis=0) + table.sum(axis=1)))
    n = int(table.sum())
    return Agreement(
        agree=int(np.trace(table)),
        n=n,
        agreement=raw_agreement(table, empty),
        cohen_kappa=cohen_kappa(table, empty) if raters_known else undefined(NO_RATERS, n),
        scott_pi=scott_pi(table, empty),
        gwet_ac1=gwet_ac1(table, max(q, occurring), empty),
    )


def without_ties(table: IntArray) -> IntArray:
    """S2: the items on which both sides chose a side. Tie and both_bad are no side."""
    return table[:SIDES, :SIDES]


def block(table: IntArray, q: int, *, empty: str = NOTHING_SHARED, raters_known: bool = True) -> Block:
    sides = without_ties(table)
    all_ties = "No comparison is left once ties are dropped." if table.any() else empty
    return Block(
        with_ties=agreement(table, q, empty=empty, raters_known=raters_known),
        without_ties=agreement(sides, SIDES, empty=all_ties, raters_known=raters_known),
        dropped=share(int(table.sum() - sides.sum()), int(table.sum()), empty),
    )
