"""People among themselves: pooled votes, each against the majority of the others, each two, and all."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.stats.agreement import Block, MajorityBlock, PooledBlock, block
from evaluations.stats.coding import CHOICES, MISSING, IntArray
from evaluations.stats.contributions import crossed
from evaluations.stats.majority import Majority
from evaluations.stats.polls import Poll
from evaluations.stats.several import Several, several

Meetings = Mapping[tuple[int, int], tuple[IntArray, IntArray]]

MOST_REVIEWERS: Final = 30  # of more, the numbers of every two would be most of a report
PAIRS_OF_MANY: Final = 20
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
    """``pairs_left_out``: how many pairs of reviewers share a comparison besides, where there are many reviewers."""

    votes: PooledBlock
    majority: MajorityBlock
    majority_choices: MajorityChoices
    pairs: tuple[Pair, ...]
    multi: Several
    pairs_left_out: int = 0


def human_human(
    poll: Poll,
    found: Majority,
    others: Majority,
    names: Sequence[str],
    q: int,
    empty: str | None = None,
    *,
    all_pairs: bool = False,
) -> HumanHuman:
    """``found``: the majority on each item of the poll; ``others``: that of the others for each person on an item.

    ``names``: what the rater numbers stand for. ``all_pairs``: every two of them, however many there are.
    """
    turnout = poll.each.turnout
    is_whole = all_pairs or len(turnout.by_rater) <= MOST_REVIEWERS
    met = turnout.meetings if is_whole else turnout.largest_meetings(PAIRS_OF_MANY)
    return HumanHuman(
        votes=pooled(poll, q, empty or NO_TWO_VOTES),
        majority=against_the_others(poll, others, q, empty or NO_TWO_PEOPLE),
        majority_choices=majority_choices(found),
        pairs=tuple(each_two(poll.each, met, names, q)),
        multi=several(poll, q),
        pairs_left_out=0 if is_whole else len(turnout.pair_sizes[0]) - len(met),
    )


def pooled(poll: Poll, q: int, empty: str) -> PooledBlock:
    """Every pair of votes on a comparison. Which vote stands first does not matter: every number given here

    reads the diagonal and the sum of both margins alone, as if the table held each pair both ways round.
    """
    one, other = poll.turnout.pairs
    table = crossed(poll.choice[one], poll.choice[other], poll.cluster[one])
    found = block(table, q, empty=empty, raters_known=False)
    alone = poll.turnout.rater[one] == poll.turnout.rater[other]
    cast = (poll.choice[one] != MISSING) & (poll.choice[other] != MISSING)
    return PooledBlock(found.with_ties, found.without_ties, found.dropped, int((alone & cast).sum()))


def against_the_others(poll: Poll, others: Majority, q: int, empty: str) -> MajorityBlock:
    each = poll.each
    found = block(crossed(each.choice, others.choice, each.cluster), q, empty=empty)
    n_split = int((others.split & (each.choice != MISSING)).sum())
    return MajorityBlock(found.with_ties, found.without_ties, found.dropped, n_split)


def majority_choices(found: Majority) -> MajorityChoices:
    kept = found.choice[found.choice != MISSING]
    counts = np.bincount(kept, minlength=len(CHOICES))
    by_choice = {str(choice): int(count) for choice, count in zip(CHOICES, counts, strict=True)}
    return MajorityChoices(len(kept), int(found.split.sum()), by_choice)


def each_two(each: Poll, met: Meetings, names: Sequence[str], q: int) -> Iterator[Pair]:
    """Cohen's kappa and its company for every two people who met. ``each``: one vote of a person."""
    for (rater_1, rater_2), (first, second) in met.items():
        table = crossed(each.choice[first], each.choice[second], each.cluster[first])
        if len(table.cell):
            found = block(table, q)
            yield Pair(found.with_ties, found.without_ties, found.dropped, names[rater_1], names[rater_2])
