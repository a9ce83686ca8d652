"""What the queue gives to somebody, and what holds of it at every quiet moment, counted anew."""

from django.db.models import Count, Q

from evaluations.domain import PLACES_TAKEN, SAVED_REVIEW_STATES, PickedBy
from evaluations.models import Assignment, Bookmark, Evaluation, QueueItem, Review, User
from evaluations.services.reviewing.queueing import next_comparison
from evaluations.services.reviewing.seating import rater_for

PLACES = Q(assignments__state__in=PLACES_TAKEN) & ~Q(assignments__picked_by=PickedBy.CALIBRATION)


def turn(person: User, evaluation: Evaluation) -> int | None:
    return next_comparison(evaluation, rater_for(person, evaluation))


def assert_counters_are_right(evaluation: Evaluation) -> None:
    """Every counter equals a recount, and no bookmark lies behind something open that its person has not met."""
    items = QueueItem.objects.filter(comparison__evaluation=evaluation)
    recounted = items.annotate(places=Count("assignments", filter=PLACES))
    assert [(one.pk, one.taken) for one in recounted] == [(one.pk, one.places) for one in recounted]
    for bookmark in Bookmark.objects.filter(rater__evaluation=evaluation, round__isnull=True):
        mine = Review.objects.filter(rater=bookmark.rater_id, rubric_version=bookmark.rubric_version_id)
        assert bookmark.done == mine.filter(state__in=SAVED_REVIEW_STATES).count()
        met = Assignment.objects.filter(rater=bookmark.rater_id).values("item")
        passed = items.exclude(pk__in=met).filter(position__lt=bookmark.reached)
        assert not [one for one in passed if one.taken < one.wanted]
