"""A judge's one choice on each aspect, folded from its packed votes over orders and samples."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Final, NamedTuple, TypeVar

from evaluations.domain.choices import ConsolidatedChoice, ShownOrder, consolidate_orders
from evaluations.domain.packed_votes import BITS_PER_CHOICE, PACKED_CHOICES, PACKED_ORDERS, SLOTS_PER_BLOCK
from evaluations.formats.exported_rows import ExportedJudgeChoice

ASPECTS_PER_GROUP: Final = 3  # aspects
GROUP_CODE_MASK: Final = (1 << BITS_PER_CHOICE * ASPECTS_PER_GROUP) - 1
GROUP_MARK_MASK: Final = (1 << ASPECTS_PER_GROUP) - 1
SINGLE_CODE_MASK: Final = (1 << BITS_PER_CHOICE) - 1
MAX_CACHED_GROUPS: Final = 50_000
Told = TypeVar("Told")

# Of each row of packed votes on the aspects of a group: place of its sample, order, codes, marks.
GroupAnswers = tuple[tuple[int, int, int, int], ...]
AnswerSheet = tuple[GroupAnswers, ...]  # for each group
JudgeAnswers = tuple[frozenset[str], AnswerSheet]  # the orders in which a judge was asked, and what it answered


class PackedVote(NamedTuple):
    """A row of packed votes of a judge."""

    comparison_id: int
    rater_id: int
    shown: int
    aspect_block: int
    first_choices: int
    inconsistent_aspects: int
    sample: int


class AspectGroup(NamedTuple):
    """Neighbouring places of a block, and the aspects that stand there."""

    block: int
    shift: int
    mark: int
    keys: tuple[str | None, ...]


def group_aspects(places: Mapping[int, str]) -> tuple[AspectGroup, ...]:
    held: dict[tuple[int, int], dict[int, str]] = defaultdict(dict)
    for place, key in places.items():
        block, inside = divmod(place, SLOTS_PER_BLOCK)
        held[block, inside // ASPECTS_PER_GROUP][inside % ASPECTS_PER_GROUP] = key
    return tuple(
        AspectGroup(
            block,
            number * ASPECTS_PER_GROUP * BITS_PER_CHOICE,
            number * ASPECTS_PER_GROUP,
            tuple(keys.get(one) for one in range(ASPECTS_PER_GROUP)),
        )
        for (block, number), keys in sorted(held.items())
    )


def build_answer_sheet(
    votes: Sequence[PackedVote], places: Mapping[int, int], groups: tuple[AspectGroup, ...]
) -> AnswerSheet:
    """The packed votes of one judge on one comparison, in their order, group by group. ``places``: of its samples."""
    return tuple(
        [
            tuple(
                [
                    (
                        places[sample],
                        shown,
                        first >> group.shift & GROUP_CODE_MASK,
                        marks >> group.mark & GROUP_MARK_MASK,
                    )
                    for _, _, shown, block, first, marks, sample in votes
                    if block == group.block
                ]
            )
            for group in groups
        ]
    )


@lru_cache(maxsize=MAX_CACHED_GROUPS)
def fold_group_choices(
    answered: GroupAnswers, asked: frozenset[str], group: AspectGroup
) -> dict[str, ExportedJudgeChoice]:
    """By aspect the judge's one verdict and what it rests on. The same answers give the same objects: change none."""
    choices: dict[str, ExportedJudgeChoice] = {}
    for place, key in enumerate(group.keys):
        given: dict[ShownOrder, list[tuple[int, ConsolidatedChoice]]] = defaultdict(list)
        for sample, shown, codes, marks in answered:
            if code := codes >> BITS_PER_CHOICE * place & SINGLE_CODE_MASK:
                given[PACKED_ORDERS[shown]].append(
                    (sample, ConsolidatedChoice(PACKED_CHOICES[code - 1], bool(marks >> place & 1)))
                )
        if key is not None and given:
            choices[key] = fold_orders(given, asked)
    return choices


def fold_orders(
    given: Mapping[ShownOrder, Sequence[tuple[int, ConsolidatedChoice]]], asked: frozenset[str]
) -> ExportedJudgeChoice:
    answers = {shown: [one for _, one in said] for shown, said in given.items()}
    folded = consolidate_orders(answers, {ShownOrder(shown) for shown in asked})
    return {
        "choice": folded.choice.value if folded else None,
        "inconsistent": folded.inconsistent if folded else False,
        "orders": {
            shown.value: fill_positions([(at, one.choice.value) for at, one in said], None)
            for shown, said in given.items()
        },
    }


def fill_positions(pairs: Iterable[tuple[int, Told]], nothing: Told) -> list[Told]:
    """The choices of samples by position. ``nothing`` stands for an empty sample before the last one."""
    told: list[Told] = []
    for place, one in pairs:
        told += [nothing] * (place - len(told))
        told.append(one)
    return told


def fold_all_choices(answers: JudgeAnswers, groups: tuple[AspectGroup, ...]) -> dict[str, ExportedJudgeChoice]:
    """By aspect, of all groups."""
    choices: dict[str, ExportedJudgeChoice] = {}
    asked, sheet = answers
    for answered, group in zip(sheet, groups, strict=True):
        if answered:
            choices.update(fold_group_choices(answered, asked, group))
    return choices
