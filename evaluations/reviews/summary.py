"""What a reviewer is told at the end of a session: their pace, and how often they agreed with the judge and others."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from evaluations.domain.choices import Choice
from evaluations.domain.reviews import SAVED_REVIEW_STATES, Reveal, ReviewState, SelectionMethod
from evaluations.domain.roles import RaterKind
from evaluations.domain.rubrics import AspectSpec
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater
from evaluations.models.users import User
from evaluations.models.verdicts import Review
from evaluations.reviews.sheet import find_judge_rater
from evaluations.verdicts.judge_choices import load_judge_choices
from evaluations.verdicts.reviewer_choices import load_first_choices
from evaluations.visibility import reveal_comparisons, visible_comparisons

# The last reviews are compared: on each of them the reviewer then counts as having seen what others chose.
SUMMARY_REVIEWS: Final = 200

ChoicesByReview = Mapping[int, Mapping[str, Choice]]


@dataclass(frozen=True)
class Agreement:
    """How many of a reviewer's first choices, one for each aspect, are those of somebody else."""

    agreed: int
    compared: int

    @property
    def percent(self) -> int:
        return round(100 * self.agreed / self.compared) if self.compared else 0


@dataclass(frozen=True)
class ReviewSummary:
    """``reviewed``: the last final reviews. ``judge_name``: empty where no judge is revealed to reviewers."""

    reviewed: int
    median_seconds: float | None
    judge_name: str
    judge: Agreement
    others: Agreement

    @property
    def time_in_words(self) -> str:
        if self.median_seconds is None:
            return "–"
        minutes, seconds = divmod(round(self.median_seconds), 60)
        return f"{minutes} min {seconds} s" if minutes else f"{seconds} s"


def build_review_summary(user: User, evaluation: Evaluation, rater: Rater | None) -> ReviewSummary:
    """The summary of the reviewer's last final reviews by the current rubric. Records that they saw others' choices."""
    reviews = list_last_reviews(user, evaluation, rater)
    reveal_comparisons(user, evaluation, [review.comparison for review in reviews])
    times = [review.active_ms for review in reviews if review.active_ms]
    judge = None if evaluation.reveal == Reveal.NEVER else find_judge_rater(evaluation.shown_judge_id)
    rubric = evaluation.review_rubric
    aspects = rubric.spec().aspects if rubric else ()
    first = load_first_choices(reviews, aspects)
    return ReviewSummary(
        reviewed=len(reviews),
        median_seconds=median(times) / 1000 if times else None,
        judge_name=judge.judge.name if judge and judge.judge else "",
        judge=compare_with_judge(reviews, first, judge),
        others=compare_with_others(reviews, first, aspects),
    )


def list_last_reviews(user: User, evaluation: Evaluation, rater: Rater | None) -> list[Review]:
    """Newest first; without those of calibrations, which have a result of their own."""
    if rater is None:
        return []
    reviews = Review.objects.filter(
        rater=rater,
        rubric_version=evaluation.review_rubric_id,
        state=ReviewState.FINAL,
        comparison__in=visible_comparisons(user, evaluation),
    ).exclude(selection_method=SelectionMethod.CALIBRATION)
    return list(reviews.select_related("comparison").order_by("-finished_at", "-pk")[:SUMMARY_REVIEWS])


def compare_with_judge(reviews: Sequence[Review], first: ChoicesByReview, judge: Rater | None) -> Agreement:
    """A review that still awaits the judge is left out: its reviewer has not met the judge's choices yet."""
    met = [review for review in reviews if not review.awaits_judge]
    if judge is None or not met:
        return Agreement(0, 0)
    choices = load_judge_choices(judge, [review.comparison_id for review in met])
    return count_agreement(
        (choice, judged[key].choice)
        for review in met
        if (judged := choices.get(review.comparison_id))
        for key, choice in first.get(review.pk, {}).items()
        if key in judged
    )


def compare_with_others(reviews: Sequence[Review], first: ChoicesByReview, aspects: Sequence[AspectSpec]) -> Agreement:
    """Compares with the first choices of each other reviewer who has saved a review by the same rubric."""
    own = {review.comparison_id: first.get(review.pk, {}) for review in reviews}
    if not reviews:
        return Agreement(0, 0)
    others = Review.objects.filter(
        comparison__in=own,
        rubric_version=reviews[0].rubric_version_id,
        state__in=SAVED_REVIEW_STATES,
        rater__kind=RaterKind.HUMAN,
    ).exclude(rater=reviews[0].rater_id)
    theirs = list(others.select_related("comparison"))
    chosen = load_first_choices(theirs, aspects)
    return count_agreement(
        (own[review.comparison_id][key], choice)
        for review in theirs
        for key, choice in chosen.get(review.pk, {}).items()
        if key in own[review.comparison_id]
    )


def count_agreement(pairs: Iterable[tuple[Choice, Choice]]) -> Agreement:
    agreed = [mine == other for mine, other in pairs]
    return Agreement(sum(agreed), len(agreed))
