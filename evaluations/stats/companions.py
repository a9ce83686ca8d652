"""Judges beside each other: how far each two say the same of the same comparisons."""

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from evaluations.domain import Coding
from evaluations.stats.agreement import Block, block
from evaluations.stats.coding import MISSING, IntArray
from evaluations.stats.consolidation import Consolidated
from evaluations.stats.contributions import crossed
from evaluations.stats.shown import NO_ORDER, by_place, order_asked

NO_SHARED_VERDICT: Final = "No comparison has a verdict of both judges."


@dataclass(frozen=True)
class JudgePair(Block):
    judge_1: str
    judge_2: str


def judge_judge(
    own: Mapping[str, Consolidated],
    members: Mapping[str, tuple[str, ...]],
    cluster: IntArray,
    q: int,
    coding: Coding,
) -> tuple[JudgePair, ...]:
    """Each two judges on the comparisons that both have a verdict on, by name.

    ``members``: of each panel the judges that it is made of, with whom it is not paired: it says what they say.
    """
    return tuple(
        paired(one, other, own[one], own[other], cluster, q, coding)
        for one, other in combinations(own, 2)
        if other not in members.get(one, ()) and one not in members.get(other, ())
    )


def paired(
    name: str, other_name: str, one: Consolidated, other: Consolidated, cluster: IntArray, q: int, coding: Coding
) -> JudgePair:
    first, second = (one.choice, other.choice) if coding is Coding.CANDIDATE else in_the_same_order(one, other)
    empty = NO_ORDER if coding is Coding.SHOWN else NO_SHARED_VERDICT
    found = block(crossed(first, second, cluster), q, empty=empty)
    return JudgePair(found.with_ties, found.without_ties, found.dropped, name, other_name)


def in_the_same_order(one: Consolidated, other: Consolidated) -> tuple[IntArray, IntArray]:
    """Their choices by place, where both saw the comparison in the same one known order."""
    orders = [order_asked(judge) for judge in (one, other)]
    order = np.where(orders[0] == orders[1], orders[0], MISSING)
    return by_place(one.choice, order), by_place(other.choice, order)
