"""Which reviews lost their vote on an aspect because the same person reviewed the comparison again."""

from collections import defaultdict
from collections.abc import Collection, Mapping
from typing import Final

from django.db.models import Count

from evaluations.domain import SAVED_REVIEW_STATES, PickedBy, Stage, review_rank
from evaluations.models import Review, Score, Verdict

RESPONSES: Final = 2  # a scored review says something about a comparison once it has scored both


def replaced_reviews(comparison_ids: Collection[int]) -> frozenset[tuple[int, int]]:
    """The (review id, aspect id) pairs on these comparisons that another review of the same person replaces.

    Calibration reviews hold no vote and replace none.
    """
    ranks = ranks_of_repeated(comparison_ids)
    votes: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    for review, aspect in aspects_of(list(ranks)):
        (comparison, rater), _ = ranks[review]
        votes[comparison, rater, aspect].append(review)
    replaced: set[tuple[int, int]] = set()
    for (_, _, aspect), reviews in votes.items():
        holds_vote = max(reviews, key=lambda review: ranks[review][1])
        replaced.update((review, aspect) for review in reviews if review != holds_vote)
    return frozenset(replaced)


def ranks_of_repeated(comparison_ids: Collection[int]) -> Mapping[int, tuple[tuple[int, int], tuple[bool, int]]]:
    """Review id → (comparison id, rater id) and rank, where a person made several reviews of a comparison."""
    saved = Review.objects.filter(comparison__in=comparison_ids, state__in=SAVED_REVIEW_STATES)
    saved = saved.exclude(picked_by=PickedBy.CALIBRATION)
    by_person: dict[tuple[int, int], list[tuple[int, str]]] = defaultdict(list)
    for review, comparison, rater, state in saved.values_list("pk", "comparison_id", "rater_id", "state"):
        by_person[comparison, rater].append((review, state))
    return {
        review: (subject, review_rank(state, review))
        for subject, reviews in by_person.items()
        if len(reviews) > 1
        for review, state in reviews
    }


def aspects_of(review_ids: Collection[int]) -> list[tuple[int, int]]:
    """(review id, aspect id) for each aspect that a review has a choice on, or a score of both responses."""
    if not review_ids:
        return []
    first = {"review__in": review_ids, "stage": Stage.FIRST}
    chosen = Verdict.objects.filter(**first).values_list("review_id", "aspect_id")
    scored = Score.objects.filter(**first).order_by().values_list("review_id", "aspect_id")
    both = scored.annotate(responses=Count("response")).filter(responses=RESPONSES)
    pairs = (*chosen, *((review, aspect) for review, aspect, _ in both))
    return [(review, aspect) for review, aspect in pairs if review is not None]
