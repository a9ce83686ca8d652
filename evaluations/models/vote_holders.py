"""Which review holds a reviewer's vote on an aspect, as SQL made from the tables of `domain.vote_rules`."""

from collections.abc import Iterator
from typing import Final

from django.db.models import Case, Exists, IntegerField, OuterRef, Q, QuerySet, Value, When

from evaluations.domain.choices import Stage
from evaluations.domain.reviews import RANDOM_SELECTION, SelectionMethod
from evaluations.domain.vote_rules import TIERS, UNSAVED, VoteRule
from evaluations.models.queues import QueueItem
from evaluations.models.rubrics import Aspect
from evaluations.models.verdicts import Review, Score, Verdict

PRACTICE: Final = SelectionMethod.CALIBRATION.value


def list_tiers(review: str) -> Iterator[tuple[Q, int]]:
    """The condition of each tier on a review."""
    for (state, is_practice), tier in TIERS.items():
        selected = Q(**{f"{review}selection_method": PRACTICE})
        yield Q(**{f"{review}state": state.value}) & (selected if is_practice else ~selected), tier


def encode_tier(review: str = "") -> Case:
    """The tier of a review, or of the one that a row belongs to: ``review__`` then leads to it."""
    whens = (When(condition, then=Value(tier)) for condition, tier in list_tiers(review))
    return Case(*whens, default=Value(UNSAVED), output_field=IntegerField())


def came_by_chance(review: str = "") -> Exists:
    """A condition: the random order has reached the comparison. How it was selected for the review does not matter."""
    drawn = QueueItem.objects.filter(drawn=True)
    return Exists(
        drawn.filter(rubric_version=OuterRef(f"{review}rubric_version"), comparison=OuterRef(f"{review}comparison"))
    )


def was_drawn(review: str = "") -> Q:
    return Q(**{f"{review}selection_method__in": [selected.value for selected in RANDOM_SELECTION]}) | Q(
        came_by_chance(review)
    )


def admitted(rule: VoteRule, review: str = "") -> Q:
    """The condition of `VoteRule.admits` in SQL."""
    condition = Q()
    for of_tier, tier in list_tiers(review):
        if tier >= rule.lowest_tier:
            condition |= of_tier
    if rule.blind is not None:
        condition &= Q(**{f"{review}blind": rule.blind})
    return condition & was_drawn(review) if rule.is_drawn else condition


def has_aspect(aspect: Aspect, stage: Stage = Stage.FIRST) -> Q:
    """Whether the review has a choice on the aspect, or scores of both responses."""
    columns = {"review": OuterRef("pk"), "aspect": aspect, "stage": stage.value}
    scores = [Score.objects.filter(**columns, response=OuterRef(f"comparison__response_{side}")) for side in "ab"]
    return Q(Exists(Verdict.objects.filter(**columns))) | (Q(Exists(scores[0])) & Q(Exists(scores[1])))


def holding_votes(reviews: "QuerySet[Review]", aspect: Aspect, rule: VoteRule) -> "QuerySet[Review]":
    """The reviews that hold a vote on the aspect, as `find_vote_holder` does in Python."""
    candidates = Review.objects.filter(admitted(rule), has_aspect(aspect)).alias(tier=encode_tier())
    better = candidates.filter(rater=OuterRef("rater"), comparison=OuterRef("comparison")).filter(
        Q(tier__gt=OuterRef("tier")) | Q(tier=OuterRef("tier"), pk__gt=OuterRef("pk"))
    )
    admitted_reviews = reviews.filter(admitted(rule), has_aspect(aspect)).alias(tier=encode_tier())
    return admitted_reviews.filter(~Exists(better.order_by()))
