"""Slots of queue items that reviewers reserve, complete or release."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.db.models import BigIntegerField, ExpressionWrapper, F
from django.utils import timezone

from evaluations.domain.reviews import SAVED_REVIEW_STATES, TAKING_STATES, AssignmentState, SelectionMethod
from evaluations.models.evaluations import Evaluation
from evaluations.models.queues import Assignment, Queue, QueueItem, QueueProgress, QueueSlot
from evaluations.models.verdicts import Review
from evaluations.reviews.queues.items import get_or_create_default_queue, get_or_create_item, lock_default_queue
from evaluations.reviews.queues.sql import (
    SELECT_PROGRESS,
    get_calibration_slot,
    lock_progress,
    move_passed_progress_back,
)


@dataclass(frozen=True)
class AssignmentOrigin:
    """How a comparison came to a rater. ``probability`` as in ``Assignment``, None if no chance decided."""

    selection_method: SelectionMethod = SelectionMethod.BY_HAND
    queue: Queue | None = None
    probability: float | None = None


# The version of a place, as no index: what lapsed is few, and the items of a version are all of them.
ITEM_VERSION: Final = ExpressionWrapper(F("item__rubric_version_id") + 0, BigIntegerField())


@transaction.atomic
def complete_assignment(review: Review) -> AssignmentOrigin:
    """Take the slot for good at the first save. Returns how the comparison was selected.

    Reviewers who open it by hand or too late may still review it, even beyond the wanted number.
    """
    item = get_or_create_item(review.rubric_version_id, review.comparison)
    progress = get_or_create_progress(review.rater_id, review.rubric_version_id, besides=review)
    posed = get_calibration_slot(item)
    if posed is not None:
        lock_default_queue(
            get_or_create_default_queue(item.rubric_version_id, 1)
        )  # before the progress: a place may be given back
    lock_progress(progress)
    mine = Assignment.objects.filter(item=item, rater=review.rater_id)
    known = mine.select_related("slot__queue").first()
    if posed is not None and (known is None or known.selection_method != SelectionMethod.CALIBRATION):
        known = turn_into_calibration(item, review.rater_id, posed)
    if known is None:
        mine.create(
            item=item, rater_id=review.rater_id, selection_method=SelectionMethod.BY_HAND, state=AssignmentState.DONE
        )
        change_taken(item.pk, 1)
    elif known.state != AssignmentState.DONE:
        # One statement says whether the place was still theirs: a sweep may be taking it back.
        still_theirs = mine.filter(state__in=TAKING_STATES).update(state=AssignmentState.DONE, reserved_until=None)
        if not still_theirs:
            mine.update(state=AssignmentState.DONE, reserved_until=None)
            change_taken(item.pk, count_taken_by(known))
    if known is None or known.state != AssignmentState.DONE:
        QueueProgress.objects.filter(pk=progress.pk).update(done=F("done") + 1)
    return get_assignment_origin(known)


def turn_into_calibration(item: QueueItem, rater_id: int, posed: QueueSlot) -> Assignment:
    """Turn the assignment into calibration; a slot that the rater held is open to others."""
    release_item(item, rater_id, TAKING_STATES, AssignmentState.EXPIRED)
    how = {"slot": posed, "selection_method": SelectionMethod.CALIBRATION, "probability": posed.probability}
    return Assignment.objects.update_or_create(
        item=item, rater_id=rater_id, defaults=how, create_defaults={**how, "state": AssignmentState.EXPIRED}
    )[0]


@transaction.atomic
def skip_assignment(review: Review) -> None:
    """Release the slot of a skipped comparison."""
    item = get_or_create_item(review.rubric_version_id, review.comparison)
    if not release_item(item, review.rater_id, TAKING_STATES, AssignmentState.SKIPPED):
        mine = {"item": item, "rater_id": review.rater_id}
        given_up = {"state": AssignmentState.SKIPPED, "reserved_until": None}
        Assignment.objects.update_or_create(
            **mine, defaults=given_up, create_defaults={**given_up, "selection_method": SelectionMethod.BY_HAND}
        )


@transaction.atomic
def restore_reservation(review: Review) -> None:
    """Reserve the comparison again after an undo, if a slot is open."""
    item = get_or_create_item(review.rubric_version_id, review.comparison)
    progress = get_or_create_progress(review.rater_id, review.rubric_version_id, besides=review)
    lock_progress(progress)
    assignment = Assignment.objects.filter(item=item, rater=review.rater_id).first()
    if assignment is None:
        return
    if assignment.state == AssignmentState.DONE:
        until = get_reservation_end(review.comparison.evaluation)
        Assignment.objects.filter(pk=assignment.pk).update(state=AssignmentState.RESERVED, reserved_until=until)
        QueueProgress.objects.filter(pk=progress.pk, done__gt=0).update(done=F("done") - 1)
    elif not reserve_again(assignment, review.comparison.evaluation):
        Assignment.objects.filter(pk=assignment.pk, state=AssignmentState.SKIPPED).update(state=AssignmentState.EXPIRED)


def release_expired_reservations(limit: int, version_id: int | None = None) -> int:
    """Release reservations that expired. Returns their number."""
    lapsed = Assignment.objects.filter(state=AssignmentState.RESERVED, reserved_until__lt=timezone.now())
    if version_id is not None:
        lapsed = lapsed.alias(version=ITEM_VERSION).filter(version=version_id)
    found = list(lapsed.order_by("reserved_until").select_related("item")[:limit])
    held = (AssignmentState.RESERVED,)
    return sum(release_item(one.item, one.rater_id, held, AssignmentState.EXPIRED, only_expired=True) for one in found)


# ---- places --------------------------------------------------------------------------------


def get_assignment_origin(assignment: Assignment | None) -> AssignmentOrigin:
    if assignment is None:
        return AssignmentOrigin()
    through = assignment.slot.queue if assignment.slot else None
    return AssignmentOrigin(SelectionMethod(assignment.selection_method), through, assignment.probability)


def count_taken_by(assignment: Assignment) -> int:
    """The number of slots that the assignment takes: none for calibration, which everyone reviews."""
    return 0 if assignment.selection_method == SelectionMethod.CALIBRATION else 1


def get_reservation_end(evaluation: Evaluation) -> datetime:
    return timezone.now() + timedelta(minutes=evaluation.reservation_minutes)


def change_taken(item_id: int, by: int) -> None:
    if by:
        QueueItem.objects.filter(pk=item_id).update(taken=F("taken") + by)


def take_item(item_id: int) -> bool:
    """Take a slot if one is open: the conditional update is the lock."""
    return bool(QueueItem.objects.filter(pk=item_id, taken__lt=F("wanted")).update(taken=F("taken") + 1))


@transaction.atomic
def reserve_again(assignment: Assignment, evaluation: Evaluation) -> bool:
    """Reserve a skipped or expired comparison again, if a slot is open."""
    left = Assignment.objects.filter(
        pk=assignment.pk, state__in=(AssignmentState.SKIPPED, AssignmentState.EXPIRED)
    ).select_for_update()
    if not left.exists() or (count_taken_by(assignment) and not take_item(assignment.item_id)):
        return False
    return bool(left.update(state=AssignmentState.RESERVED, reserved_until=get_reservation_end(evaluation)))


@transaction.atomic
def release_item(
    item: QueueItem,
    rater_id: int,
    states: Collection[AssignmentState],
    to: AssignmentState,
    *,
    only_expired: bool = False,
) -> bool:
    """Release the rater's slot in one of these states, and move back the progress beyond it."""
    lock_default_queue(get_or_create_default_queue(item.rubric_version_id, 1))
    mine = Assignment.objects.filter(item=item, rater=rater_id, state__in=states)
    if only_expired:
        mine = mine.filter(reserved_until__lt=timezone.now())
    known = mine.first()
    if known is None:
        return False
    move_passed_progress_back(item)
    if not mine.update(state=to, reserved_until=None):
        return False
    change_taken(item.pk, -count_taken_by(known))
    return True


def get_or_create_progress(rater_id: int, version_id: int, *, besides: Review | None = None) -> QueueProgress:
    """The rater's position in the random order. ``besides``: the review that is being saved.

    Called with the queue locked, so that a concurrent release does not miss it.
    """
    known = list(QueueProgress.objects.raw(SELECT_PROGRESS, [rater_id, version_id]))
    if known:
        return known[0]
    mine = QueueProgress.objects.filter(rater=rater_id, rubric_version=version_id, queue__isnull=True)
    default_queue = get_or_create_default_queue(version_id, 1)
    with transaction.atomic():
        lock_default_queue(default_queue)
        reviews = Review.objects.filter(rater=rater_id, rubric_version=version_id, state__in=SAVED_REVIEW_STATES)
        done = (reviews.exclude(pk=besides.pk) if besides else reviews).count()
        return mine.get_or_create(defaults={"done": done}, rater_id=rater_id, rubric_version_id=version_id, queue=None)[
            0
        ]


def get_or_create_queue_progress(rater_id: int, within: Queue) -> QueueProgress:
    mine = QueueProgress.objects.filter(rater=rater_id, queue=within)
    known = mine.first()
    if known is not None:
        return known
    with transaction.atomic():
        lock_default_queue(get_or_create_default_queue(within.rubric_version_id, 1))
        return mine.get_or_create(rater_id=rater_id, rubric_version_id=within.rubric_version_id, queue=within)[0]
