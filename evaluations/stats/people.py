"""People among themselves: pooled votes, each against the majority of the others, each two, and all."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.domain import SplitRule
from evaluations.stats.agreement import Block, MajorityBlock, PooledBlock, block
from evaluations.stats.coding import CHOICES, MISSING, IntArray, counts_by_unit, cross_table
from evaluations.stats.majority import Majority
from evaluations.stats.several import Several, several
from evaluations.stats.votes import Votes, majority_of_the_others, one_vote_each, pairs_on_an_item

NO_TWO_VOTES: Final = "No comparison has two votes of people."
NO_TWO_PEOPLE: Final = "No comparison has votes of two people."


@dataclass(frozen=True)
class Pair(Block):
    rater_1: str
    rater_2: str


@dataclass(frozen=True)
class MajorityChoices:
    """How the majorities of people fall. ``n_split`` counts the splits, wherever the split rule puts them."""

    n: int
    n_split: int
    choices: dict[str, int]


@dataclass(frozen=True)
class HumanHuman:
    votes: PooledBlock
    majority: MajorityBlock
    majority_choices: MajorityChoices
    pairs: tuple[Pair, ...]
    multi: Several


def human_human(
    votes: Votes, found: Majority, names: Sequence[str], q: int, rule: SplitRule, empty: str | None = None
) -> HumanHuman:
    """``found``: the majority on every comparison. ``names``: what the rater numbers of the votes stand for."""
    each = one_vote_each(votes)
    return HumanHuman(
        votes=pooled(votes, q, empty or NO_TWO_VOTES),
        majority=against_the_others(votes, each, q, rule, empty or NO_TWO_PEOPLE),
        majority_choices=majority_choices(found),
        pairs=tuple(each_two(each, names, q)),
        multi=several(counts_by_unit(votes.item, votes.choice, len(found.choice)), q),
    )


def pooled(votes: Votes, q: int, empty: str) -> PooledBlock:
    """Every pair of votes on a comparison. Which vote stands first does not matter: every number given here

    reads the diagonal and the sum of both margins alone, as if the table held each pair both ways round.
    """
    one, other = pairs_on_an_item(votes.item)
    table = cross_table(votes.choice[one], votes.choice[other])
    found = block(table, q, empty=empty, raters_known=False)
    self_pairs = int((votes.rater[one] == votes.rater[other]).sum())
    return PooledBlock(found.with_ties, found.without_ties, found.dropped, self_pairs)


def against_the_others(votes: Votes, each: Votes, q: int, rule: SplitRule, empty: str) -> MajorityBlock:
    others, split = majority_of_the_others(votes, each, rule)
    found = block(cross_table(each.choice, others), q, empty=empty)
    return MajorityBlock(found.with_ties, found.without_ties, found.dropped, int(split.sum()))


def majority_choices(found: Majority) -> MajorityChoices:
    kept = found.choice[found.choice != MISSING]
    counts = np.bincount(kept, minlength=len(CHOICES))
    by_choice = {str(choice): int(count) for choice, count in zip(CHOICES, counts, strict=True)}
    return MajorityChoices(len(kept), int(found.split.sum()), by_choice)


def each_two(each: Votes, names: Sequence[str], q: int) -> Iterator[Pair]:
    """Cohen's kappa and its company for every two people who share a comparison."""
    one, other = pairs_on_an_item(each.item)
    turned = each.rater[one] > each.rater[other]
    first, second = np.where(turned, other, one), np.where(turned, one, other)
    pairs, which = np.unique(each.rater[first] * len(names) + each.rater[second], return_inverse=True)
    for place, table in enumerate(tables_by_pair(which, each.choice[first], each.choice[second], len(pairs))):
        rater_1, rater_2 = divmod(int(pairs[place]), len(names))
        found = block(table, q)
        yield Pair(found.with_ties, found.without_ties, found.dropped, names[rater_1], names[rater_2])


def tables_by_pair(which: IntArray, first: IntArray, second: IntArray, pairs: int) -> IntArray:
    size = len(CHOICES)
    flat = np.bincount((which * size + first) * size + second, minlength=pairs * size * size)
    return flat.reshape(pairs, size, size)
