"""Rows that requests about disagreements name, or a 404 if the user may not use them."""

from typing import Final

from django.shortcuts import get_object_or_404

from evaluations.access import Action, require_evaluation
from evaluations.models.comparisons import Comparison
from evaluations.models.rubrics import Aspect
from evaluations.models.users import User
from evaluations.models.verdicts import Adjudication, Comment, Review
from evaluations.visibility import visible_comparisons

COMPARISON_RELATIONS: Final = (
    *("query", "response_a__candidate", "response_b__candidate"),
    "evaluation__review_rubric__rubric",
)


def get_open_comparison_or_404(user: User, slug: str, pk: int, action: Action = Action.LOOK) -> Comparison:
    """The comparison, if this user may see the choices on it."""
    evaluation = require_evaluation(user, slug, action)
    visible = visible_comparisons(user, evaluation).select_related(*COMPARISON_RELATIONS)
    comparison: Comparison = get_object_or_404(visible, pk=pk)
    return comparison


def get_aspect_or_404(comparison: Comparison, key: str) -> Aspect:
    aspect: Aspect = get_object_or_404(Aspect, evaluation=comparison.evaluation_id, key=key)
    return aspect


def get_resolution_or_404(user: User, slug: str, pk: int) -> Adjudication:
    """The resolution, with its comparison as `get_open_comparison_or_404` returns it."""
    evaluation = require_evaluation(user, slug, Action.ADJUDICATE)
    resolutions = Adjudication.objects.select_related("comparison", "aspect", "user")
    resolution = get_object_or_404(resolutions, pk=pk, comparison__evaluation=evaluation)
    resolution.comparison = get_open_comparison_or_404(user, slug, resolution.comparison_id, Action.ADJUDICATE)
    return resolution


def get_own_review_or_404(user: User, comparison: Comparison, pk: int) -> Review:
    reviews = Review.objects.filter(rater__user=user, comparison=comparison).select_related("rater")
    review = get_object_or_404(reviews, pk=pk)
    review.comparison = comparison
    return review


def get_own_comment_or_404(user: User, slug: str, pk: int) -> Comment:
    evaluation = require_evaluation(user, slug, Action.DISCUSS)
    comments = Comment.objects.filter(user=user, comparison__in=visible_comparisons(user, evaluation))
    return get_object_or_404(comments.select_related("comparison__evaluation"), pk=pk)
