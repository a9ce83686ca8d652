"""The comparisons that a queue takes by its order of work."""

import math
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final

from django.db import connection
from django.db.models import Q

from evaluations.domain.choices import LabelSource
from evaluations.domain.errors import InputRefused
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

# Of what one statement found so many are looked at together, where it may have found too much.
CHECKED_AT_ONCE: Final = 500


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
        version.pk, items, get_sampling_judges(evaluation), list(version.asked.values_list("aspect", flat=True))
    )


def get_sampling_judges(evaluation: Evaluation) -> list[Rater]:
    """The shown judge and every pairwise LLM judge. Pointwise judges have no orders to differ in."""
    kinds = Q(judge__kind=JudgeKind.LLM) | Q(judge=evaluation.shown_judge_id, judge__isnull=False)
    raters = (
        Rater.objects.current().filter(kinds, evaluation=evaluation).select_related("judge__rubric_version__rubric")
    )
    pairwise = raters.exclude(judge__rubric_version__rubric__kind=RubricKind.POINTWISE)
    return list(pairwise.order_by("pk"))


def rank_matching_items(strategy: SelectionMethod, field: SamplingFrame, number: int | None = None) -> list[int]:
    """The items that match a deterministic strategy, best first, up to ``number``."""
    found = STRATEGY_FINDERS[strategy](field)
    items = (field.items[pk] for pk in found if pk in field.items)
    return list(items)[:number] if number is not None else list(items)


def select_judge_rows(statement: str, field: SamplingFrame) -> list[tuple[Any, ...]]:
    """Rows of a statement over the judges' verdicts on the current rubric's aspects."""
    if not field.judges or not field.aspects:
        return []
    raters, aspects = (", ".join(["%s"] * len(some)) for some in (field.judges, field.aspects))
    with connection.cursor() as cursor:
        values = [*(rater.pk for rater in field.judges), *field.aspects]
        cursor.execute(statement.format(raters=raters, aspects=aspects), values)
        return list(cursor.fetchall())


def sort_by_queue_order(comparisons: Collection[int], field: SamplingFrame) -> list[int]:
    return [pk for pk in field.items if pk in comparisons]


def find_order_flips(field: SamplingFrame) -> Iterator[int]:
    """Comparisons on which a judge's two orders disagree on an aspect."""
    found = {pk for pk, _ in select_judge_rows(SELECT_FLIPPED, field)} | find_imported_flips(field)
    return confirm_with_verdicts(
        sort_by_queue_order(found, field), field, lambda said: any(one.inconsistent for one in said)
    )


def find_imported_flips(field: SamplingFrame) -> set[int]:
    """Comparisons with an imported verdict that was inconsistent across orders."""
    imported = [rater for rater in field.judges if rater.judge and rater.judge.kind == JudgeKind.IMPORTED]
    if not imported:
        return set()
    verdicts = Verdict.objects.filter(rater__in=imported, aspect__in=field.aspects, inconsistent=True)
    return set(verdicts.values_list("comparison_id", flat=True))


def find_judge_disagreements(field: SamplingFrame) -> Iterator[int]:
    """Comparisons on which two judges differ on an aspect, each over both orders."""
    found = {pk for (pk,) in select_judge_rows(SELECT_DIFFERING, field)}
    return confirm_with_verdicts(sort_by_queue_order(found, field), field, None)


def confirm_with_verdicts(
    found: Sequence[int], field: SamplingFrame, fits: "Callable[[list[Any]], bool] | None"
) -> Iterator[int]:
    """The comparisons, checked one by one where counting rows finds too many.

    Several samples of an order speak by their plurality, and an order without an answer makes the
    verdict missing: one statement knows neither.
    """
    if not needs_confirmation(field):
        yield from found
        return
    for start in range(0, len(found), CHECKED_AT_ONCE):
        some = found[start : start + CHECKED_AT_ONCE]
        told = load_choices_of_judges(field.judges, some)
        for pk in some:
            by_aspect = defaultdict(list)
            for rater in field.judges:
                for key, folded in told[rater.pk].get(pk, {}).items():
                    by_aspect[key].append(folded)
            if fits is None:
                if any(len({one.choice for one in said}) > 1 for said in by_aspect.values()):
                    yield pk
            elif any(fits(said) for said in by_aspect.values()):
                yield pk


def needs_confirmation(field: SamplingFrame) -> bool:
    judges = [rater.judge for rater in field.judges]
    calls = Call.objects.filter(judge__in=[judge for judge in judges if judge])
    if calls.exclude(state="answered").exists():
        return True
    return calls.filter(sample__gt=0).exists() or any(judge and judge.kind == JudgeKind.IMPORTED for judge in judges)


def find_reviewer_disagreements(field: SamplingFrame) -> list[int]:
    """Comparisons with an unresolved disagreement among reviewers."""
    labels = Label.objects.filter(aspect__in=field.aspects, unanimous=False).exclude(source=LabelSource.ADJUDICATED)
    return sort_by_queue_order(set(labels.values_list("comparison_id", flat=True)), field)


def find_least_confident(field: SamplingFrame) -> list[int]:
    """Comparisons by the judges' mean distance from even probabilities, closest first.

    Where no judge gave probabilities: by the number of aspects on which its orders disagree, the most first.
    """
    unsure: list[tuple[int, float]] = [(pk, far) for pk, far in select_judge_rows(SELECT_UNSURE, field)]
    if not unsure:
        unsure = [(pk, -many) for pk, many in select_judge_rows(SELECT_FLIPPED, field)]
    place = {pk: number for number, pk in enumerate(field.items)}
    ranked = sorted((far, place[pk], pk) for pk, far in unsure if pk in place)
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

# Where everything is drawn at random there is no share to choose.
FIXED_RANDOM_PERCENTS: Final[Mapping[SelectionMethod, int]] = {
    SelectionMethod.RANDOM: 100,
    SelectionMethod.STRATIFIED: 0,
}


@dataclass(frozen=True)
class QueuePlan:
    """The comparisons and reviewers of a new queue. ``size`` None: all that match.

    ``random_percent`` of them are drawn at random, the rest by the strategy. ``people`` count unless it is
    for everyone.
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


def draw_queue_sample(field: SamplingFrame, plan: QueuePlan) -> tuple[list[SampledItem], list[int]]:
    """The sample, random share first, and the items that the random order reached with it."""
    share, reached = draw_random_share(field, plan.at_random)
    chosen = [SampledItem(item, SelectionMethod.RANDOM, 1.0) for item in share]
    more = plan.most - plan.at_random
    if plan.strategy == SelectionMethod.RANDOM or more <= 0:
        return chosen, reached
    drawn = set(reached)
    if plan.strategy == SelectionMethod.STRATIFIED:
        assert plan.strata is not None
        return chosen + draw_stratified(plan.strata, field, more, drawn), reached
    others = (item for item in rank_matching_items(plan.strategy, field, more + len(share)) if item not in set(share))
    by_strategy = [SampledItem(item, plan.strategy, None) for item in others][:more]
    return chosen + by_strategy, reached


def add_probabilities(chosen: Iterable[SampledItem], default_queue: DefaultQueue) -> list[SampledItem]:
    """The sample with the random share's probability: the share of all comparisons drawn so far."""
    drawn = QueueItem.objects.filter(rubric_version=default_queue.rubric_version_id, drawn=True).count()
    share = drawn / max(default_queue.items, drawn, 1)
    return [
        SampledItem(one.item_id, one.selection_method, share) if one.selection_method == SelectionMethod.RANDOM else one
        for one in chosen
    ]


def interleave_random_share(chosen: Sequence[SampledItem], seed: int) -> list[SampledItem]:
    """One order with the random share spread evenly, so that half a queue has half of it.

    Within each way of selection the order stays: the best first, or the next in the random order.
    """
    at_random = [one for one in chosen if one.selection_method == SelectionMethod.RANDOM]
    others = [one for one in chosen if one.selection_method != SelectionMethod.RANDOM]
    drawn = set(random.Random(seed).sample(range(len(chosen)), len(at_random)))
    one_by_one, other_by_other = iter(at_random), iter(others)
    return [next(one_by_one) if place in drawn else next(other_by_other) for place in range(len(chosen))]


def draw_stratified(
    strata: StratifyBy, field: SamplingFrame, number: int, without: Collection[int]
) -> list[SampledItem]:
    """A sample that takes one of each stratum in turn, each in the random order.

    The probability is the share of the stratum that was drawn by then, however it was drawn.
    """
    size, drawn, waiting = count_strata(strata, field, without)
    turns = zip_longest(*([(one, item) for item in waiting[one]] for one in sorted(size)))
    sampled = [pair for turn in turns for pair in turn if pair is not None][:number]
    taken = Counter(one for one, _ in sampled)
    return [
        SampledItem(item, SelectionMethod.STRATIFIED, (drawn[one] + taken[one]) / size[one]) for one, item in sampled
    ]


def count_strata(
    strata: StratifyBy, field: SamplingFrame, without: Collection[int]
) -> tuple[dict[str, int], dict[str, int], dict[str, list[int]]]:
    """By stratum: its size, the number drawn so far, and the items left."""
    with connection.cursor() as cursor:
        cursor.execute(SELECT_STRATA.format(**STRATUM_COLUMNS[strata]), [field.version_id])
        rows = cursor.fetchall()
    free = set(field.items.values())
    size: dict[str, int] = defaultdict(int)
    drawn: dict[str, int] = defaultdict(int)
    waiting: dict[str, list[int]] = defaultdict(list)
    for item, stratum, was_drawn in rows:
        size[stratum] += 1
        if was_drawn or item in without:
            drawn[stratum] += 1
        elif item in free:
            waiting[stratum].append(item)
    return size, drawn, waiting


def draw_random_share(field: SamplingFrame, number: int) -> tuple[list[int], list[int]]:
    """The next items in the random order, and every item that the order reached with them.

    What is full or in another open queue is passed over: its turn has come too.
    """
    free = set(field.items.values())
    share: list[int] = []
    reached: list[int] = []
    waiting = QueueItem.objects.filter(rubric_version=field.version_id, drawn=False).order_by("position")
    for item in waiting.values_list("pk", flat=True).iterator():
        if len(share) == number:
            break
        reached.append(item)
        if item in free:
            share.append(item)
    return share, reached


# ---- what is refused -----------------------------------------------------------------------


def get_review_version(evaluation: Evaluation) -> RubricVersion:
    if evaluation.archived_at is not None:
        raise InputRefused("This evaluation is archived: bring it back first.")
    if evaluation.review_rubric is None:
        raise InputRefused("This evaluation has no rubric for reviews yet: choose one in its settings.")
    return evaluation.review_rubric


def refuse_invalid_plan(evaluation: Evaluation, plan: QueuePlan) -> RubricVersion:
    version = get_review_version(evaluation)
    if plan.strategy not in SELECTION_STRATEGIES:
        raise InputRefused(f"“{plan.strategy}” is no order of work: choose one of {', '.join(SELECTION_STRATEGIES)}.")
    if plan.most < 1:
        raise InputRefused("A queue holds at least one comparison: say how many.")
    if plan.random_percent is not None and not 0 <= plan.random_percent <= 100:
        raise InputRefused("The random share of a queue is between 0 and 100 percent.")
    if not 1 <= plan.reviews_wanted <= MAX_REVIEWS_WANTED:
        raise InputRefused(f"Each comparison of a queue gets between 1 and {MAX_REVIEWS_WANTED} reviews.")
    if plan.strategy == SelectionMethod.STRATIFIED and plan.strata is None:
        raise InputRefused("Choose what the groups are, to draw equally from: categories, or pairs of candidates.")
    return version
