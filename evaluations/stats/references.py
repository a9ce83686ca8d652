"""A judge held against people, all of them, their majority and each by name, and against gold."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.domain import Coding
from evaluations.stats.agreement import NOTHING_SHARED, Block, MajorityBlock, block
from evaluations.stats.coding import MISSING, IntArray, cross_table
from evaluations.stats.confusion import Confusion, confusion
from evaluations.stats.consolidation import Consolidated
from evaluations.stats.contributions import crossed
from evaluations.stats.majority import Majority
from evaluations.stats.polls import Poll
from evaluations.stats.shown import NO_ORDER, by_place, order_asked

GOLD: Final = "gold"


@dataclass(frozen=True)
class Reference:
    """What a judge is held against: a poll, its majority, and in the coding by place the order it was seen in.

    ``names``: what the rater numbers of the poll stand for.
    """

    poll: Poll
    majority: Majority
    order: IntArray | None
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class PersonBlock(Block):
    """Held against one person."""

    rater: str


@dataclass(frozen=True)
class JudgeHuman:
    votes: Block
    majority: MajorityBlock
    people: tuple[PersonBlock, ...]


@dataclass(frozen=True)
class JudgeGold(MajorityBlock):
    confusion: Confusion


def in_terms_of(own: Consolidated, reference: Reference) -> IntArray:
    """The judge's choices as the reference counts them: by candidate, or by place where both saw the same order."""
    if reference.order is None:
        return own.choice
    order = order_asked(own)
    return by_place(own.choice, np.where(order == reference.order, order, MISSING))


def empty_for(coding: Coding) -> str:
    return NO_ORDER if coding is Coding.SHOWN else NOTHING_SHARED


def judge_human(choice: IntArray, people: Reference, q: int, coding: Coding) -> JudgeHuman:
    """``choice``: the judge's on each item of the poll."""
    poll = people.poll
    votes = crossed(choice[poll.turnout.unit], poll.choice, poll.cluster)
    return JudgeHuman(
        votes=block(votes, q, empty=empty_for(coding)),
        majority=against(choice, people, q, coding),
        people=tuple(each_person(choice, people, q, coding)),
    )


def each_person(choice: IntArray, people: Reference, q: int, coding: Coding) -> Iterator[PersonBlock]:
    """The judge beside each person who voted at all; who voted twice on a comparison counts once."""
    each = people.poll.each
    judged = choice[each.turnout.unit]
    for rater, entries in each.turnout.by_rater.items():
        table = crossed(judged[entries], each.choice[entries], each.cluster[entries])
        found = block(table, q, empty=empty_for(coding))
        yield PersonBlock(found.with_ties, found.without_ties, found.dropped, people.names[rater])


def judge_gold(choice: IntArray, gold: Reference, offered: Collection[int], coding: Coding) -> JudgeGold:
    found = against(choice, gold, len(offered), coding)
    matrix = confusion(cross_table(choice, gold.majority.choice), offered, coding, GOLD)
    return JudgeGold(found.with_ties, found.without_ties, found.dropped, found.n_split, matrix)


def against(choice: IntArray, held: Reference, q: int, coding: Coding) -> MajorityBlock:
    """Held against a majority; the splits are counted among the comparisons that the judge has a verdict on."""
    table = crossed(choice, held.majority.choice, held.poll.cluster_of_items)
    found = block(table, q, empty=empty_for(coding))
    n_split = int((held.majority.split & (choice != MISSING)).sum())
    return MajorityBlock(found.with_ties, found.without_ties, found.dropped, n_split)
