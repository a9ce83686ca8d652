"""The places of a comparison: taken by those who review it, left when they skip it or stay away too long.

``taken`` of an item is at every moment the number of its assignments that take a place, and
``reached`` of a bookmark never lies behind something open that its person has not met. In which
order rows are locked, so that no two people wait for each other, says ``filling``.
"""

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.db import connection, transaction
from django.db.models import BigIntegerField, ExpressionWrapper, F
from django.utils import timezone

from evaluations.domain import PLACES_TAKEN, SAVED_REVIEW_STATES, AssignmentState, PickedBy, RoundKind
from evaluations.models import Assignment, Bookmark, Evaluation, Pick, QueueItem, Review, Round
from evaluations.services.reviewing.filling import item_for, known_queue, lock


@dataclass(frozen=True)
class Picked:
    """How a comparison came to a person. ``probability`` as ``Assignment`` defines it, None where no chance decided."""

    picked_by: PickedBy = PickedBy.BY_HAND
    round: Round | None = None
    probability: float | None = None


# The version of a place, as no index: what lapsed is few, and the items of a version are all of them.
OF_VERSION: Final = ExpressionWrapper(F("item__rubric_version_id") + 0, BigIntegerField())
# Those who have passed that place and never met the item: they may want it now.
PASSED: Final = """
UPDATE evaluations_bookmark SET reached = %s
WHERE {where} AND reached > %s AND NOT EXISTS (
  SELECT 1 FROM evaluations_assignment a WHERE a.item_id = %s AND a.rater_id = evaluations_bookmark.rater_id)
"""


@transaction.atomic
def settle(review: Review) -> Picked:
    """The person makes their first save: their place is taken for good. Says how it was picked.

    Whoever came by hand, or too late, is let in all the same, beyond what is wanted if need be.
    """
    item = item_for(review.rubric_version_id, review.comparison)
    bookmark = bookmark_of(review.rater_id, review.rubric_version_id, besides=review)
    posed = posed_by(item)
    if posed is not None:
        lock(known_queue(item.rubric_version_id, 1))  # before the bookmark: a place may be given back
    locked(bookmark)
    mine = Assignment.objects.filter(item=item, rater=review.rater_id)
    known = mine.select_related("pick__round").first()
    if posed is not None and (known is None or known.picked_by != PickedBy.CALIBRATION):
        known = turned_calibration(item, review.rater_id, posed)
    if known is None:
        mine.create(item=item, rater_id=review.rater_id, picked_by=PickedBy.BY_HAND, state=AssignmentState.DONE)
        change_taken(item.pk, 1)
    elif known.state != AssignmentState.DONE:
        # One statement says whether the place was still theirs: a sweep may be taking it back.
        still_theirs = mine.filter(state__in=PLACES_TAKEN).update(state=AssignmentState.DONE, held_until=None)
        if not still_theirs:
            mine.update(state=AssignmentState.DONE, held_until=None)
            change_taken(item.pk, places(known))
    if known is None or known.state != AssignmentState.DONE:
        Bookmark.objects.filter(pk=bookmark.pk).update(done=F("done") + 1)
    return picked(known)


# The same for every first save: nearly always none.
POSED: Final = """
SELECT p.* FROM evaluations_pick p JOIN evaluations_round r ON r.id = p.round_id
WHERE p.item_id = %s AND r.kind = 'calibration' AND r.closed_at IS NULL ORDER BY p.id LIMIT 1
"""


def posed_by(item: QueueItem) -> Pick | None:
    """How the item stands in an open calibration; None where it stands in none."""
    return next(iter(Pick.objects.raw(POSED, [item.pk])), None)


def turned_calibration(item: QueueItem, rater_id: int, posed: Pick) -> Assignment:
    """However it came to this person it is calibration: the place that they held is free for others."""
    give_back(item, rater_id, PLACES_TAKEN, AssignmentState.LAPSED)
    how = {"pick": posed, "picked_by": PickedBy.CALIBRATION, "probability": posed.probability}
    return Assignment.objects.update_or_create(
        item=item, rater_id=rater_id, defaults=how, create_defaults={**how, "state": AssignmentState.LAPSED}
    )[0]


@transaction.atomic
def leave(review: Review) -> None:
    """The person skipped it: their place is free for others."""
    item = item_for(review.rubric_version_id, review.comparison)
    if not give_back(item, review.rater_id, PLACES_TAKEN, AssignmentState.SKIPPED):
        mine = {"item": item, "rater_id": review.rater_id}
        given_up = {"state": AssignmentState.SKIPPED, "held_until": None}
        Assignment.objects.update_or_create(
            **mine, defaults=given_up, create_defaults={**given_up, "picked_by": PickedBy.BY_HAND}
        )


@transaction.atomic
def come_back(review: Review) -> None:
    """The person took their first save or their skip back: it is held for them again, if there is a place."""
    item = item_for(review.rubric_version_id, review.comparison)
    bookmark = bookmark_of(review.rater_id, review.rubric_version_id, besides=review)
    locked(bookmark)
    assignment = Assignment.objects.filter(item=item, rater=review.rater_id).first()
    if assignment is None:
        return
    if assignment.state == AssignmentState.DONE:
        until = until_when(review.comparison.evaluation)
        Assignment.objects.filter(pk=assignment.pk).update(state=AssignmentState.HELD, held_until=until)
        Bookmark.objects.filter(pk=bookmark.pk, done__gt=0).update(done=F("done") - 1)
    elif not hold_again(assignment, review.comparison.evaluation):
        Assignment.objects.filter(pk=assignment.pk, state=AssignmentState.SKIPPED).update(state=AssignmentState.LAPSED)


def put_back_lapsed(limit: int, version_id: int | None = None) -> int:
    """Places that were held too long are open again. How many."""
    lapsed = Assignment.objects.filter(state=AssignmentState.HELD, held_until__lt=timezone.now())
    if version_id is not None:
        lapsed = lapsed.alias(version=OF_VERSION).filter(version=version_id)
    found = list(lapsed.order_by("held_until").select_related("item")[:limit])
    held = (AssignmentState.HELD,)
    return sum(give_back(one.item, one.rater_id, held, AssignmentState.LAPSED, only_lapsed=True) for one in found)


# ---- places --------------------------------------------------------------------------------


def picked(assignment: Assignment | None) -> Picked:
    if assignment is None:
        return Picked()
    through = assignment.pick.round if assignment.pick else None
    return Picked(PickedBy(assignment.picked_by), through, assignment.probability)


def places(assignment: Assignment) -> int:
    """How many places it takes while it takes any: calibration takes none, for everybody is to do it."""
    return 0 if assignment.picked_by == PickedBy.CALIBRATION else 1


def until_when(evaluation: Evaluation) -> datetime:
    return timezone.now() + timedelta(minutes=evaluation.hold_minutes)


def change_taken(item_id: int, by: int) -> None:
    if by:
        QueueItem.objects.filter(pk=item_id).update(taken=F("taken") + by)


def take_place(item_id: int) -> bool:
    """Whether there was a place left: the conditional update is the lock."""
    return bool(QueueItem.objects.filter(pk=item_id, taken__lt=F("wanted")).update(taken=F("taken") + 1))


@transaction.atomic
def hold_again(assignment: Assignment, evaluation: Evaluation) -> bool:
    """What the person skipped or let lapse is held for them again, if there is a place."""
    left = Assignment.objects.filter(
        pk=assignment.pk, state__in=(AssignmentState.SKIPPED, AssignmentState.LAPSED)
    ).select_for_update()
    if not left.exists() or (places(assignment) and not take_place(assignment.item_id)):
        return False
    return bool(left.update(state=AssignmentState.HELD, held_until=until_when(evaluation)))


@transaction.atomic
def give_back(
    item: QueueItem,
    rater_id: int,
    states: Collection[AssignmentState],
    to: AssignmentState,
    *,
    only_lapsed: bool = False,
) -> bool:
    """Open the place that this person holds in one of these states, and tell those who have passed it."""
    lock(known_queue(item.rubric_version_id, 1))
    mine = Assignment.objects.filter(item=item, rater=rater_id, state__in=states)
    if only_lapsed:
        mine = mine.filter(held_until__lt=timezone.now())
    known = mine.first()
    if known is None:
        return False
    call_back(item)
    if not mine.update(state=to, held_until=None):
        return False
    change_taken(item.pk, -places(known))
    return True


def call_back(item: QueueItem) -> None:
    """Move the bookmarks back that lie behind an item which is about to be open. The queue is locked."""
    rounds = Pick.objects.filter(item=item, round__closed_at__isnull=True, round__kind=RoundKind.REVIEW)
    with connection.cursor() as cursor:
        values = [item.position, item.rubric_version_id, item.position, item.pk]
        cursor.execute(PASSED.format(where="rubric_version_id = %s AND round_id IS NULL"), values)
        for round_id, place in rounds.values_list("round_id", "place"):
            cursor.execute(PASSED.format(where="round_id = %s"), [place, round_id, place, item.pk])


# ---- bookmarks -----------------------------------------------------------------------------

BOOKMARK: Final = (
    "SELECT * FROM evaluations_bookmark WHERE rater_id = %s AND rubric_version_id = %s AND round_id IS NULL"
)
REACHED: Final = "SELECT reached FROM evaluations_bookmark WHERE id = %s"


def bookmark_of(rater_id: int, version_id: int, *, besides: Review | None = None) -> Bookmark:
    """Where this person is in the random order. ``besides``: the review that is being saved right now.

    Made with the queue locked: whoever gives back a place at that moment must not overlook it.
    """
    known = list(Bookmark.objects.raw(BOOKMARK, [rater_id, version_id]))
    if known:
        return known[0]
    mine = Bookmark.objects.filter(rater=rater_id, rubric_version=version_id, round__isnull=True)
    queue = known_queue(version_id, 1)
    with transaction.atomic():
        lock(queue)
        reviews = Review.objects.filter(rater=rater_id, rubric_version=version_id, state__in=SAVED_REVIEW_STATES)
        done = (reviews.exclude(pk=besides.pk) if besides else reviews).count()
        return mine.get_or_create(defaults={"done": done}, rater_id=rater_id, rubric_version_id=version_id, round=None)[
            0
        ]


def round_bookmark(rater_id: int, within: Round) -> Bookmark:
    mine = Bookmark.objects.filter(rater=rater_id, round=within)
    known = mine.first()
    if known is not None:
        return known
    with transaction.atomic():
        lock(known_queue(within.rubric_version_id, 1))
        return mine.get_or_create(rater_id=rater_id, rubric_version_id=within.rubric_version_id, round=within)[0]


def locked(bookmark: Bookmark) -> int:
    """How far it has come by now; nobody moves it until the transaction ends."""
    with connection.cursor() as cursor:
        cursor.execute(REACHED + (" FOR UPDATE" if connection.vendor == "postgresql" else ""), [bookmark.pk])
        return int(cursor.fetchone()[0])
