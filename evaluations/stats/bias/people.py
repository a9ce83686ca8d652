"""What people said of the comparisons, laid beside what a judge says of them."""

from dataclasses import dataclass

import numpy as np

from evaluations.stats.bias.ground import Ground
from evaluations.stats.bias.sides import Sides, has_side, sides
from evaluations.stats.bias.strata import Strata
from evaluations.stats.coding import MISSING, BoolArray, IntArray
from evaluations.stats.votes import Votes


@dataclass(frozen=True)
class Said:
    """One entry for each vote, or for each item with a majority: the item, and the side that was chosen."""

    item: IntArray
    side: Sides
    strata: Strata


@dataclass(frozen=True)
class People:
    """The majorities and the single votes over all items, and the same votes by category and by pair.

    ``backed``: by item, whether two people or more voted. The majority of one is that one, who errs as a judge does.
    """

    majority: Said
    votes: Said
    by_category: Said
    by_pair: Said
    backed: BoolArray


@dataclass(frozen=True)
class Met:
    """Where a judge met people: the item, both sides, and the stratum and cluster."""

    item: IntArray
    judge: Sides
    people: Sides
    strata: Strata

    def where(self, kept: BoolArray) -> "Met":
        return Met(self.item[kept], self.judge[kept], self.people[kept], self.strata.where(kept))


@dataclass(frozen=True)
class Meetings:
    """With majorities or with votes: all, and those in which both chose a side."""

    all: Met
    sided: Met


@dataclass(frozen=True)
class Judged:
    """One judge's side of each item, and where it met people."""

    strata: Strata
    side: Sides
    majority: Meetings
    votes: Meetings
    backed: BoolArray


def people_of(ground: Ground, majority: IntArray, votes: Votes) -> People:
    """Once for all judges on an aspect. ``majority``: one for each item, MISSING where nobody voted."""
    item = np.flatnonzero(majority != MISSING)
    vote = sides(votes.choice)
    return People(
        majority=Said(item, sides(majority[item]), ground.whole.at(item)),
        votes=Said(votes.item, vote, ground.whole.at(votes.item)),
        by_category=Said(votes.item, vote, ground.by_category.at(votes.item)),
        by_pair=Said(votes.item, vote, ground.by_pair.at(votes.item)),
        backed=np.bincount(votes.item[vote != MISSING], minlength=len(majority)) > 1,
    )


def meetings(said: Said, judge: Sides) -> Meetings:
    own = judge[said.item]
    met = Met(said.item, own, said.side, said.strata)
    if not (held := own != MISSING).all():
        met = met.where(held)
    return Meetings(met, met.where(has_side(met.judge) & has_side(met.people)))


def judged(ground: Ground, people: People, judge: Sides) -> Judged:
    majority, votes = meetings(people.majority, judge), meetings(people.votes, judge)
    return Judged(ground.whole, judge, majority, votes, people.backed)
