"""Which comparison a person meets next, and how far they have come."""

from collections.abc import Iterator
from dataclasses import dataclass

from django.db.models import Count, QuerySet

from evaluations.domain import ReviewState
from evaluations.models import Comparison, Evaluation, Rater, Review

SAVED = (ReviewState.FIRST, ReviewState.FINAL)
UNFINISHED = (ReviewState.DRAFT, ReviewState.FIRST)
NEARBY = 100


@dataclass(frozen=True)
class Progress:
    total: int
    done: int
    skipped: int


def progress(evaluation: Evaluation, rater: Rater | None) -> Progress:
    counted = dict(reviews_of(evaluation, rater).values_list("state").annotate(Count("pk")))
    done = sum(counted.get(state, 0) for state in SAVED)
    total = Comparison.objects.filter(evaluation=evaluation).count()
    return Progress(total, done, counted.get(ReviewState.SKIPPED, 0))


def reviews_of(evaluation: Evaluation, rater: Rater | None) -> QuerySet[Review]:
    """This person's reviews by the rubric in force."""
    reviews: QuerySet[Review] = Review.objects.filter(rubric_version=evaluation.review_rubric_id)
    return reviews.filter(rater=rater) if rater else reviews.none()


def next_comparison(evaluation: Evaluation, rater: Rater | None) -> int | None:
    """The comparison that this person should look at now; None when there is none left."""
    return next((pk for pk in candidates(evaluation, rater) if pk is not None), None)


def candidates(evaluation: Evaluation, rater: Rater | None) -> Iterator[int | None]:
    """Each kind of comparison by turns, the first of its kind or None.

    What was begun comes first. Then what the person has not met, in the order of the shuffle, from
    where they are and then from the top. What enough others have reviewed comes later, and what
    the person skipped comes last, the longest skipped first.
    """
    mine = reviews_of(evaluation, rater)
    yield mine.filter(state__in=UNFINISHED).order_by("created_at").values_list("comparison_id", flat=True).first()
    yield nearby(evaluation, mine)
    fresh = in_order(evaluation).exclude(pk__in=mine.values("comparison"))
    yield fresh.exclude(pk__in=reviewed_enough(evaluation)).first()
    yield fresh.first()
    skipped = mine.filter(state=ReviewState.SKIPPED).order_by("finished_at", "pk")
    yield skipped.values_list("comparison_id", flat=True).first()


def nearby(evaluation: Evaluation, mine: QuerySet[Review]) -> int | None:
    """The first of the next few that is still wanted.

    Nearly always it is here, in three short looks at an index. One statement over all comparisons
    must be planned, and a database without fresh statistics, after a large import say, plans it badly.
    """
    reached = finished(mine).values_list("comparison__shuffle", flat=True).first()
    ahead = in_order(evaluation) if reached is None else in_order(evaluation).filter(shuffle__gte=reached)
    few = list(ahead[:NEARBY])
    met = set(mine.filter(comparison__in=few).values_list("comparison_id", flat=True))
    met.update(reviewed_enough(evaluation).filter(comparison__in=few))
    return next((pk for pk in few if pk not in met), None)


def in_order(evaluation: Evaluation) -> QuerySet[Comparison, int]:
    comparisons: QuerySet[Comparison] = Comparison.objects.filter(evaluation=evaluation)
    return comparisons.order_by("shuffle", "pk").values_list("pk", flat=True)


def reviewed_enough(evaluation: Evaluation) -> QuerySet[Review, int]:
    """The comparisons that have as many reviews as are wanted."""
    saved = Review.objects.filter(rubric_version=evaluation.review_rubric_id, state__in=SAVED)
    counted = saved.values("comparison").annotate(reviews=Count("pk"))
    return counted.filter(reviews__gte=evaluation.reviews_wanted).values_list("comparison_id", flat=True)


def last_finished(evaluation: Evaluation, rater: Rater | None) -> Review | None:
    """What “undo” takes back where the comparison before the person is untouched."""
    return finished(reviews_of(evaluation, rater)).first()


def earlier_review(evaluation: Evaluation, rater: Rater | None, review: Review | None) -> Review | None:
    """The one finished before this; from a comparison that is not finished, the one finished last."""
    done = finished(reviews_of(evaluation, rater))
    if review is not None and review.finished_at is not None:
        done = done.filter(finished_at__lt=review.finished_at)
    return done.first()


def finished(reviews: QuerySet[Review]) -> QuerySet[Review]:
    """Saved or skipped, the last one first."""
    return reviews.filter(finished_at__isnull=False).order_by("-finished_at")
