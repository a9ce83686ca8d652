"""Assertions about the counters and progress of a queue."""

from django.db.models import Count, Q

from evaluations.domain.reviews import SAVED_REVIEW_STATES, TAKING_STATES, SelectionMethod
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import get_or_create_rater
from evaluations.models.queues import Assignment, QueueItem, QueueProgress
from evaluations.models.users import User
from evaluations.models.verdicts import Review
from evaluations.reviews.queues.next_comparison import reserve_next_comparison

TAKEN_PLACES = Q(assignments__state__in=TAKING_STATES) & ~Q(assignments__selection_method=SelectionMethod.CALIBRATION)


def take_next_comparison(person: User, evaluation: Evaluation) -> int | None:
    return reserve_next_comparison(evaluation, get_or_create_rater(person, evaluation))


def assert_counters_are_right(evaluation: Evaluation) -> None:
    """Every counter equals a recount, and nobody's progress is beyond something open that its person has not met."""
    items = QueueItem.objects.filter(comparison__evaluation=evaluation)
    recounted = items.annotate(places=Count("assignments", filter=TAKEN_PLACES))
    assert [(item.pk, item.taken) for item in recounted] == [(item.pk, item.places) for item in recounted]
    for progress in QueueProgress.objects.filter(rater__evaluation=evaluation, queue__isnull=True):
        mine = Review.objects.filter(rater=progress.rater_id, rubric_version=progress.rubric_version_id)
        assert progress.done == mine.filter(state__in=SAVED_REVIEW_STATES).count()
        met = Assignment.objects.filter(rater=progress.rater_id).values("item")
        passed = items.exclude(pk__in=met).filter(position__lt=progress.reached)
        assert not [item for item in passed if item.taken < item.wanted]
