"""A judge's one choice on each aspect of a comparison, made of all its orders, samples and scores."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeVar

from django.db.models import Q

from evaluations.domain.choices import (
    PACKED_CHOICES,
    PACKED_ORDERS,
    Choice,
    ConsolidatedChoice,
    ShownOrder,
    consolidate_orders,
)
from evaluations.domain.judges import JudgeKind
from evaluations.domain.packed_votes import BITS_PER_CHOICE, SLOTS_PER_BLOCK
from evaluations.formats.exported_rows import ExportedJudgeChoice
from evaluations.models.judges import Rater
from evaluations.models.runs import Call
from evaluations.models.verdicts import Verdict
from evaluations.verdicts.score_choices import comparison_response_ids, derive_score_choices, imported_score_rules

ChoicesByComparison = Mapping[int, Mapping[str, ConsolidatedChoice]]


def load_judge_choices(rater: Rater, comparison_ids: Iterable[int]) -> ChoicesByComparison:
    """Comparison id → aspect key → this judge's choice. Incomplete ones are absent."""
    return load_choices_of_judges([rater], comparison_ids)[rater.pk]


def load_choices_of_judges(raters: Sequence[Rater], comparison_ids: Iterable[int]) -> Mapping[int, ChoicesByComparison]:
    """Rater id → each judge's choices, in the same few queries for any number of judges."""
    ids = list(comparison_ids)
    pairwise = [rater for rater in raters if rater.judge is None or not rater.judge.is_pointwise]
    choices = load_pairwise_choices(pairwise, ids) if pairwise else {}
    scoring = scoring_raters(raters)
    derived = derive_score_choices(scoring, comparison_response_ids(ids)) if scoring else {}
    for rater, by_comparison in derived.items():
        for pk, scores in by_comparison.items():
            from_scores = {key: ConsolidatedChoice(side_scores.choice) for key, side_scores in scores.items()}
            choices.setdefault(rater, {}).setdefault(pk, {}).update(from_scores)
    return {rater.pk: choices.get(rater.pk, {}) for rater in raters}


def scoring_raters(raters: Sequence[Rater]) -> list[Rater]:
    """The raters that may have scores: pointwise judges, and imported ones if scores were imported."""
    pointwise = [rater for rater in raters if rater.judge is not None and rater.judge.is_pointwise]
    imported = [rater for rater in raters if rater.judge is not None and rater.judge.kind == JudgeKind.IMPORTED]
    if imported and not imported_score_rules(Q(aspect__evaluation=imported[0].evaluation_id)):
        return pointwise
    return [*pointwise, *imported]


def load_pairwise_choices(
    raters: Sequence[Rater], comparison_ids: Sequence[int]
) -> dict[int, dict[int, dict[str, ConsolidatedChoice]]]:
    verdicts = Verdict.objects.filter(rater__in=raters, comparison__in=comparison_ids).values_list(
        "rater_id", "comparison_id", "aspect__key", "shown", "choice", "inconsistent"
    )
    return fold_pairwise_choices(raters, comparison_ids, verdicts)


def fold_verdicts(rater: Rater, comparison_id: int, verdicts: Iterable[Verdict]) -> Mapping[str, ConsolidatedChoice]:
    """Aspect key → the judge's choice on the comparison. ``verdicts``: all that the judge gave on it."""
    rows = [
        (rater.pk, comparison_id, verdict.aspect.key, verdict.shown, verdict.choice, verdict.inconsistent)
        for verdict in verdicts
    ]
    return fold_pairwise_choices([rater], [comparison_id], rows)[rater.pk][comparison_id] if rows else {}


def fold_pairwise_choices(
    raters: Sequence[Rater], comparison_ids: Sequence[int], verdicts: Iterable[tuple[int, int, str, str, str, bool]]
) -> dict[int, dict[int, dict[str, ConsolidatedChoice]]]:
    answered: dict[tuple[int, int, str], dict[ShownOrder, list[ConsolidatedChoice]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for rater_id, comparison_id, aspect, shown, choice, inconsistent in verdicts:
        answered[rater_id, comparison_id, aspect][ShownOrder(shown)].append(
            ConsolidatedChoice(Choice(choice), inconsistent)
        )
    orders_asked = load_asked_orders(raters, comparison_ids) if answered else {}
    choices: dict[int, dict[int, dict[str, ConsolidatedChoice]]] = {rater.pk: defaultdict(dict) for rater in raters}
    for (rater_id, comparison_id, aspect), answers in answered.items():
        consolidated = consolidate_orders(answers, orders_asked[rater_id, comparison_id])
        if consolidated is not None:
            choices[rater_id][comparison_id][aspect] = consolidated
    return choices


def load_asked_orders(
    raters: Sequence[Rater], comparison_ids: Sequence[int]
) -> Mapping[tuple[int, int], set[ShownOrder]]:
    """The orders in which the judge was asked, by rater and comparison.

    Orders whose calls are all open or cancelled count too: the verdict is missing until they are answered. Imported
    failures are calls as well.
    """
    orders_asked: dict[tuple[int, int], set[ShownOrder]] = defaultdict(set)
    rater_of = {rater.judge_id: rater.pk for rater in raters}
    calls = Call.objects.filter(judge__in=list(rater_of), comparison__in=comparison_ids)
    for judge_id, comparison_id, shown in calls.values_list("judge_id", "comparison_id", "shown").distinct():
        orders_asked[rater_of[judge_id], comparison_id].add(ShownOrder(shown))
    return orders_asked


ASPECTS_PER_GROUP: Final = 3
GROUP_CODE_MASK: Final = (1 << BITS_PER_CHOICE * ASPECTS_PER_GROUP) - 1
GROUP_MARK_MASK: Final = (1 << ASPECTS_PER_GROUP) - 1
SINGLE_CODE_MASK: Final = (1 << BITS_PER_CHOICE) - 1
MAX_CACHED_GROUPS: Final = 50_000
ONE_SAMPLE: Final = {0: 0}
Value = TypeVar("Value")

# Of each row of packed votes on the aspects of a group: place of its sample, order, codes, marks.
GroupAnswers = tuple[tuple[int, int, int, int], ...]
AnswerSheet = tuple[GroupAnswers, ...]  # for each group
JudgeAnswers = tuple[frozenset[str], AnswerSheet]  # the orders in which a judge was asked, and what it answered
SamplePositions = Mapping[int, Mapping[int, int]]  # rater id → sample → its place among the rater's samples


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
    """Neighbouring slots of a block with their aspects."""

    block: int
    shift: int
    mark: int
    keys: tuple[str | None, ...]


def group_aspects(places: Mapping[int, str]) -> tuple[AspectGroup, ...]:
    by_group: dict[tuple[int, int], dict[int, str]] = defaultdict(dict)
    for place, key in places.items():
        block, inside = divmod(place, SLOTS_PER_BLOCK)
        by_group[block, inside // ASPECTS_PER_GROUP][inside % ASPECTS_PER_GROUP] = key
    return tuple(
        AspectGroup(
            block,
            number * ASPECTS_PER_GROUP * BITS_PER_CHOICE,
            number * ASPECTS_PER_GROUP,
            tuple(keys.get(place) for place in range(ASPECTS_PER_GROUP)),
        )
        for (block, number), keys in sorted(by_group.items())
    )


def build_answer_sheet(
    votes: Sequence[PackedVote], places: Mapping[int, int], groups: tuple[AspectGroup, ...]
) -> AnswerSheet:
    """The packed votes of one judge on one comparison by group, in their order. ``places``: by sample."""
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


def map_samples(
    votes: Mapping[int, Sequence[PackedVote]], calls: Mapping[int, Sequence[tuple[Any, ...]]]
) -> SamplePositions:
    """By rater id the position of each of a judge's samples, equal for both orders."""
    positions: dict[int, Mapping[int, int]] = {}
    for pk in votes.keys() | calls.keys():
        samples = {row[-1] for rows in (votes, calls) for row in rows.get(pk, ())}
        positions[pk] = {sample: at for at, sample in enumerate(sorted(samples))} if samples != {0} else ONE_SAMPLE
    return positions


def collect_judge_answers(
    votes: Mapping[int, Sequence[PackedVote]],
    calls: Mapping[int, Sequence[tuple[Any, ...]]],
    positions: SamplePositions,
    groups: tuple[AspectGroup, ...],
) -> dict[int, JudgeAnswers]:
    """By rater id what judges were asked and answered on one comparison.

    The order shown is the third column of a call, the sample the last column of calls and votes.
    """
    return {
        pk: (
            frozenset([call[2] for call in calls.get(pk, ())]),
            build_answer_sheet(votes.get(pk, ()), samples, groups),
        )
        for pk, samples in positions.items()
    }


@lru_cache(maxsize=MAX_CACHED_GROUPS)
def fold_group_choices(
    answered: GroupAnswers, orders_asked: frozenset[str], group: AspectGroup
) -> dict[str, ExportedJudgeChoice]:
    """The judge's one verdict by aspect with its orders. Cached: callers must not change the result."""
    choices: dict[str, ExportedJudgeChoice] = {}
    for place, key in enumerate(group.keys):
        answers: dict[ShownOrder, list[tuple[int, ConsolidatedChoice]]] = defaultdict(list)
        for sample, shown, codes, marks in answered:
            if code := codes >> BITS_PER_CHOICE * place & SINGLE_CODE_MASK:
                answers[PACKED_ORDERS[shown]].append(
                    (sample, ConsolidatedChoice(PACKED_CHOICES[code - 1], bool(marks >> place & 1)))
                )
        if key is not None and answers:
            choices[key] = fold_orders(answers, orders_asked)
    return choices


def fold_orders(
    by_order: Mapping[ShownOrder, Sequence[tuple[int, ConsolidatedChoice]]], orders_asked: frozenset[str]
) -> ExportedJudgeChoice:
    answers = {shown: [choice for _, choice in samples] for shown, samples in by_order.items()}
    consolidated = consolidate_orders(answers, {ShownOrder(shown) for shown in orders_asked})
    return {
        "choice": consolidated.choice.value if consolidated else None,
        "inconsistent": consolidated.inconsistent if consolidated else False,
        "orders": {
            shown.value: fill_positions([(place, choice.choice.value) for place, choice in samples], None)
            for shown, samples in by_order.items()
        },
    }


def fill_positions(pairs: Iterable[tuple[int, Value]], nothing: Value) -> list[Value]:
    """The values of samples by position. ``nothing`` fills positions without a value."""
    filled: list[Value] = []
    for place, value in pairs:
        filled += [nothing] * (place - len(filled))
        filled.append(value)
    return filled


def fold_all_choices(answers: JudgeAnswers, groups: tuple[AspectGroup, ...]) -> dict[str, ExportedJudgeChoice]:
    choices: dict[str, ExportedJudgeChoice] = {}
    orders_asked, sheet = answers
    for answered, group in zip(sheet, groups, strict=True):
        if answered:
            choices.update(fold_group_choices(answered, orders_asked, group))
    return choices
