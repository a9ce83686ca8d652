"""What seeing the judge does to people: between reviews drawn to see it or not, and after its reveal."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.stats.coding import MISSING, IntArray
from evaluations.stats.numbers import Number, share, undefined
from evaluations.stats.votes import Votes

NOT_DRAWN: Final = (
    "Whether the judge was seen first was not drawn at random here: what people changed after the reveal is no "
    "effect of the judge alone."
)
EMPTY_ARM: Final = "No vote of this kind on a comparison that the judge has a verdict on."


@dataclass(frozen=True)
class Anchoring:
    """Agreement of single votes with the shown judge where blind or shown was drawn for each comparison.

    ``difference``: shown − blind, by what was drawn and not by what was seen (intention to treat).
    """

    blind: Number
    shown: Number
    difference: Number


@dataclass(frozen=True)
class AfterReveal:
    """Reviews that were blind first and then saw the judge: how many of the final choices differ from the first.

    ``to_judge`` of them are now what the judge chose; ``away_from_judge`` were its choice before.
    """

    changed: Number
    to_judge: int
    away_from_judge: int


@dataclass(frozen=True)
class Confirmed:
    """First and final choice of the same review on one aspect, by the comparison's place."""

    item: IntArray
    first: IntArray
    final: IntArray


@dataclass(frozen=True)
class Seeing:
    """What there is of the reviews that were shown one judge: votes for which chance decided, blind or shown."""

    blind: Votes
    shown: Votes
    confirmed: Confirmed


def anchoring(choice: IntArray, blind: Votes, shown: Votes) -> Anchoring:
    """``choice``: the judge's one verdict on each comparison, MISSING where it has none."""
    if not len(blind.item) and not len(shown.item):
        return Anchoring(undefined(NOT_DRAWN), undefined(NOT_DRAWN), undefined(NOT_DRAWN))
    arms = [agreement(choice, votes) for votes in (blind, shown)]
    return Anchoring(arms[0], arms[1], difference(arms[0], arms[1]))


def agreement(choice: IntArray, votes: Votes) -> Number:
    judged = choice[votes.item]
    held = judged != MISSING
    return share(int((judged == votes.choice)[held].sum()), int(held.sum()), EMPTY_ARM)


def difference(blind: Number, shown: Number) -> Number:
    n = blind.n + shown.n
    if blind.value is None or shown.value is None:
        return undefined(EMPTY_ARM, n)
    return Number(shown.value - blind.value, n)


def after_reveal(choice: IntArray, confirmed: Confirmed) -> AfterReveal:
    moved = confirmed.first != confirmed.final
    changed = share(int(moved.sum()), len(moved), "No review was confirmed after the judge was revealed.")
    judged = choice[confirmed.item]
    to_judge, away = (int(np.sum(moved & (one == judged))) for one in (confirmed.final, confirmed.first))
    return AfterReveal(changed, to_judge, away)
