"""A judge's side of each comparison, paired with the sides that people chose."""

from dataclasses import dataclass

import numpy as np

from evaluations.stats.bias.strata import Strata
from evaluations.stats.bias.traits import ComparisonTraits
from evaluations.stats.coding import MISSING, BoolArray, IntArray, Sides, has_side, sides_of_choices
from evaluations.stats.votes import Votes


@dataclass(frozen=True)
class ChosenSides:
    """The item and chosen side of each vote, or of each item with a majority."""

    item: IntArray
    side: Sides
    strata: Strata


@dataclass(frozen=True)
class HumanSides:
    """The sides of majorities and of single votes, overall, by category and by pair.

    ``backed``: by item, whether two people or more voted. The majority of one is that one, who errs as a judge does.
    """

    majority: ChosenSides
    votes: ChosenSides
    by_category: ChosenSides
    by_pair: ChosenSides
    backed: BoolArray


@dataclass(frozen=True)
class PairedSides:
    """Entries on which judge and people both have a side: item, both sides, stratum."""

    item: IntArray
    judge: Sides
    people: Sides
    strata: Strata

    def where(self, kept: BoolArray) -> "PairedSides":
        return PairedSides(self.item[kept], self.judge[kept], self.people[kept], self.strata.where(kept))


@dataclass(frozen=True)
class JudgeHumanPairs:
    """Pairs with majorities or with votes: all, and those in which both chose a side."""

    all: PairedSides
    sided: PairedSides


@dataclass(frozen=True)
class JudgeSides:
    """The side of one judge on each item, paired with those of people."""

    strata: Strata
    side: Sides
    majority: JudgeHumanPairs
    votes: JudgeHumanPairs
    backed: BoolArray


def human_sides(ground: ComparisonTraits, majority: IntArray, votes: Votes) -> HumanSides:
    """Once for all judges on an aspect. ``majority``: one for each item, MISSING where nobody voted."""
    item = np.flatnonzero(majority != MISSING)
    vote = sides_of_choices(votes.choice)
    return HumanSides(
        majority=ChosenSides(item, sides_of_choices(majority[item]), ground.whole.at(item)),
        votes=ChosenSides(votes.item, vote, ground.whole.at(votes.item)),
        by_category=ChosenSides(votes.item, vote, ground.by_category.at(votes.item)),
        by_pair=ChosenSides(votes.item, vote, ground.by_pair.at(votes.item)),
        backed=np.bincount(votes.item[vote != MISSING], minlength=len(majority)) > 1,
    )


def pair_sides(said: ChosenSides, judge: Sides) -> JudgeHumanPairs:
    own = judge[said.item]
    met = PairedSides(said.item, own, said.side, said.strata)
    if not (held := own != MISSING).all():
        met = met.where(held)
    return JudgeHumanPairs(met, met.where(has_side(met.judge) & has_side(met.people)))


def judge_sides(ground: ComparisonTraits, people: HumanSides, judge: Sides) -> JudgeSides:
    majority, votes = pair_sides(people.majority, judge), pair_sides(people.votes, judge)
    return JudgeSides(ground.whole, judge, majority, votes, people.backed)
