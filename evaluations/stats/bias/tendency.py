"""How often a judge does something, and how often people do it on the same entries."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.stats.bias.counts import CountsByStratum
from evaluations.stats.bias.people import Judged, Met
from evaluations.stats.bias.shares import BOTH, DID, OF_ONE, ONE, Beside, beside, shares
from evaluations.stats.bias.sides import NO_SIDE, Sides, has_side
from evaluations.stats.bias.strata import Strata
from evaluations.stats.coding import MISSING, BoolArray
from evaluations.stats.numbers import Number, undefined

NO_VERDICT: Final = "The judge has no verdict here."
NOBODY: Final = "The judge has a verdict on nothing that people have one on."
NO_CHOICE: Final = "The judge chose a side on no such comparison."
NO_CHOICES: Final = "On no such comparison did both the judge and people choose a side."


@dataclass(frozen=True)
class Tendency:
    """``judge``: over all that it has a say on. ``majority``: beside the majority of people on each comparison.
    ``votes``: beside each single vote; a judge is one rater as well, and a majority goes further than its voters do.
    """

    judge: Number
    majority: Beside
    votes: Beside


def preference(favoured: Sides, of: Judged) -> Tendency:
    """P(the favoured side is chosen | a side is). ``favoured``: one for each item, MISSING where none is."""
    return Tendency(
        judge=preferring(of.strata, favoured, of.side)[0],
        majority=beside(both_preferring(of.majority.sided, favoured), NO_CHOICES)[0],
        votes=beside(both_preferring(of.votes.sided, favoured), NO_CHOICES)[0],
    )


def tie_rate(of: Judged) -> Tendency:
    """The share of verdicts that choose no side: ties, and both bad."""
    majority, votes = (beside(both_tying(met), NOBODY)[0] for met in (of.majority.all, of.votes.all))
    return Tendency(tying(of.strata, of.side)[0], majority, votes)


def unknown(why: str) -> Tendency:
    number = undefined(why)
    return Tendency(number, Beside(number, number, number), Beside(number, number, number))


def preferring(strata: Strata, favoured: Sides, judge: Sides) -> list[Number]:
    return did(strata, judge == favoured, (favoured != MISSING) & has_side(judge), NO_CHOICE)


def tying(strata: Strata, judge: Sides) -> list[Number]:
    return did(strata, judge == NO_SIDE, judge != MISSING, NO_VERDICT)


def both_preferring(sided: Met, favoured: Sides) -> CountsByStratum:
    of = favoured[sided.item]
    return both_did(sided, sided.judge == of, sided.people == of, of != MISSING)


def both_tying(met: Met) -> CountsByStratum:
    return both_did(met, met.judge == NO_SIDE, met.people == NO_SIDE, met.judge != MISSING)


def did(strata: Strata, it: BoolArray, of: BoolArray, empty: str) -> list[Number]:
    return shares(strata.counts(cell_of(it.view(np.int8), of), ONE), DID, OF_ONE, empty)


def both_did(met: Met, judge: BoolArray, people: BoolArray, of: BoolArray) -> CountsByStratum:
    return met.strata.counts(cell_of(judge.view(np.int8) + 2 * people.view(np.int8), of), BOTH)


def cell_of(cell: Sides, of: BoolArray) -> Sides:
    """The cell where the entry is one of those asked of, else MISSING."""
    found: Sides = (cell & -of.view(np.int8)) - (~of).view(np.int8)
    return found
