"""Progress of queues and reviewers."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from django.db.models import Count, F, IntegerField, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce, Greatest, Least
from django.shortcuts import get_object_or_404

from evaluations.access import Action, require_evaluation
from evaluations.domain.choices import FLIPPED_CHOICES, Choice, ShownOrder
from evaluations.domain.reviews import (
    RANDOM_SELECTION,
    SAVED_REVIEW_STATES,
    AssignmentState,
    QueueKind,
    ReviewState,
    SelectionMethod,
)
from evaluations.domain.roles import RaterKind
from evaluations.domain.rubrics import AspectSpec
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater
from evaluations.models.queues import Assignment, Queue, QueueItem, QueueProgress, QueueSlot
from evaluations.models.users import User
from evaluations.models.verdicts import Adjudication, Review, Verdict
from evaluations.verdicts.reviewer_choices import load_first_choices

# Comparison → aspect → choice as stored.
KnownLabels = Mapping[int, Mapping[str, Choice]]


def get_known_labels(comparisons: Collection[int]) -> KnownLabels:
    """Comparison → aspect → choice: the resolution, else what all gold verdicts agree on."""
    choices: dict[int, dict[str, set[Choice]]] = defaultdict(lambda: defaultdict(set))
    gold = Verdict.objects.filter(comparison__in=comparisons, rater__kind=RaterKind.GOLD)
    for pk, key, choice in gold.values_list("comparison", "aspect__key", "choice"):
        choices[pk][key].add(Choice(choice))
    resolutions = Adjudication.objects.filter(comparison__in=comparisons)
    for pk, key, choice in resolutions.values_list("comparison", "aspect__key", "choice"):
        choices[pk][key] = {Choice(choice)}
    return {
        pk: {key: min(options) for key, options in by_key.items() if len(options) == 1}
        for pk, by_key in choices.items()
    }


# Skipping counts too, so that a comparison that a reviewer cannot decide does not block them.
PASSED_STATES: Final = (*SAVED_REVIEW_STATES, ReviewState.SKIPPED)


@dataclass(frozen=True)
class CalibrationProgress:
    """A rater's progress in a calibration. ``is_news``: finished, with the result not opened yet.

    ``position``: of the comparison shown; None if it is not in the calibration.
    """

    queue: Queue
    done: int
    total: int
    is_news: bool = False
    position: int | None = None

    @property
    def is_finished(self) -> bool:
        return self.done >= self.total


@dataclass(frozen=True)
class CalibrationAgreement:
    """On one aspect: the number of known labels compared, and of those agreed with."""

    aspect: AspectSpec
    compared: int
    agreed: int

    @property
    def share(self) -> float | None:
        return self.agreed / self.compared if self.compared else None


@dataclass(frozen=True)
class CalibrationDifference:
    """A choice that differs from the known label, both in terms of A and B as stored."""

    comparison: Comparison
    review: Review
    aspect: AspectSpec
    chosen: Choice
    known: Choice

    @property
    def chosen_as_seen(self) -> Choice:
        return self.as_seen(self.chosen)

    @property
    def known_as_seen(self) -> Choice:
        return self.as_seen(self.known)

    def as_seen(self, choice: Choice) -> Choice:
        """The choice in terms of the left and right that the reviewer saw."""
        return FLIPPED_CHOICES[choice] if self.review.shown == ShownOrder.SWAPPED else choice


@dataclass(frozen=True)
class CalibrationResult:
    progress: CalibrationProgress
    agreements: tuple[CalibrationAgreement, ...]
    differences: tuple[CalibrationDifference, ...]
    skipped: int

    @property
    def overall(self) -> CalibrationAgreement | None:
        """The agreement over all aspects; None if nothing could be compared."""
        compared = sum(agreement.compared for agreement in self.agreements)
        agreed = sum(agreement.agreed for agreement in self.agreements)
        return CalibrationAgreement(AspectSpec("", "All aspects", ""), compared, agreed) if compared else None


def get_queue_or_404(user: User, slug: str, pk: int, action: Action) -> Queue:
    evaluation = require_evaluation(user, slug, action)
    queues = Queue.objects.select_related("user", "rubric_version__rubric")
    queue = get_object_or_404(queues, evaluation=evaluation, pk=pk)
    queue.evaluation = evaluation
    return queue


def list_queues(evaluation: Evaluation, *, archived: bool) -> "QuerySet[Queue]":
    """The archived queues of the evaluation, or all others."""
    queues = Queue.objects.filter(evaluation=evaluation, closed_at__isnull=not archived)
    return queues.select_related("evaluation", "rubric_version__rubric")


def is_queue_deletable(queue: Queue) -> bool:
    """Whether nothing was reviewed in the queue, and nobody saw its known labels."""
    has_reviews = Review.objects.filter(queue=queue).exists()
    is_reviewed = Assignment.objects.filter(slot__queue=queue, state=AssignmentState.DONE).exists()
    return not (has_reviews or is_reviewed or queue.queue_progress.filter(result_seen_at__isnull=False).exists())


def get_open_calibrations(evaluation: Evaluation) -> "QuerySet[Queue]":
    """The open calibrations of the current rubric version."""
    queues: QuerySet[Queue] = Queue.objects.filter(
        evaluation=evaluation,
        rubric_version=evaluation.review_rubric_id,
        kind=QueueKind.CALIBRATION,
        closed_at__isnull=True,
    )
    return queues.order_by("pk")


# ---- the result


def get_calibration_result(queue: Queue, rater: Rater) -> CalibrationResult:
    """The rater's first choices compared with the known labels, for a finished calibration."""
    return get_calibration_results(queue, [rater])[rater.pk]


def get_calibration_results(queue: Queue, raters: Collection[Rater]) -> Mapping[int, CalibrationResult]:
    """The results by rater id, in the same number of queries for any number of raters."""
    aspects = queue.rubric_version.spec().aspects
    comparisons = list(queue.slots.order_by("position").values_list("item__comparison", flat=True))
    known = get_known_labels(comparisons)
    reviews = Review.objects.filter(
        rater__in=raters, rubric_version=queue.rubric_version_id, comparison__in=comparisons, state__in=PASSED_STATES
    ).select_related("comparison__query")
    by_rater: dict[int, list[Review]] = defaultdict(list)
    for review in sorted(reviews, key=lambda review: comparisons.index(review.comparison_id)):
        by_rater[review.rater_id].append(review)
    chosen = load_first_choices(reviews, aspects)
    return {
        rater.pk: build_calibration_result(
            CalibrationProgress(queue, len(by_rater[rater.pk]), len(comparisons)),
            by_rater[rater.pk],
            aspects,
            known,
            chosen,
        )
        for rater in raters
    }


def build_calibration_result(
    progress: CalibrationProgress,
    reviews: list[Review],
    aspects: tuple[AspectSpec, ...],
    known: KnownLabels,
    chosen: KnownLabels,
) -> CalibrationResult:
    pairs = [
        (review, aspect, chosen[review.pk][aspect.key], known[review.comparison_id][aspect.key])
        for review in reviews
        for aspect in aspects
        if aspect.key in chosen.get(review.pk, {}) and aspect.key in known.get(review.comparison_id, {})
    ]
    agreements = tuple(
        CalibrationAgreement(aspect, len(matches), sum(matches))
        for aspect in aspects
        for matches in [[choice == label for _, about, choice, label in pairs if about is aspect]]
    )
    differences = tuple(
        CalibrationDifference(review.comparison, review, aspect, choice, label)
        for review, aspect, choice, label in pairs
        if choice != label
    )
    skipped = sum(review.state == ReviewState.SKIPPED for review in reviews)
    return CalibrationResult(progress, agreements, differences, skipped)


@dataclass(frozen=True)
class DefaultQueueStatus:
    """The default queue. ``drawn`` comparisons are the random sample that estimates use.

    ``calibrating`` are in an open calibration, where reviews take no slot: until it is closed, no further reviews of
    them are wanted.
    """

    comparisons: int
    drawn: int
    reviews: int
    wanted: int
    calibrating: int = 0


@dataclass(frozen=True)
class QueueStatus:
    """``reviews`` counts at most the reviews wanted of each comparison; ``drawn`` those drawn at random.

    ``calibrating`` of its comparisons are in an open calibration, which keeps so many reviews ``waiting``.
    """

    queue: Queue
    comparisons: int = 0
    drawn: int = 0
    reviews: int = 0
    people: int = 0
    calibrating: int = 0
    waiting: int = 0

    @property
    def wanted(self) -> int:
        return self.comparisons * self.queue.reviews_wanted - self.waiting

    @property
    def is_calibration(self) -> bool:
        return self.queue.kind == QueueKind.CALIBRATION


@dataclass(frozen=True)
class ReviewerWork:
    """One reviewer's work on the current rubric version, or within a queue.

    ``reasons``: reasons for skips with their number, most frequent first.
    """

    name: str
    done: int = 0
    assigned: int = 0
    open: int = 0
    skipped: int = 0
    median_seconds: float | None = None
    reasons: tuple[tuple[str, int], ...] = ()


def get_default_queue_status(evaluation: Evaluation) -> DefaultQueueStatus:
    """The default queue's progress; comparisons without an item count as wanted."""
    version = evaluation.review_rubric_id
    comparisons = Comparison.reviewable.filter(evaluation=evaluation).count()
    items = QueueItem.objects.filter(rubric_version=version, comparison__evaluation=evaluation)
    totals = items.aggregate(
        known=Count("pk"), drawn=Count("pk", filter=Q(drawn=True)), wanted=Coalesce(Sum("wanted"), 0)
    )
    reviews = get_saved_reviews(version).filter(comparison__evaluation=evaluation).count()
    without_item = max(comparisons - totals["known"], 0)
    wanted = totals["wanted"] + without_item * evaluation.reviews_wanted
    missing = Greatest(F("wanted") - F("taken"), 0)
    calibrating = items.filter(pk__in=get_items_in_calibration()).aggregate(
        items=Count("pk"), missing=Coalesce(Sum(missing), 0)
    )
    return DefaultQueueStatus(
        comparisons, totals["drawn"], reviews, wanted - calibrating["missing"], calibrating["items"]
    )


def get_items_in_calibration() -> "QuerySet[QueueSlot, int]":
    """The items of open calibrations."""
    slots = QueueSlot.objects.filter(queue__kind=QueueKind.CALIBRATION, queue__closed_at__isnull=True)
    return slots.values_list("item", flat=True)


def count_assigned_to(evaluation: Evaluation, rater: Rater | None) -> int:
    """The number of comparisons assigned to this rater and not reviewed yet."""
    if rater is None:
        return 0
    version = evaluation.review_rubric_id
    return Assignment.objects.filter(rater=rater, state=AssignmentState.ASSIGNED, item__rubric_version=version).count()


def has_seen_known_label(review: Review) -> bool:
    """Whether the rater has opened the result of a calibration that the comparison is in."""
    items = QueueItem.objects.filter(comparison=review.comparison_id, rubric_version=review.rubric_version_id)
    seen = QueueProgress.objects.filter(rater=review.rater_id, result_seen_at__isnull=False)
    return seen.filter(queue__slots__item__in=items).exists()


def get_saved_reviews(version_id: int | None) -> "QuerySet[Review]":
    """Saved reviews by this rubric version, without calibration."""
    saved: QuerySet[Review] = Review.objects.filter(rubric_version=version_id, state__in=SAVED_REVIEW_STATES)
    return saved.exclude(selection_method=SelectionMethod.CALIBRATION)


def get_queue_statuses(queues: Collection[Queue]) -> Mapping[int, QueueStatus]:
    """Queue id → progress, in four queries for any number of queues."""
    slots = QueueSlot.objects.filter(queue__in=queues).order_by("queue").values_list("queue")
    is_random = Q(selection_method__in=[method.value for method in RANDOM_SELECTION])
    counted = slots.annotate(size=Count("pk"), drawn=Count("pk", filter=is_random))
    sizes = {number: (comparisons, drawn) for number, comparisons, drawn in counted}
    done = dict(slots.annotate(done=Sum(count_slot_reviews())))
    missing = Sum(F("queue__reviews_wanted") - count_slot_reviews())
    calibrating = slots.filter(item__in=get_items_in_calibration()).annotate(size=Count("pk"), missing=missing)
    in_calibration = {number: (comparisons, reviews) for number, comparisons, reviews in calibrating}
    people = dict(
        Assignment.objects.filter(slot__queue__in=queues)
        .values("slot__queue")
        .annotate(people=Count("rater", distinct=True))
        .values_list("slot__queue", "people")
    )
    return {
        queue.pk: QueueStatus(
            queue,
            *sizes.get(queue.pk, (0, 0)),
            done.get(queue.pk) or 0,
            people.get(queue.pk, 0),
            *in_calibration.get(queue.pk, (0, 0)),
        )
        for queue in queues
    }


def count_slot_reviews() -> Least:
    """Completed reviews of a slot, by anyone, up to the number that the queue wants."""
    done = Assignment.objects.filter(item=OuterRef("item"), state=AssignmentState.DONE)
    counted = (
        done.exclude(selection_method=SelectionMethod.CALIBRATION)
        .order_by()
        .values("item")
        .annotate(number=Count("pk"))
    )
    number = Subquery(counted.values("number"), output_field=IntegerField())
    return Least(Coalesce(number, 0), F("queue__reviews_wanted"), output_field=IntegerField())


def get_queue_work(queue: Queue) -> Sequence[ReviewerWork]:
    """Work of each reviewer in the queue, largest first."""
    states = (AssignmentState.DONE, AssignmentState.ASSIGNED, AssignmentState.RESERVED, AssignmentState.SKIPPED)
    assignments = Assignment.objects.filter(slot__queue=queue).values_list("rater__name")
    counted = assignments.annotate(**{state: Count("pk", filter=Q(state=state)) for state in states})
    work = [ReviewerWork(*row) for row in counted]
    return sorted(work, key=lambda row: (-row.done - row.assigned, row.name))


def get_reviewer_work(evaluation: Evaluation, raters: Collection[Rater]) -> Mapping[int, ReviewerWork]:
    """Rater id → work, with the median time of a review."""
    by_raters = Q(rater__in=raters)
    seconds: dict[int, list[int]] = defaultdict(list)
    saved = get_saved_reviews(evaluation.review_rubric_id).filter(by_raters)
    for rater, milliseconds in saved.values_list("rater", "active_ms"):
        seconds[rater].append(milliseconds)
    assignments = Assignment.objects.filter(
        by_raters, item__rubric_version=evaluation.review_rubric_id, state=AssignmentState.ASSIGNED
    )
    assigned = dict(assignments.values_list("rater").annotate(Count("pk")))
    reasons = count_skip_reasons(evaluation, raters)
    return {
        rater.pk: ReviewerWork(
            rater.name,
            len(seconds[rater.pk]),
            assigned.get(rater.pk, 0),
            skipped=sum(number for _, number in reasons[rater.pk]),
            median_seconds=get_median_seconds(seconds[rater.pk]),
            reasons=tuple(reasons[rater.pk]),
        )
        for rater in raters
    }


def count_skip_reasons(evaluation: Evaluation, raters: Collection[Rater]) -> Mapping[int, list[tuple[str, int]]]:
    """Rater id → reasons of skips that were not reviewed since, with counts."""
    skipped = Review.objects.filter(
        rater__in=raters, rubric_version=evaluation.review_rubric_id, state=ReviewState.SKIPPED
    )
    counted = skipped.values_list("rater", "skip_reason").annotate(number=Count("pk"))
    reasons: dict[int, list[tuple[str, int]]] = defaultdict(list)
    for rater, reason, number in counted.order_by("-number", "skip_reason"):
        reasons[rater].append((reason, number))
    return reasons


def get_median_seconds(milliseconds: Collection[int]) -> float | None:
    """The median of the measured times; pages without JavaScript measure none."""
    measured = [value for value in milliseconds if value]
    return median(measured) / 1000 if measured else None


@dataclass(frozen=True)
class SlotStatus:
    """One comparison of a queue: who has reviewed it, and who is assigned to it."""

    slot: QueueSlot
    done: tuple[str, ...]
    waiting: tuple[str, ...]


# Lists show no messages of queries or responses, so these are not read.
SLOT_COLUMNS: Final = (
    *("queue", "position", "selection_method", "probability"),
    *("item__comparison__query__text", "item__comparison__evaluation", "item__comparison__origin"),
)


def list_slots(queue: Queue) -> "QuerySet[QueueSlot]":
    return queue.slots.select_related("queue", "item__comparison__query").only(*SLOT_COLUMNS)


def get_slot_statuses(slots: Sequence[QueueSlot]) -> list[SlotStatus]:
    """The status of these slots, in one query."""
    states: dict[tuple[int, bool], list[str]] = defaultdict(list)
    assignments = Assignment.objects.filter(
        item__in=[slot.item_id for slot in slots],
        state__in=(AssignmentState.DONE, AssignmentState.ASSIGNED, AssignmentState.RESERVED),
    )
    for item, state, name in assignments.order_by("rater__name").values_list("item", "state", "rater__name"):
        states[item, state == AssignmentState.DONE].append(name)
    return [SlotStatus(slot, tuple(states[slot.item_id, True]), tuple(states[slot.item_id, False])) for slot in slots]


def describe_assigned(number: int, people: Sequence[User]) -> str:
    """A sentence: how many comparisons were assigned to whom."""
    names = ", ".join(map(str, people))
    return f"{number} comparison{'' if number == 1 else 's'} assigned to {names}, up next."
