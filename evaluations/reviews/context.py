"""A request for one comparison that the user reviews."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from django.http import Http404
from django.shortcuts import get_object_or_404
from django.urls import reverse

from evaluations.access import Action, require_evaluation, require_role
from evaluations.domain.rubrics import AspectSpec, RubricKind, RubricSpec
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater, find_rater_of_user
from evaluations.models.memberships import find_membership
from evaluations.models.queues import Queue
from evaluations.models.rubrics import RubricVersion
from evaluations.models.users import User
from evaluations.models.verdicts import Review, Span
from evaluations.reviews.forms import ChoicesForm
from evaluations.reviews.queues.sql import list_open_queues, select_calibrations
from evaluations.reviews.selectors import ReviewProgress, get_review_progress
from evaluations.reviews.services import get_review_rubric
from evaluations.reviews.sheet import ReviewSheet, build_sheet, build_sheet_of_review
from evaluations.reviews.sql import find_comparison, find_comparison_with_texts
from evaluations.visibility import has_seen_verdicts
from evaluations.web.requests import AuthenticatedRequest

# Requests that store nothing, so that what they have read still holds.
SAFE_METHODS: Final = ("GET", "HEAD")


@dataclass(frozen=True)
class ReviewContext:
    """``initial_rater``: None if the user had no rater yet. ``initial_review``: None if they had no review yet, or if
    it is to be read anew, because the request shows what it has stored: see ``has_current_review``.

    ``open_queues`` of the rubric version and ``progress``: None if they are not read yet.
    """

    request: AuthenticatedRequest
    user: User
    evaluation: Evaluation
    rubric: RubricVersion
    spec: RubricSpec
    comparison: Comparison
    initial_rater: Rater | None
    initial_review: Review | None = None
    has_current_review: bool = False
    open_queues: Sequence[Queue] | None = None
    progress: ReviewProgress | None = None

    @property
    def address(self) -> str:
        return reverse("review_comparison", args=[self.evaluation.slug, self.comparison.pk])

    @property
    def aspects(self) -> tuple[AspectSpec, ...]:
        return self.spec.aspects

    @property
    def rater(self) -> Rater | None:
        """The user's rater, which their first step creates."""
        return self.initial_rater or find_rater_of_user(self.user, self.evaluation)

    @cached_property
    def calibrations(self) -> Sequence[Queue]:
        """The open calibrations."""
        queues = list_open_queues(self.rubric.pk) if self.open_queues is None else self.open_queues
        return select_calibrations(queues)

    def read_choices_form(self) -> ChoicesForm:
        """The answers that the page sent."""
        return ChoicesForm(self.spec, self.request.POST, is_single=self.comparison.is_single)

    def get_progress(self) -> ReviewProgress:
        return self.progress or get_review_progress(self.evaluation, self.rater)

    def load_sheet(self) -> ReviewSheet:
        if self.has_current_review:
            return build_sheet_of_review(self.user, self.comparison, self.initial_review, self.rater, self.spec)
        return build_sheet(self.user, self.comparison, self.rubric, self.rater, self.spec)

    def build_sheet_of(self, review: Review) -> ReviewSheet:
        """The sheet of the user's review as it was just stored."""
        return build_sheet_of_review(self.user, self.comparison, review, review.rater, self.spec)

    def has_seen_verdicts(self) -> bool:
        return has_seen_verdicts(self.user, self.comparison)

    def get_own_review_or_404(self) -> Review:
        reviews = Review.objects.select_related("rater").filter(rater__user=self.user, rubric_version=self.rubric)
        review = get_object_or_404(reviews, comparison=self.comparison)
        review.comparison, review.rubric_version = self.comparison, self.rubric
        return review


def require_reviewer(user: User, slug: str) -> tuple[Evaluation, Rater | None]:
    """The evaluation that the user may review, and their rater there if they have one, in one query."""
    membership, rater = find_membership(user, slug)
    return require_role(user, membership, Action.REVIEW), rater


def load_review_context(request: AuthenticatedRequest, slug: str, pk: int, *, with_texts: bool = True) -> ReviewContext:
    """``with_texts``: whether the request shows them; they are read anyway where they are needed."""
    evaluation, rater = require_reviewer(request.user, slug)
    rubric = get_review_rubric(evaluation)
    return build_review_context(request, evaluation, rubric, rater, pk, with_texts=with_texts)


def build_review_context(
    request: AuthenticatedRequest,
    evaluation: Evaluation,
    rubric: RubricVersion,
    initial_rater: Rater | None,
    pk: int,
    *,
    with_texts: bool = True,
    open_queues: Sequence[Queue] | None = None,
    progress: ReviewProgress | None = None,
) -> ReviewContext:
    """The context for a user whose permission is already checked."""
    review: Review | None = None
    if with_texts:
        comparison, review = find_comparison_with_texts(evaluation, pk, rubric, initial_rater)
    else:
        comparison = find_comparison(evaluation, pk)
    spec = rubric.spec()
    if comparison is None or (comparison.is_single and spec.kind != RubricKind.POINTWISE):
        raise Http404
    return ReviewContext(
        request,
        request.user,
        evaluation,
        rubric,
        spec,
        comparison,
        initial_rater,
        initial_review=review,
        has_current_review=with_texts and request.method in SAFE_METHODS,
        open_queues=open_queues,
        progress=progress,
    )


def get_own_span_or_404(user: User, slug: str, pk: int) -> Span:
    evaluation = require_evaluation(user, slug, Action.REVIEW)
    spans = Span.objects.select_related("review__rubric_version", "review__comparison__evaluation", "aspect")
    return get_object_or_404(spans, pk=pk, review__rater__user=user, review__comparison__evaluation=evaluation)
