"""What seeing the judge does to people: between reviews drawn to see it or not, and after its reveal."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.stats.coding import MISSING, BoolArray, IntArray
from evaluations.stats.contributions import Contributions, side_by_side
from evaluations.stats.intervals import Bounds, Spread, too_few
from evaluations.stats.numbers import Number, undefined
from evaluations.stats.shares import ratios, share_within
from evaluations.stats.votes import Votes

NOT_DRAWN: Final = (
    "Whether the judge was seen first was not drawn at random here: what people changed after the reveal is no "
    "effect of the judge alone."
)
EMPTY_ARM: Final = "No vote of this kind on a comparison that the judge has a verdict on."
NOT_REVEALED: Final = "No review was confirmed after the judge was revealed."

# Two cells an arm, votes that differ from the judge and votes that agree: first those drawn blind, then those shown.
BLIND: Final[BoolArray] = np.array([True, True, False, False])
AGREEING: Final[BoolArray] = np.array([False, True, False, True])
DIFFERENCE: Final[Bounds] = (-1.0, 1.0)
CHANGED: Final[BoolArray] = np.array([False, True])


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


def anchoring(choice: IntArray, blind: Votes, shown: Votes, cluster: IntArray) -> Anchoring:
    """``choice``: the judge's one verdict on each comparison, MISSING where it has none; ``cluster`` of each."""
    if not len(blind) and not len(shown):
        return Anchoring(undefined(NOT_DRAWN), undefined(NOT_DRAWN), undefined(NOT_DRAWN))
    spread = Spread(side_by_side(*(agreeing(choice, votes, cluster) for votes in (blind, shown))))
    arms = [share_within(spread, AGREEING & arm, arm, EMPTY_ARM) for arm in (BLIND, ~BLIND)]
    return Anchoring(arms[0], arms[1], difference(spread, arms[0], arms[1]))


def agreeing(choice: IntArray, votes: Votes, cluster: IntArray) -> Contributions:
    judged = choice[votes.item]
    held = (judged != MISSING) & (votes.choice != MISSING)
    return Contributions(cluster[votes.item[held]], (judged == votes.choice)[held].astype(np.int64), 2)


def difference(spread: Spread, blind: Number, shown: Number) -> Number:
    """Both arms vary together where they hold votes on the same clusters."""
    n = blind.n + shown.n
    if blind.value is None or shown.value is None:
        return undefined(EMPTY_ARM, n)
    number = Number(shown.value - blind.value, n)
    for arm in (BLIND, ~BLIND):
        if why := too_few(spread.contributions, arm & ~AGREEING, among=arm):
            return number.without_interval(why)
    shares = ratios((AGREEING & BLIND, BLIND), (AGREEING & ~BLIND, ~BLIND))
    return spread.interval(number, lambda totals: np.diff(shares(totals))[..., 0], DIFFERENCE)


def after_reveal(choice: IntArray, confirmed: Confirmed, cluster: IntArray) -> AfterReveal:
    """``cluster``: of each comparison."""
    moved = confirmed.first != confirmed.final
    found = Contributions(cluster[confirmed.item], moved.astype(np.int64), len(CHANGED))
    changed = share_within(Spread(found), CHANGED, CHANGED | ~CHANGED, NOT_REVEALED)
    judged = choice[confirmed.item]
    to_judge, away = (int(np.sum(moved & (one == judged))) for one in (confirmed.final, confirmed.first))
    return AfterReveal(changed, to_judge, away)
