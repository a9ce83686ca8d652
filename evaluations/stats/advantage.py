"""Who stands closer to the other people, a judge or the person left out: vote by vote (Calderon et al. 2025).

S is how well a choice or value agrees with those of the others on the same item. Whoever's S is not
below that of the other has the advantage, so that both have it where they are level.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.stats.coding import MISSING, BoolArray, IntArray, counts_by_unit
from evaluations.stats.contributions import FloatArray
from evaluations.stats.votes import Votes

DIGITS: Final = 9  # 0.3 − 0.2 is not to be further away than 0.1


@dataclass(frozen=True)
class Advantage:
    """One entry for each vote on an item that the judge and another person have said something on too."""

    rater: IntArray
    cluster: IntArray
    judge: BoolArray
    human: BoolArray


@dataclass(frozen=True)
class Values:
    """Scores of people on one aspect, one of a person on an item: the item's place, rater, value."""

    item: IntArray
    rater: IntArray
    value: FloatArray


def of_choices(choice: IntArray, each: Votes, cluster: IntArray) -> Advantage:
    """S is the share of the others that chose the same, every choice being a category.

    ``choice``: the judge's per item, MISSING where it has none. ``each``: one vote of a person on an item.
    """
    counts = counts_by_unit(each.item, each.choice, len(choice))
    voters = np.bincount(each.item, minlength=len(choice))
    kept = (choice[each.item] != MISSING) & (voters[each.item] > 1)
    item, own = each.item[kept], each.choice[kept]
    judged = choice[item]
    # Of the others as many chose as the person did as of all, less the person.
    with_human = counts[item, own] - 1
    with_judge = counts[item, judged] - (judged == own)
    return Advantage(each.rater[kept], cluster[item], with_judge >= with_human, with_human >= with_judge)


def of_values(value: FloatArray, people: Values, cluster: IntArray) -> Advantage:
    """S is −RMSE, the root of the mean squared distance from the values of the others.

    ``value``: the judge's per item, NaN where it has none. The squared distances of two from the same others differ
    by (h − j)(h + j − 2m), m the mean of the others; no root is needed to see which is smaller.
    """
    items = len(value)
    voters = np.bincount(people.item, minlength=items)
    totals = np.bincount(people.item, people.value, items)
    kept = ~np.isnan(value[people.item]) & (voters[people.item] > 1)
    item, own = people.item[kept], people.value[kept]
    judged, others = value[item], (totals[item] - own) / (voters[item] - 1)
    further = np.round((own - judged) * (own + judged - 2 * others), DIGITS)
    return Advantage(people.rater[kept], cluster[item], further >= 0, further <= 0)
