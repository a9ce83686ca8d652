"""Slots of queue items that reviewers reserve, complete or release."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from django.db import transaction
from django.db.models import BigIntegerField, ExpressionWrapper, F
from django.db.models.expressions import CombinedExpression
from django.db.models.functions import Now

from evaluations.domain.reviews import SAVED_REVIEW_STATES, TAKING_STATES, AssignmentState, SelectionMethod
from evaluations.models.evaluations import Evaluation
from evaluations.models.queues import Assignment, Queue, QueueItem, QueueProgress, QueueSlot
from evaluations.models.verdicts import Review
from evaluations.reviews.queues.items import get_or_create_item, lock_queue_of_version
from evaluations.reviews.queues.sql import (
    SELECT_PROGRESS,
    find_item,
    for_update,
    lock_progress,
    move_passed_progress_back,
)


@dataclass(frozen=True)
class AssignmentOrigin:
    """How a comparison came to a rater. ``probability`` as in ``Assignment``, None if no chance decided."""

    selection_method: SelectionMethod = SelectionMethod.BY_HAND
    queue: Queue | None = None
    probability: float | None = None


# An expression without an index: expired assignments are few, while the items of a version are all of them.
ITEM_VERSION: Final = ExpressionWrapper(F("item__rubric_version_id") + 0, BigIntegerField())


@transaction.atomic(savepoint=False)
def complete_assignment(review: Review) -> AssignmentOrigin:
    """Take the slot for good at the first save. Returns how the comparison was selected.

    Reviewers who open it by hand or too late may still review it, even beyond the wanted number.
    """
    existing, calibration_slot = find_item(review.rubric_version_id, review.comparison_id)
    item = existing or get_or_create_item(review.rubric_version_id, review.comparison)
    if calibration_slot is not None:
        lock_queue_of_version(item.rubric_version_id)  # before the progress, because a slot may be released
    progress = lock_own_progress(review)
    own_assignments = Assignment.objects.filter(item=item, rater=review.rater_id)
    assignment = own_assignments.select_related("slot__queue").first()
    if calibration_slot is not None and (
        assignment is None or assignment.selection_method != SelectionMethod.CALIBRATION
    ):
        assignment = turn_into_calibration(item, review.rater_id, calibration_slot)
    if assignment is None:
        own_assignments.create(
            item=item, rater_id=review.rater_id, selection_method=SelectionMethod.BY_HAND, state=AssignmentState.DONE
        )
        change_taken(item.pk, 1)
    elif assignment.state != AssignmentState.DONE:
        # One statement tells whether the slot was still reserved: a sweep may be releasing it.
        was_reserved = own_assignments.filter(state__in=TAKING_STATES).update(
            state=AssignmentState.DONE, reserved_until=None
        )
        if not was_reserved:
            own_assignments.update(state=AssignmentState.DONE, reserved_until=None)
            change_taken(item.pk, count_taken_by(assignment))
    if assignment is None or assignment.state != AssignmentState.DONE:
        QueueProgress.objects.filter(pk=progress.pk).update(done=F("done") + 1)
    if assignment is None:
        return AssignmentOrigin()
    queue = assignment.slot.queue if assignment.slot else None
    return AssignmentOrigin(SelectionMethod(assignment.selection_method), queue, assignment.probability)


def turn_into_calibration(item: QueueItem, rater_id: int, slot: QueueSlot) -> Assignment:
    """Turn the assignment into calibration; a slot that the rater held is open to others."""
    release_item(item, rater_id, TAKING_STATES, AssignmentState.EXPIRED)
    columns = {"slot": slot, "selection_method": SelectionMethod.CALIBRATION, "probability": slot.probability}
    return Assignment.objects.update_or_create(
        item=item, rater_id=rater_id, defaults=columns, create_defaults={**columns, "state": AssignmentState.EXPIRED}
    )[0]


@transaction.atomic(savepoint=False)
def skip_assignment(review: Review) -> None:
    """Release the slot of a skipped comparison."""
    item = get_or_create_item(review.rubric_version_id, review.comparison)
    if not release_item(item, review.rater_id, TAKING_STATES, AssignmentState.SKIPPED):
        key = {"item": item, "rater_id": review.rater_id}
        columns = {"state": AssignmentState.SKIPPED, "reserved_until": None}
        Assignment.objects.update_or_create(
            **key, defaults=columns, create_defaults={**columns, "selection_method": SelectionMethod.BY_HAND}
        )


@transaction.atomic(savepoint=False)
def restore_reservation(review: Review) -> None:
    """Reserve the comparison again after an undo, if a slot is open."""
    item = get_or_create_item(review.rubric_version_id, review.comparison)
    progress = lock_own_progress(review)
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
    expired = Assignment.objects.filter(state=AssignmentState.RESERVED, reserved_until__lt=Now())
    if version_id is not None:
        expired = expired.alias(version=ITEM_VERSION).filter(version=version_id)
    assignments = list(expired.order_by("reserved_until").select_related("item")[:limit])
    states = (AssignmentState.RESERVED,)
    return sum(
        release_item(assignment.item, assignment.rater_id, states, AssignmentState.EXPIRED, only_expired=True)
        for assignment in assignments
    )


# ---- slots


def count_taken_by(assignment: Assignment) -> int:
    """The number of slots that the assignment takes: none for calibration, which everyone reviews."""
    return 0 if assignment.selection_method == SelectionMethod.CALIBRATION else 1


def get_reservation_end(evaluation: Evaluation) -> CombinedExpression:
    """By the database's clock, by which the sweep of any worker releases it."""
    return Now() + timedelta(minutes=evaluation.reservation_minutes)


def change_taken(item_id: int, by: int) -> None:
    if by:
        QueueItem.objects.filter(pk=item_id).update(taken=F("taken") + by)


def take_item(item_id: int) -> bool:
    """Take a slot if one is open: the conditional update is the lock."""
    return bool(QueueItem.objects.filter(pk=item_id, taken__lt=F("wanted")).update(taken=F("taken") + 1))


@transaction.atomic(savepoint=False)
def reserve_again(assignment: Assignment, evaluation: Evaluation) -> bool:
    """Reserve a skipped or expired comparison again, if a slot is open."""
    released = Assignment.objects.filter(
        pk=assignment.pk, state__in=(AssignmentState.SKIPPED, AssignmentState.EXPIRED)
    ).select_for_update()
    if not released.exists() or (count_taken_by(assignment) and not take_item(assignment.item_id)):
        return False
    return bool(released.update(state=AssignmentState.RESERVED, reserved_until=get_reservation_end(evaluation)))


@transaction.atomic(savepoint=False)
def release_item(
    item: QueueItem,
    rater_id: int,
    states: Collection[AssignmentState],
    to: AssignmentState,
    *,
    only_expired: bool = False,
) -> bool:
    """Release the rater's slot in one of these states, and move back the progress beyond it."""
    lock_queue_of_version(item.rubric_version_id)
    assignments = Assignment.objects.filter(item=item, rater=rater_id, state__in=states)
    if only_expired:
        assignments = assignments.filter(reserved_until__lt=Now())
    assignment = assignments.first()
    if assignment is None:
        return False
    move_passed_progress_back(item)
    if not assignments.update(state=to, reserved_until=None):
        return False
    change_taken(item.pk, -count_taken_by(assignment))
    return True


def get_or_create_progress(rater_id: int, version_id: int, *, except_for: Review | None = None) -> QueueProgress:
    """The rater's position in the random order. ``except_for``: the review being saved.

    Called with the queue locked, so that a concurrent release does not miss it.
    """
    existing = list(QueueProgress.objects.raw(SELECT_PROGRESS, [rater_id, version_id]))
    if existing:
        return existing[0]
    own_progress = QueueProgress.objects.filter(rater=rater_id, rubric_version=version_id, queue__isnull=True)
    with transaction.atomic():
        lock_queue_of_version(version_id)
        reviews = Review.objects.filter(rater=rater_id, rubric_version=version_id, state__in=SAVED_REVIEW_STATES)
        done = (reviews.exclude(pk=except_for.pk) if except_for else reviews).count()
        return own_progress.get_or_create(
            defaults={"done": done}, rater_id=rater_id, rubric_version_id=version_id, queue=None
        )[0]


def lock_own_progress(review: Review) -> QueueProgress:
    """The position of the review's rater, locked until the transaction ends."""
    key = [review.rater_id, review.rubric_version_id]
    existing = list(QueueProgress.objects.raw(SELECT_PROGRESS + for_update(), key))
    if existing:
        return existing[0]
    progress = get_or_create_progress(*key, except_for=review)
    lock_progress(progress)
    return progress


def get_or_create_queue_progress(rater_id: int, queue: Queue) -> QueueProgress:
    own_progress = QueueProgress.objects.filter(rater=rater_id, queue=queue)
    existing = own_progress.first()
    if existing is not None:
        return existing
    with transaction.atomic():
        lock_queue_of_version(queue.rubric_version_id)
        return own_progress.get_or_create(rater_id=rater_id, rubric_version_id=queue.rubric_version_id, queue=queue)[0]
