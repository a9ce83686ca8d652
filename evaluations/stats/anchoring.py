"""Anchoring: how much reviewers follow a judge that they were shown first or after their own choice."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.stats.cluster_totals import Contributions, join_contributions
from evaluations.stats.coding import MISSING, BoolArray, IntArray
from evaluations.stats.confidence_intervals import (
    Bounds,
    Spread,
    estimate_share,
    ratio_statistic,
    why_interval_withheld,
)
from evaluations.stats.estimates import Estimate, undefined_estimate
from evaluations.stats.votes import Votes

NOT_DRAWN: Final = (
    "Seeing the judge first was not randomized here, so changes after the reveal are not an effect of the judge alone."
)
EMPTY_ARM: Final = "No such vote on a comparison with a verdict of the judge."
NOT_REVEALED: Final = "No review was confirmed after the judge was revealed."
# Cells: votes that differ from the judge and votes that agree, of the blind arm and then of the shown arm.
BLIND: Final[BoolArray] = np.array([True, True, False, False])
AGREEING: Final[BoolArray] = np.array([False, True, False, True])
DIFFERENCE: Final[Bounds] = (-1.0, 1.0)
CHANGED: Final[BoolArray] = np.array([False, True])


@dataclass(frozen=True)
class AnchoringEffect:
    """Agreement of blind and of shown votes with the judge, where the arm of each review was drawn at random.

    ``difference``: shown − blind, by the arm drawn and not by what was seen (intention to treat).
    """

    blind: Estimate
    shown: Estimate
    difference: Estimate


@dataclass(frozen=True)
class AfterReveal:
    """The share of final choices that differ from first ones, in reviews that saw the judge after a blind choice.

    ``to_judge``: how many final choices are the judge's; ``away_from_judge``: how many first choices were.
    """

    changed: Estimate
    to_judge: int
    away_from_judge: int


@dataclass(frozen=True)
class ConfirmedChoices:
    """First and final choice of reviews on one aspect; ``item``: the number of the comparison."""

    item: IntArray
    first: IntArray
    final: IntArray


@dataclass(frozen=True)
class JudgeRevealVotes:
    """The votes of reviews that were shown one judge, randomised to blind or shown."""

    blind: Votes
    shown: Votes
    confirmed: ConfirmedChoices


def anchoring_effect(choice: IntArray, blind: Votes, shown: Votes, cluster: IntArray) -> AnchoringEffect:
    """The effect of seeing the judge first on agreement with it.

    ``choice``: the judge's verdict on each comparison, MISSING where it has none. ``cluster``: of each comparison.
    """
    if not len(blind) and not len(shown):
        return AnchoringEffect(*(undefined_estimate(NOT_DRAWN) for _ in range(3)))
    spread = Spread(join_contributions(*(agreement_contributions(choice, votes, cluster) for votes in (blind, shown))))
    arms = [estimate_share(spread, AGREEING & arm, arm, EMPTY_ARM) for arm in (BLIND, ~BLIND)]
    return AnchoringEffect(arms[0], arms[1], arm_difference(spread, arms[0], arms[1]))


def agreement_contributions(choice: IntArray, votes: Votes, cluster: IntArray) -> Contributions:
    judged = choice[votes.item]
    shared = (judged != MISSING) & (votes.choice != MISSING)
    return Contributions(cluster[votes.item[shared]], (judged == votes.choice)[shared].astype(np.int64), 2)


def arm_difference(spread: Spread, blind: Estimate, shown: Estimate) -> Estimate:
    """The difference between the arms; arms with votes on the same clusters vary together."""
    n = blind.n + shown.n
    if blind.value is None or shown.value is None:
        return undefined_estimate(EMPTY_ARM, n)
    number = Estimate(shown.value - blind.value, n)
    for arm in (BLIND, ~BLIND):
        if why := why_interval_withheld(spread.contributions, arm & ~AGREEING, among=arm):
            return number.without_interval(why)
    shares = ratio_statistic((AGREEING & BLIND, BLIND), (AGREEING & ~BLIND, ~BLIND))
    return spread.interval(number, lambda totals: np.diff(shares(totals))[..., 0], DIFFERENCE)


def changes_after_reveal(choice: IntArray, confirmed: ConfirmedChoices, cluster: IntArray) -> AfterReveal:
    """How reviews changed after the reveal. ``choice`` and ``cluster``: as in `anchoring_effect`."""
    moved = confirmed.first != confirmed.final
    contributions = Contributions(cluster[confirmed.item], moved.astype(np.int64), len(CHANGED))
    changed = estimate_share(Spread(contributions), CHANGED, CHANGED | ~CHANGED, NOT_REVEALED)
    judged = choice[confirmed.item]
    to_judge, away = (int(np.sum(moved & (choices == judged))) for choices in (confirmed.final, confirmed.first))
    return AfterReveal(changed, to_judge, away)
