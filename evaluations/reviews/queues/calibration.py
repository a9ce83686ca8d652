"""Calibration queues of comparisons with known labels, with each reviewer's result."""

import random
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet
from django.utils import timezone

from evaluations.access import ALLOWED_ROLES, Action
from evaluations.audit.events import record_event
from evaluations.domain.errors import InputRefused
from evaluations.domain.reviews import QueueKind, SelectionMethod
from evaluations.domain.roles import RaterKind
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater, find_rater_of_user, get_or_create_rater
from evaluations.models.queues import Queue, QueueItem, QueueProgress, QueueSlot
from evaluations.models.rubrics import RubricVersion
from evaluations.models.users import Membership, User
from evaluations.models.verdicts import Adjudication, Review, Verdict
from evaluations.reviews.queues.items import ensure_queue_is_filled
from evaluations.reviews.queues.reservations import get_or_create_queue_progress
from evaluations.reviews.queues.selectors import (
    PASSED_STATES,
    CalibrationProgress,
    CalibrationResult,
    get_calibration_result,
    get_calibration_results,
)
from evaluations.reviews.queues.services import refuse_queue_name

MAX_CALIBRATION_ITEMS: Final = 200


def find_comparisons_with_known_labels(evaluation: Evaluation) -> "QuerySet[Comparison]":
    """Comparisons with a gold verdict or a resolution on an aspect of the current rubric."""
    version = evaluation.review_rubric
    aspects = list(version.rubric_aspects.values_list("aspect", flat=True)) if version else []
    gold = Verdict.objects.filter(comparison=OuterRef("pk"), rater__kind=RaterKind.GOLD, aspect__in=aspects)
    resolved = Adjudication.objects.filter(comparison=OuterRef("pk"), aspect__in=aspects)
    comparisons: QuerySet[Comparison] = Comparison.objects.filter(evaluation=evaluation)
    return comparisons.filter(Exists(gold) | Exists(resolved))


def create_calibration(
    evaluation: Evaluation,
    *,
    name: str,
    size: int | None = None,
    comparisons: Collection[int] = (),
    seed: int = 0,
    user: User | None,
) -> Queue:
    """A calibration queue of these comparisons, or of a random sample of those with known labels."""
    version = evaluation.review_rubric
    if version is None:
        raise InputRefused("No rubric for reviews yet. Choose one in Settings.")
    if (size is None) != bool(comparisons):
        raise InputRefused("Enter either a sample size or comparison numbers.")
    refuse_queue_name(evaluation, name := name.strip())
    ensure_queue_is_filled(evaluation)
    possible = sorted(find_comparisons_with_known_labels(evaluation).values_list("pk", flat=True))
    chosen = (
        choose_named_comparisons(possible, comparisons)
        if comparisons
        else draw_calibration_comparisons(possible, size or 0, seed)
    )
    with transaction.atomic():
        queue = Queue.objects.create(
            evaluation=evaluation,
            rubric_version=version,
            user=user,
            name=name,
            kind=QueueKind.CALIBRATION,
            strategy=SelectionMethod.CALIBRATION,
            random_percent=0,
            population=len(possible),
            seed=seed,
        )
        insert_calibration_slots(queue, version, chosen)
        after = {"name": name, "kind": QueueKind.CALIBRATION, "comparisons": len(chosen), "seed": seed}
        record_event("created queue", queue, user=user, evaluation=evaluation, after=after)
    return queue


def choose_named_comparisons(possible: Collection[int], comparisons: Collection[int]) -> list[int]:
    chosen = list(dict.fromkeys(comparisons))
    if unknown := sorted(set(chosen) - set(possible)):
        numbers = ", ".join(str(pk) for pk in unknown[:5])
        raise InputRefused(f"No gold label or resolution for {numbers}. Choose comparisons that have one.")
    if len(chosen) > MAX_CALIBRATION_ITEMS:
        raise InputRefused(
            f"A calibration can have up to {MAX_CALIBRATION_ITEMS} comparisons; you chose {len(chosen)}."
        )
    return chosen


def draw_calibration_comparisons(possible: Collection[int], size: int, seed: int) -> list[int]:
    if not possible:
        raise InputRefused("No gold labels yet. Import verdicts with rater kind “gold”, or resolve disagreements.")
    if not 1 <= size <= min(len(possible), MAX_CALIBRATION_ITEMS):
        raise InputRefused(
            f"Enter a sample size from 1 to {min(len(possible), MAX_CALIBRATION_ITEMS)}, the number with a gold label."
        )
    return random.Random(seed).sample(sorted(possible), size)


def insert_calibration_slots(queue: Queue, version: RubricVersion, chosen: Iterable[int]) -> None:
    """Insert the slots, with queue items if they are missing. Calibration takes no slot."""
    wanted = queue.evaluation.reviews_wanted
    positions = dict(Comparison.objects.filter(pk__in=list(chosen)).values_list("pk", "random_order"))
    QueueItem.objects.bulk_create(
        [
            QueueItem(rubric_version=version, comparison_id=pk, position=position, wanted=wanted)
            for pk, position in positions.items()
        ],
        ignore_conflicts=True,
    )
    items = dict(
        QueueItem.objects.filter(rubric_version=version, comparison__in=positions).values_list("comparison", "pk")
    )
    QueueSlot.objects.bulk_create(
        QueueSlot(queue=queue, item_id=items[pk], position=position, selection_method=SelectionMethod.CALIBRATION)
        for position, pk in enumerate(chosen, start=1)
    )


def get_calibration_progress(
    calibrations: Iterable[Queue], rater: Rater | None, comparison: Comparison | None = None
) -> CalibrationProgress | None:
    """The rater's first unfinished one of these open calibrations, else the first with an unseen result."""
    in_each = [get_progress_in_calibration(queue, rater) for queue in calibrations]
    unfinished = next((progress for progress in in_each if not progress.is_finished), None)
    if unfinished is None or comparison is None:
        return unfinished or next((progress for progress in in_each if progress.is_news), None)
    slots = unfinished.queue.slots.filter(item__comparison=comparison)
    return replace(unfinished, position=slots.values_list("position", flat=True).first())


def find_unseen_calibration(calibrations: Iterable[Queue], rater: Rater | None) -> Queue | None:
    """The one of these open calibrations whose result the rater sees before going on."""
    progress = get_calibration_progress(calibrations, rater)
    return progress.queue if progress and progress.is_news else None


def is_end_of_calibration(calibrations: Iterable[Queue], rater: Rater, comparisons: Collection[int]) -> bool:
    """Whether these comparisons are the last of the rater's open calibrations: the result comes next."""
    remaining: set[int] = set()
    for calibration in calibrations:
        reviewed = get_calibration_reviews(calibration, rater).values("comparison")
        remaining.update(
            calibration.slots.exclude(item__comparison__in=reviewed).values_list("item__comparison", flat=True)
        )
    return bool(remaining) and remaining.issubset(comparisons)


def get_progress_in_calibration(queue: Queue, rater: Rater | None) -> CalibrationProgress:
    total = queue.slots.count()
    done = get_calibration_reviews(queue, rater).count() if rater else 0
    seen = QueueProgress.objects.filter(rater=rater, queue=queue, result_seen_at__isnull=False)
    return CalibrationProgress(queue, done, total, is_news=done >= total and rater is not None and not seen.exists())


def get_calibration_reviews(queue: Queue, rater: Rater) -> "QuerySet[Review]":
    """The rater's reviews of the queue's comparisons, including earlier ones."""
    reviews: QuerySet[Review] = Review.objects.filter(
        rater=rater,
        rubric_version=queue.rubric_version_id,
        comparison__in=queue.slots.values("item__comparison"),
        state__in=PASSED_STATES,
    )
    return reviews


def record_calibration_result_seen(queue: Queue, user: User) -> None:
    """Record that the user opened the result, so that it is offered once."""
    progress = get_or_create_queue_progress(get_or_create_rater(user, queue.evaluation).pk, queue)
    if progress.result_seen_at is not None:
        return
    unseen = QueueProgress.objects.filter(pk=progress.pk, result_seen_at__isnull=True)
    with transaction.atomic():
        if unseen.update(result_seen_at=timezone.now()):
            record_event("saw calibration result", queue, user=user, evaluation=queue.evaluation)


# ---- results


@dataclass(frozen=True)
class CalibrationRow:
    """``result``: None for a member who has not begun."""

    member: Membership
    rater: Rater | None
    result: CalibrationResult | None


def get_reviewing_members(queue: Queue) -> "QuerySet[Membership]":
    members = Membership.objects.filter(evaluation=queue.evaluation, role__in=ALLOWED_ROLES[Action.REVIEW])
    return members.select_related("user")


def get_own_calibration_result(queue: Queue, user: User) -> CalibrationResult:
    return get_calibration_result(queue, find_rater_of_user(user, queue.evaluation) or Rater(pk=0))


def get_calibration_rows(queue: Queue, members: Sequence[Membership]) -> list[CalibrationRow]:
    users = [member.user_id for member in members]
    raters = {rater.user_id: rater for rater in Rater.objects.filter(evaluation=queue.evaluation, user__in=users)}
    results = get_calibration_results(queue, list(raters.values()))
    begun = {rater.user_id: results[rater.pk] for rater in raters.values() if results[rater.pk].progress.done}
    return [CalibrationRow(member, raters.get(member.user_id), begun.get(member.user_id)) for member in members]
