"""Facts about reviewing that other features read."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Final, Literal, TypeVar

from django.utils.crypto import salted_hmac

from evaluations.domain.choices import ShownOrder
from evaluations.domain.judges import JudgeKind
from evaluations.domain.reviews import SAVED_REVIEW_STATES, Reveal
from evaluations.judge_prompts.baseline_rules import TEXT_BLIND_RULES
from evaluations.models.comparisons import IS_SINGLE, Comparison
from evaluations.models.evaluations import EarlierGuidelines, Evaluation
from evaluations.models.judges import Rater
from evaluations.models.users import User
from evaluations.models.verdicts import Review, Span
from evaluations.reviews.queues.sql import (
    OwnCounts,
    QueueStock,
    read_queue_stock,
    read_stock_and_own_counts,
)
from evaluations.reviews.sql import find_earlier_reviews


@dataclass(frozen=True)
class ReviewProgress:
    total: int
    done: int
    skipped: int


def get_review_progress(evaluation: Evaluation, rater: Rater | None) -> ReviewProgress:
    """The rater's progress, from stored counters."""
    if rater is None:
        return build_review_progress(evaluation, None, read_queue_stock(evaluation), OwnCounts(0, 0))
    return build_review_progress(evaluation, rater, *read_stock_and_own_counts(evaluation, rater))


def build_review_progress(
    evaluation: Evaluation, rater: Rater | None, stock: QueueStock | None, own: OwnCounts
) -> ReviewProgress:
    """The rater's progress; what is not counted is counted now."""
    is_known = stock is not None and stock.is_full
    total = stock.items if stock and is_known else Comparison.reviewable.filter(evaluation=evaluation).count()
    done, skipped = own
    if done is None:
        reviews = Review.objects.filter(rater=rater, rubric_version=evaluation.review_rubric_id)
        done = reviews.filter(state__in=SAVED_REVIEW_STATES).count()
    return ReviewProgress(total, done, skipped)


def get_review_subject(evaluation: Evaluation) -> Literal["comparison", "response"]:
    """What pages call what is reviewed: single responses where there are no pairs."""
    reviewable = Comparison.reviewable.filter(evaluation=evaluation)
    if reviewable.exclude(IS_SINGLE).exists() or not reviewable.exists():
        return "comparison"
    return "response"


def get_earlier_reviews(evaluation: Evaluation, rater: Rater | None, review: Review | None) -> list[Review]:
    """Saved or skipped, newest first: those finished before this; from one that is not finished, the last ones."""
    if rater is None:
        return []
    return find_earlier_reviews(rater, evaluation.review_rubric_id, review.finished_at if review else None)


# Fewer reviews say too little about the time that the next ones take.
MIN_TIMED_REVIEWS: Final = 3


def estimate_minutes_left(earlier: Sequence[Review], progress: ReviewProgress) -> float | None:
    """How long the comparisons that are left take at the median time of the last ones; None if it is not known yet."""
    times = [review.active_ms for review in earlier if review.state in SAVED_REVIEW_STATES and review.active_ms]
    left = progress.total - progress.done - progress.skipped
    if len(times) < MIN_TIMED_REVIEWS or left <= 0:
        return None
    return median(times) * left / 60_000


def describe_minutes_left(minutes: float | None) -> str:
    if minutes is None:
        return ""
    if minutes < 1:
        return "less than a minute left"
    if minutes < 90:
        return f"about {minutes:.0f} min left"
    return f"about {minutes / 60:.0f} h left"


Side = TypeVar("Side")


def draw_bit(purpose: str, user: User, comparison: Comparison) -> bool:
    """A keyed random bit, independent for every purpose, user and comparison."""
    mac = salted_hmac(f"judgeweb.{purpose}", f"{user.pk}:{comparison.pk}", algorithm="sha256")
    return bool(mac.digest()[0] & 1)


def get_order_shown(user: User, comparison: Comparison) -> ShownOrder:
    """The order in which this user sees the responses."""
    if comparison.is_single:
        return ShownOrder.AS_STORED
    return ShownOrder.SWAPPED if draw_bit("order", user, comparison) else ShownOrder.AS_STORED


def put_in_order_shown(user: User, comparison: Comparison, responses: Sequence[Side]) -> Sequence[Side]:
    """Put values of A and B in the order in which the user sees them, left first.

    A is always the candidate whose name sorts first, so one side that is known gives away that of other comparisons.
    """
    return responses[::-1] if get_order_shown(user, comparison) == ShownOrder.SWAPPED else responses


def is_judge_shown_first(evaluation: Evaluation, user: User, comparison: Comparison) -> bool:
    """Whether the user sees the judge's choices before choosing. Rules that read no text are shown later."""
    if evaluation.reveal not in (Reveal.SHOWN, Reveal.RANDOMISED):
        return False
    judge = evaluation.shown_judge
    if judge is None or (judge.kind == JudgeKind.RULE and judge.model in TEXT_BLIND_RULES):
        return False
    return evaluation.reveal == Reveal.SHOWN or draw_bit("reveal", user, comparison)


def get_unseen_guidelines_change(evaluation: Evaluation, rater: Rater | None) -> datetime | None:
    """When the guidelines changed, if the rater has finished no review since but some before."""
    changed = evaluation.guidelines_changed_at
    if changed is None or rater is None:
        return None
    reviews = Review.objects.filter(rater=rater, rubric_version=evaluation.review_rubric_id, finished_at__isnull=False)
    last = reviews.order_by("-finished_at").values_list("finished_at", flat=True).first()
    return changed if last is not None and last < changed else None


def get_earlier_guidelines(evaluation: Evaluation, most: int = 20) -> Sequence[EarlierGuidelines]:
    """Earlier versions of the guidelines, newest first."""
    return list(evaluation.earlier_guidelines.select_related("user").order_by("-pk")[:most])


def get_saved_spans(comparison: Comparison) -> list[Span]:
    """The highlights in the responses of saved reviews, in text order."""
    saved = Span.objects.filter(review__comparison=comparison, review__state__in=SAVED_REVIEW_STATES)
    return list(saved.select_related("review__rater", "aspect").order_by("response", "turn", "start", "pk"))
