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

    ``has_two_votes``: of each item, whether two people or more voted. A majority of one errs as often as a judge does.
    """

    majority: ChosenSides
    votes: ChosenSides
    by_category: ChosenSides
    by_pair: ChosenSides
    has_two_votes: BoolArray


@dataclass(frozen=True)
class PairedSides:
    """Entries on which judge and people both have a side: item, both sides, stratum."""

    item: IntArray
    judge_side: Sides
    people_side: Sides
    strata: Strata

    def where(self, selected: BoolArray) -> "PairedSides":
        return PairedSides(
            self.item[selected], self.judge_side[selected], self.people_side[selected], self.strata.where(selected)
        )


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
    has_two_votes: BoolArray


def human_sides(traits: ComparisonTraits, majority: IntArray, votes: Votes) -> HumanSides:
    """The sides that people chose on one aspect, for all its judges.

    ``majority``: of each item, MISSING where nobody voted.
    """
    item = np.flatnonzero(majority != MISSING)
    vote = sides_of_choices(votes.choice)
    return HumanSides(
        majority=ChosenSides(item, sides_of_choices(majority[item]), traits.whole.for_entries(item)),
        votes=ChosenSides(votes.item, vote, traits.whole.for_entries(votes.item)),
        by_category=ChosenSides(votes.item, vote, traits.by_category.for_entries(votes.item)),
        by_pair=ChosenSides(votes.item, vote, traits.by_pair.for_entries(votes.item)),
        has_two_votes=np.bincount(votes.item[vote != MISSING], minlength=len(majority)) > 1,
    )


def pair_sides(chosen: ChosenSides, judge: Sides) -> JudgeHumanPairs:
    own = judge[chosen.item]
    pairs = PairedSides(chosen.item, own, chosen.side, chosen.strata)
    if not (judged := own != MISSING).all():
        pairs = pairs.where(judged)
    return JudgeHumanPairs(pairs, pairs.where(has_side(pairs.judge_side) & has_side(pairs.people_side)))


def judge_sides(traits: ComparisonTraits, people: HumanSides, judge: Sides) -> JudgeSides:
    majority, votes = pair_sides(people.majority, judge), pair_sides(people.votes, judge)
    return JudgeSides(traits.whole, judge, majority, votes, people.has_two_votes)
