"""Sampling of a queue's comparisons by its strategy."""

import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final

from django.db import connection
from django.db.models import Q

from evaluations.domain.choices import ConsolidatedChoice, LabelSource
from evaluations.domain.errors import InputRefused
from evaluations.domain.groups import split_into_slices
from evaluations.domain.judges import JudgeKind
from evaluations.domain.reviews import SELECTION_STRATEGIES, QueueAudience, SelectionMethod, StratifyBy
from evaluations.domain.rubrics import RubricKind
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater
from evaluations.models.queues import DefaultQueue, QueueItem
from evaluations.models.rubrics import RubricVersion
from evaluations.models.runs import Call
from evaluations.models.users import User
from evaluations.models.verdicts import Label, Verdict
from evaluations.reviews.queues.sql import (
    SELECT_DIFFERING,
    SELECT_FLIPPED,
    SELECT_FREE_ITEMS,
    SELECT_STRATA,
    SELECT_UNSURE,
    STRATUM_COLUMNS,
)
from evaluations.verdicts.judge_choices import load_choices_of_judges

# Comparisons confirmed at once, if a statement may have selected too many.
CONFIRMED_AT_ONCE: Final = 500


@dataclass(frozen=True)
class SamplingFrame:
    """The sampling frame of a queue: item ids by comparison id in random order, and the judges consulted."""

    version_id: int
    items: Mapping[int, int]
    judges: Sequence[Rater]
    aspects: Sequence[int]


def build_sampling_frame(evaluation: Evaluation, reviews_wanted: int) -> SamplingFrame:
    version = evaluation.review_rubric
    assert version is not None
    with connection.cursor() as cursor:
        cursor.execute(SELECT_FREE_ITEMS, [version.pk, reviews_wanted])
        items = dict(cursor.fetchall())
    return SamplingFrame(
        version.pk,
        items,
        get_sampling_judges(evaluation),
        list(version.rubric_aspects.values_list("aspect", flat=True)),
    )


def get_sampling_judges(evaluation: Evaluation) -> list[Rater]:
    """The shown judge and every pairwise LLM judge. Pointwise judges have no orders to differ in."""
    kinds = Q(judge__kind=JudgeKind.LLM) | Q(judge=evaluation.shown_judge_id, judge__isnull=False)
    raters = (
        Rater.objects.current().filter(kinds, evaluation=evaluation).select_related("judge__rubric_version__rubric")
    )
    pairwise = raters.exclude(judge__rubric_version__rubric__kind=RubricKind.POINTWISE)
    return list(pairwise.order_by("pk"))


def rank_matching_items(strategy: SelectionMethod, frame: SamplingFrame, number: int | None = None) -> list[int]:
    """The items that match a deterministic strategy, best first, up to ``number``."""
    comparisons = STRATEGY_FINDERS[strategy](frame)
    items = (frame.items[pk] for pk in comparisons if pk in frame.items)
    return list(items)[:number] if number is not None else list(items)


def select_judge_rows(statement: str, frame: SamplingFrame) -> list[tuple[Any, ...]]:
    """Rows of a statement over the judges' verdicts on the current rubric's aspects."""
    if not frame.judges or not frame.aspects:
        return []
    raters, aspects = (", ".join(["%s"] * len(ids)) for ids in (frame.judges, frame.aspects))
    with connection.cursor() as cursor:
        values = [*(rater.pk for rater in frame.judges), *frame.aspects]
        cursor.execute(statement.format(raters=raters, aspects=aspects), values)
        return list(cursor.fetchall())


def sort_by_queue_order(comparisons: Collection[int], frame: SamplingFrame) -> list[int]:
    return [pk for pk in frame.items if pk in comparisons]


def find_order_flips(frame: SamplingFrame) -> Iterator[int]:
    """Comparisons on which a judge's two orders disagree on an aspect."""
    flips = {pk for pk, _ in select_judge_rows(SELECT_FLIPPED, frame)} | find_imported_flips(frame)
    return confirm_with_verdicts(
        sort_by_queue_order(flips, frame), frame, lambda choices: any(choice.inconsistent for choice in choices)
    )


def find_imported_flips(frame: SamplingFrame) -> set[int]:
    """Comparisons with an imported verdict that was inconsistent across orders."""
    imported = [rater for rater in frame.judges if rater.judge and rater.judge.kind == JudgeKind.IMPORTED]
    if not imported:
        return set()
    verdicts = Verdict.objects.filter(rater__in=imported, aspect__in=frame.aspects, inconsistent=True)
    return set(verdicts.values_list("comparison_id", flat=True))


def find_judge_disagreements(frame: SamplingFrame) -> Iterator[int]:
    """Comparisons on which two judges differ on an aspect, each over both orders."""
    comparisons = {pk for (pk,) in select_judge_rows(SELECT_DIFFERING, frame)}
    return confirm_with_verdicts(
        sort_by_queue_order(comparisons, frame), frame, lambda choices: len({choice.choice for choice in choices}) > 1
    )


def confirm_with_verdicts(
    comparisons: Sequence[int], frame: SamplingFrame, fits: Callable[[list[ConsolidatedChoice]], bool]
) -> Iterator[int]:
    """The comparisons, confirmed one by one if counting rows selects too many.

    Several samples of an order count as their plurality, and an order without an answer makes the verdict missing:
    a single statement computes neither.
    """
    if not needs_confirmation(frame):
        yield from comparisons
        return
    for batch in split_into_slices(comparisons, CONFIRMED_AT_ONCE):
        choices = load_choices_of_judges(frame.judges, batch)
        for pk in batch:
            by_aspect = defaultdict(list)
            for rater in frame.judges:
                for key, choice in choices[rater.pk].get(pk, {}).items():
                    by_aspect[key].append(choice)
            if any(fits(by_judge) for by_judge in by_aspect.values()):
                yield pk


def needs_confirmation(frame: SamplingFrame) -> bool:
    judges = [rater.judge for rater in frame.judges]
    calls = Call.objects.filter(judge__in=[judge for judge in judges if judge])
    if calls.exclude(state="answered").exists():
        return True
    return calls.filter(sample__gt=0).exists() or any(judge and judge.kind == JudgeKind.IMPORTED for judge in judges)


def find_reviewer_disagreements(frame: SamplingFrame) -> list[int]:
    """Comparisons with an unresolved disagreement among reviewers."""
    labels = Label.objects.filter(aspect__in=frame.aspects, unanimous=False).exclude(source=LabelSource.ADJUDICATED)
    return sort_by_queue_order(set(labels.values_list("comparison_id", flat=True)), frame)


def find_least_confident(frame: SamplingFrame) -> list[int]:
    """Comparisons by the judges' mean distance from even probabilities, closest first.

    Without probabilities from any judge: by the number of aspects on which its orders disagree, most first.
    """
    unsure: list[tuple[int, float]] = [(pk, distance) for pk, distance in select_judge_rows(SELECT_UNSURE, frame)]
    if not unsure:
        unsure = [(pk, -flips) for pk, flips in select_judge_rows(SELECT_FLIPPED, frame)]
    positions = {pk: number for number, pk in enumerate(frame.items)}
    ranked = sorted((distance, positions[pk], pk) for pk, distance in unsure if pk in positions)
    return [pk for _, _, pk in ranked]


STRATEGY_FINDERS: Final[Mapping[SelectionMethod, Callable[[SamplingFrame], "Iterator[int] | list[int]"]]] = {
    SelectionMethod.FLIPS: find_order_flips,
    SelectionMethod.JUDGES_DISAGREE: find_judge_disagreements,
    SelectionMethod.PEOPLE_DISAGREE: find_reviewer_disagreements,
    SelectionMethod.LEAST_CONFIDENT: find_least_confident,
}

MAX_REVIEWS_WANTED: Final = 100


@dataclass(frozen=True)
class SampledItem:
    """An item for a queue. ``probability`` as in ``QueueSlot``, None if it was not drawn at random."""

    item_id: int
    selection_method: SelectionMethod
    probability: float | None


MAX_QUEUE_SIZE: Final = 100_000

DEFAULT_RANDOM_PERCENT: Final = 20

# Strategies that draw at random have no share to choose.
FIXED_RANDOM_PERCENTS: Final[Mapping[SelectionMethod, int]] = {
    SelectionMethod.RANDOM: 100,
    SelectionMethod.STRATIFIED: 0,
}


@dataclass(frozen=True)
class QueuePlan:
    """The comparisons and reviewers of a new queue. ``size`` None: all that match.

    ``random_percent`` of them are drawn at random, the rest by the strategy. ``people`` is ignored for everyone.
    """

    strategy: SelectionMethod
    strata: StratifyBy | None = None
    size: int | None = None
    random_percent: int | None = None
    reviews_wanted: int = 1
    audience: QueueAudience = QueueAudience.EVERYONE
    people: Sequence[User] = ()
    seed: int = 0

    @property
    def reviews_each(self) -> int:
        """The reviews wanted of each comparison."""
        return len(self.people) or 1 if self.audience == QueueAudience.EACH else self.reviews_wanted

    @property
    def random_share(self) -> int:
        """The percentage that is drawn at random."""
        share = DEFAULT_RANDOM_PERCENT if self.random_percent is None else self.random_percent
        return FIXED_RANDOM_PERCENTS.get(self.strategy, share)

    @property
    def most(self) -> int:
        return MAX_QUEUE_SIZE if self.size is None else self.size

    @property
    def at_random(self) -> int:
        return math.ceil(self.most * self.random_share / 100)


def draw_queue_sample(frame: SamplingFrame, plan: QueuePlan) -> tuple[list[SampledItem], list[int]]:
    """The sample, random share first, and the items that the random order reached with it."""
    share, reached = draw_random_share(frame, plan.at_random)
    chosen = [SampledItem(item, SelectionMethod.RANDOM, 1.0) for item in share]
    remaining = plan.most - plan.at_random
    if plan.strategy == SelectionMethod.RANDOM or remaining <= 0:
        return chosen, reached
    drawn = set(reached)
    if plan.strategy == SelectionMethod.STRATIFIED:
        assert plan.strata is not None
        return chosen + draw_stratified(plan.strata, frame, remaining, drawn), reached
    matching = (
        item for item in rank_matching_items(plan.strategy, frame, remaining + len(share)) if item not in set(share)
    )
    by_strategy = [SampledItem(item, plan.strategy, None) for item in matching][:remaining]
    return chosen + by_strategy, reached


def add_probabilities(items: Iterable[SampledItem], default_queue: DefaultQueue) -> list[SampledItem]:
    """The sample with the random share's probability: the share of all comparisons drawn so far."""
    drawn = QueueItem.objects.filter(rubric_version=default_queue.rubric_version_id, drawn=True).count()
    share = drawn / max(default_queue.items, drawn, 1)
    return [
        SampledItem(item.item_id, item.selection_method, share)
        if item.selection_method == SelectionMethod.RANDOM
        else item
        for item in items
    ]


def interleave_random_share(items: Sequence[SampledItem], seed: int) -> list[SampledItem]:
    """One order with the random share spread evenly, so that half a queue has half of it.

    Within each selection method the order stays the same.
    """
    at_random = [item for item in items if item.selection_method == SelectionMethod.RANDOM]
    by_strategy = [item for item in items if item.selection_method != SelectionMethod.RANDOM]
    drawn = set(random.Random(seed).sample(range(len(items)), len(at_random)))
    next_random, next_by_strategy = iter(at_random), iter(by_strategy)
    return [next(next_random) if index in drawn else next(next_by_strategy) for index in range(len(items))]


def draw_stratified(
    strata: StratifyBy, frame: SamplingFrame, number: int, excluded: Collection[int]
) -> list[SampledItem]:
    """A sample that takes one of each stratum in turn, each in the random order.

    The probability is the share of the stratum that was drawn by then, however it was drawn.
    """
    size, drawn, waiting = count_strata(strata, frame, excluded)
    rounds = zip_longest(*([(stratum, item) for item in waiting[stratum]] for stratum in sorted(size)))
    sampled = [pair for turn in rounds for pair in turn if pair is not None][:number]
    sampled_by_stratum = Counter(stratum for stratum, _ in sampled)
    return [
        SampledItem(item, SelectionMethod.STRATIFIED, (drawn[stratum] + sampled_by_stratum[stratum]) / size[stratum])
        for stratum, item in sampled
    ]


def count_strata(
    strata: StratifyBy, frame: SamplingFrame, excluded: Collection[int]
) -> tuple[dict[str, int], dict[str, int], dict[str, list[int]]]:
    """By stratum: its size, the number drawn so far, and the items left."""
    with connection.cursor() as cursor:
        cursor.execute(SELECT_STRATA.format(**STRATUM_COLUMNS[strata]), [frame.version_id])
        rows = cursor.fetchall()
    free = set(frame.items.values())
    size: dict[str, int] = defaultdict(int)
    drawn: dict[str, int] = defaultdict(int)
    waiting: dict[str, list[int]] = defaultdict(list)
    for item, stratum, was_drawn in rows:
        size[stratum] += 1
        if was_drawn or item in excluded:
            drawn[stratum] += 1
        elif item in free:
            waiting[stratum].append(item)
    return size, drawn, waiting


def draw_random_share(frame: SamplingFrame, number: int) -> tuple[list[int], list[int]]:
    """The next items in the random order, and every item that the order reached with them.

    Items that are full or in another open queue are skipped, but count as reached.
    """
    free = set(frame.items.values())
    share: list[int] = []
    reached: list[int] = []
    waiting = QueueItem.objects.filter(rubric_version=frame.version_id, drawn=False).order_by("position")
    for item in waiting.values_list("pk", flat=True).iterator():
        if len(share) == number:
            break
        reached.append(item)
        if item in free:
            share.append(item)
    return share, reached


# ---- refusals


def get_review_version(evaluation: Evaluation) -> RubricVersion:
    if evaluation.archived_at is not None:
        raise InputRefused("This evaluation is archived. Restore it first.")
    if evaluation.review_rubric is None:
        raise InputRefused("No rubric for reviews yet. Choose one in Settings.")
    return evaluation.review_rubric


def refuse_invalid_plan(evaluation: Evaluation, plan: QueuePlan) -> RubricVersion:
    version = get_review_version(evaluation)
    if plan.strategy not in SELECTION_STRATEGIES:
        raise InputRefused(f"“{plan.strategy}” is not a strategy. Choose {', '.join(SELECTION_STRATEGIES)}.")
    if plan.most < 1:
        raise InputRefused("Enter a limit of 1 or more.")
    if plan.random_percent is not None and not 0 <= plan.random_percent <= 100:
        raise InputRefused("Enter a random share from 0 to 100%.")
    if not 1 <= plan.reviews_wanted <= MAX_REVIEWS_WANTED:
        raise InputRefused(f"Enter 1 to {MAX_REVIEWS_WANTED} reviews per comparison.")
    if plan.strategy == SelectionMethod.STRATIFIED and plan.strata is None:
        raise InputRefused("Choose groups: prompt categories or model pairs.")
    return version
