"""What judges' ballots say, unpacked a few aspects at a time.

On a few aspects few patterns of answers occur, and each many times: what one says is found out once.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple, TypeVar

from evaluations.domain import (
    BITS,
    CHOICES,
    ORDERS,
    PLACES_A_BLOCK,
    Folded,
    Shown,
    fold,
)
from evaluations.formats import exported

TOGETHER: Final = 3  # aspects
CODES: Final = (1 << BITS * TOGETHER) - 1
MARKS: Final = (1 << TOGETHER) - 1
CODE: Final = (1 << BITS) - 1
PATTERNS: Final = 50_000
Told = TypeVar("Told")

# Of each ballot on the aspects of a group: place of its sample, order, codes, marks.
Answered = tuple[tuple[int, int, int, int], ...]
Sheet = tuple[Answered, ...]  # for each group
Answers = tuple[frozenset[str], Sheet]  # the orders in which a judge was asked, and what it answered


class Packed(NamedTuple):
    """One ballot of a judge, as it is read."""

    comparison_id: int
    rater_id: int
    shown: int
    block: int
    first: int
    inconsistent: int
    sample: int


class Group(NamedTuple):
    """Neighbouring places of a block, and the aspects that stand there."""

    block: int
    shift: int
    mark: int
    keys: tuple[str | None, ...]


def groups_of(places: Mapping[int, str]) -> tuple[Group, ...]:
    held: dict[tuple[int, int], dict[int, str]] = defaultdict(dict)
    for place, key in places.items():
        block, inside = divmod(place, PLACES_A_BLOCK)
        held[block, inside // TOGETHER][inside % TOGETHER] = key
    return tuple(
        Group(block, number * TOGETHER * BITS, number * TOGETHER, tuple(keys.get(one) for one in range(TOGETHER)))
        for (block, number), keys in sorted(held.items())
    )


def sheet_of(ballots: Sequence[Packed], places: Mapping[int, int], groups: tuple[Group, ...]) -> Sheet:
    """The ballots of one judge on one comparison, in their order, group by group. ``places``: of its samples."""
    return tuple(
        [
            tuple(
                [
                    (places[sample], shown, first >> group.shift & CODES, marks >> group.mark & MARKS)
                    for _, _, shown, block, first, marks, sample in ballots
                    if block == group.block
                ]
            )
            for group in groups
        ]
    )


@lru_cache(maxsize=PATTERNS)
def choices_in(answered: Answered, asked: frozenset[str], group: Group) -> dict[str, exported.JudgesChoice]:
    """By aspect the judge's one verdict and what it rests on. The same answers give the same objects: change none."""
    choices: dict[str, exported.JudgesChoice] = {}
    for place, key in enumerate(group.keys):
        given: dict[Shown, list[tuple[int, Folded]]] = defaultdict(list)
        for sample, shown, codes, marks in answered:
            if code := codes >> BITS * place & CODE:
                given[ORDERS[shown]].append((sample, Folded(CHOICES[code - 1], bool(marks >> place & 1))))
        if key is not None and given:
            choices[key] = choice_over_orders(given, asked)
    return choices


def choice_over_orders(
    given: Mapping[Shown, Sequence[tuple[int, Folded]]], asked: frozenset[str]
) -> exported.JudgesChoice:
    answers = {shown: [one for _, one in said] for shown, said in given.items()}
    folded = fold(answers, {Shown(shown) for shown in asked})
    return {
        "choice": folded.choice.value if folded else None,
        "inconsistent": folded.inconsistent if folded else False,
        "orders": {
            shown.value: at_places([(at, one.choice.value) for at, one in said], None) for shown, said in given.items()
        },
    }


def at_places(pairs: Iterable[tuple[int, Told]], nothing: Told) -> list[Told]:
    """What each sample said, in order. ``nothing`` fills in for an empty sample before the last one."""
    told: list[Told] = []
    for place, one in pairs:
        told += [nothing] * (place - len(told))
        told.append(one)
    return told


def choices_on(answers: Answers, groups: tuple[Group, ...]) -> dict[str, exported.JudgesChoice]:
    """By aspect, of all groups."""
    choices: dict[str, exported.JudgesChoice] = {}
    asked, sheet = answers
    for answered, group in zip(sheet, groups, strict=True):
        if answered:
            choices.update(choices_in(answered, asked, group))
    return choices
