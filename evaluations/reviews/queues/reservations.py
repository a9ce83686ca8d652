"""Slots of queue items that reviewers reserve, complete or release."""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db import transaction
from django.db.models import BigIntegerField, ExpressionWrapper, F
from django.utils import timezone

from evaluations.domain.reviews import SAVED_REVIEW_STATES, SLOT_TAKING_STATES, AssignmentState, SelectionMethod
from evaluations.models.evaluations import Evaluation
from evaluations.models.queues import Assignment, Bookmark, Pick, QueueItem, Round
from evaluations.models.verdicts import Review
from evaluations.reviews.queues.items import get_default_queue, get_or_create_item, lock_queue
from evaluations.reviews.queues.sql import (
    SELECT_BOOKMARK,
    get_calibration_pick,
    lock_bookmark,
    move_passed_bookmarks_back,
)


@dataclass(frozen=True)
class AssignmentOrigin:
    """How a comparison came to a rater. ``probability`` as in ``Assignment``, None if no chance decided."""

    picked_by: SelectionMethod = SelectionMethod.BY_HAND
    round: Round | None = None
    probability: float | None = None


# The version of a place, as no index: what lapsed is few, and the items of a version are all of them.
ITEM_VERSION: Final = ExpressionWrapper(F("item__rubric_version_id") + 0, BigIntegerField())


@transaction.atomic
def complete_assignment(review: Review) -> AssignmentOrigin:
    """Take the slot for good at the first save. Returns how the comparison was picked.

    Whoever came by hand, or too late, is let in all the same, beyond what is wanted if need be.
    """
    item = get_or_create_item(review.rubric_version_id, review.comparison)
    bookmark = get_bookmark(review.rater_id, review.rubric_version_id, besides=review)
    posed = get_calibration_pick(item)
    if posed is not None:
        lock_queue(get_default_queue(item.rubric_version_id, 1))  # before the bookmark: a place may be given back
    lock_bookmark(bookmark)
    mine = Assignment.objects.filter(item=item, rater=review.rater_id)
    known = mine.select_related("pick__round").first()
    if posed is not None and (known is None or known.picked_by != SelectionMethod.CALIBRATION):
        known = turn_into_calibration(item, review.rater_id, posed)
    if known is None:
        mine.create(item=item, rater_id=review.rater_id, picked_by=SelectionMethod.BY_HAND, state=AssignmentState.DONE)
        change_slots_taken(item.pk, 1)
    elif known.state != AssignmentState.DONE:
        # One statement says whether the place was still theirs: a sweep may be taking it back.
        still_theirs = mine.filter(state__in=SLOT_TAKING_STATES).update(state=AssignmentState.DONE, held_until=None)
        if not still_theirs:
            mine.update(state=AssignmentState.DONE, held_until=None)
            change_slots_taken(item.pk, count_slots_of(known))
    if known is None or known.state != AssignmentState.DONE:
        Bookmark.objects.filter(pk=bookmark.pk).update(done=F("done") + 1)
    return get_assignment_origin(known)


def turn_into_calibration(item: QueueItem, rater_id: int, posed: Pick) -> Assignment:
    """Turn the assignment into calibration; a slot that the rater held is open to others."""
    release_slot(item, rater_id, SLOT_TAKING_STATES, AssignmentState.LAPSED)
    how = {"pick": posed, "picked_by": SelectionMethod.CALIBRATION, "probability": posed.probability}
    return Assignment.objects.update_or_create(
        item=item, rater_id=rater_id, defaults=how, create_defaults={**how, "state": AssignmentState.LAPSED}
    )[0]


@transaction.atomic
def skip_assignment(review: Review) -> None:
    """Release the slot of a skipped comparison."""
    item = get_or_create_item(review.rubric_version_id, review.comparison)
    if not release_slot(item, review.rater_id, SLOT_TAKING_STATES, AssignmentState.SKIPPED):
        mine = {"item": item, "rater_id": review.rater_id}
        given_up = {"state": AssignmentState.SKIPPED, "held_until": None}
        Assignment.objects.update_or_create(
            **mine, defaults=given_up, create_defaults={**given_up, "picked_by": SelectionMethod.BY_HAND}
        )


@transaction.atomic
def restore_reservation(review: Review) -> None:
    """Reserve the comparison again after an undo, if a slot is open."""
    item = get_or_create_item(review.rubric_version_id, review.comparison)
    bookmark = get_bookmark(review.rater_id, review.rubric_version_id, besides=review)
    lock_bookmark(bookmark)
    assignment = Assignment.objects.filter(item=item, rater=review.rater_id).first()
    if assignment is None:
        return
    if assignment.state == AssignmentState.DONE:
        until = get_reservation_end(review.comparison.evaluation)
        Assignment.objects.filter(pk=assignment.pk).update(state=AssignmentState.HELD, held_until=until)
        Bookmark.objects.filter(pk=bookmark.pk, done__gt=0).update(done=F("done") - 1)
    elif not reserve_again(assignment, review.comparison.evaluation):
        Assignment.objects.filter(pk=assignment.pk, state=AssignmentState.SKIPPED).update(state=AssignmentState.LAPSED)


def release_expired_reservations(limit: int, version_id: int | None = None) -> int:
    """Release reservations that expired. Returns their number."""
    lapsed = Assignment.objects.filter(state=AssignmentState.HELD, held_until__lt=timezone.now())
    if version_id is not None:
        lapsed = lapsed.alias(version=ITEM_VERSION).filter(version=version_id)
    found = list(lapsed.order_by("held_until").select_related("item")[:limit])
    held = (AssignmentState.HELD,)
    return sum(release_slot(one.item, one.rater_id, held, AssignmentState.LAPSED, only_lapsed=True) for one in found)


# ---- places --------------------------------------------------------------------------------


def get_assignment_origin(assignment: Assignment | None) -> AssignmentOrigin:
    if assignment is None:
        return AssignmentOrigin()
    through = assignment.pick.round if assignment.pick else None
    return AssignmentOrigin(SelectionMethod(assignment.picked_by), through, assignment.probability)


def count_slots_of(assignment: Assignment) -> int:
    """The number of slots that the assignment takes: none for calibration, which everyone reviews."""
    return 0 if assignment.picked_by == SelectionMethod.CALIBRATION else 1


def get_reservation_end(evaluation: Evaluation) -> datetime:
    return timezone.now() + timedelta(minutes=evaluation.hold_minutes)


def change_slots_taken(item_id: int, by: int) -> None:
    if by:
        QueueItem.objects.filter(pk=item_id).update(taken=F("taken") + by)


def take_slot(item_id: int) -> bool:
    """Take a slot if one is open: the conditional update is the lock."""
    return bool(QueueItem.objects.filter(pk=item_id, taken__lt=F("wanted")).update(taken=F("taken") + 1))


@transaction.atomic
def reserve_again(assignment: Assignment, evaluation: Evaluation) -> bool:
    """Reserve a skipped or expired comparison again, if a slot is open."""
    left = Assignment.objects.filter(
        pk=assignment.pk, state__in=(AssignmentState.SKIPPED, AssignmentState.LAPSED)
    ).select_for_update()
    if not left.exists() or (count_slots_of(assignment) and not take_slot(assignment.item_id)):
        return False
    return bool(left.update(state=AssignmentState.HELD, held_until=get_reservation_end(evaluation)))


@transaction.atomic
def release_slot(
    item: QueueItem,
    rater_id: int,
    states: Collection[AssignmentState],
    to: AssignmentState,
    *,
    only_lapsed: bool = False,
) -> bool:
    """Release the rater's slot in one of these states, and move back the bookmarks beyond it."""
    lock_queue(get_default_queue(item.rubric_version_id, 1))
    mine = Assignment.objects.filter(item=item, rater=rater_id, state__in=states)
    if only_lapsed:
        mine = mine.filter(held_until__lt=timezone.now())
    known = mine.first()
    if known is None:
        return False
    move_passed_bookmarks_back(item)
    if not mine.update(state=to, held_until=None):
        return False
    change_slots_taken(item.pk, -count_slots_of(known))
    return True


def get_bookmark(rater_id: int, version_id: int, *, besides: Review | None = None) -> Bookmark:
    """The rater's position in the random order. ``besides``: the review that is being saved.

    Made with the queue locked: whoever gives back a place at that moment must not overlook it.
    """
    known = list(Bookmark.objects.raw(SELECT_BOOKMARK, [rater_id, version_id]))
    if known:
        return known[0]
    mine = Bookmark.objects.filter(rater=rater_id, rubric_version=version_id, round__isnull=True)
    queue = get_default_queue(version_id, 1)
    with transaction.atomic():
        lock_queue(queue)
        reviews = Review.objects.filter(rater=rater_id, rubric_version=version_id, state__in=SAVED_REVIEW_STATES)
        done = (reviews.exclude(pk=besides.pk) if besides else reviews).count()
        return mine.get_or_create(defaults={"done": done}, rater_id=rater_id, rubric_version_id=version_id, round=None)[
            0
        ]


def get_queue_bookmark(rater_id: int, within: Round) -> Bookmark:
    mine = Bookmark.objects.filter(rater=rater_id, round=within)
    known = mine.first()
    if known is not None:
        return known
    with transaction.atomic():
        lock_queue(get_default_queue(within.rubric_version_id, 1))
        return mine.get_or_create(rater_id=rater_id, rubric_version_id=within.rubric_version_id, round=within)[0]
