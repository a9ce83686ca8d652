"""What a reviewer is told at the end of a session: their pace, and how often they agreed with the judge and others."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Final

from evaluations.domain.choices import Choice, Stage
from evaluations.domain.reviews import SAVED_REVIEW_STATES, Reveal, ReviewState, SelectionMethod
from evaluations.domain.roles import RaterKind
from evaluations.domain.rubrics import AspectSpec
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater
from evaluations.models.users import User
from evaluations.models.verdicts import Review, Score
from evaluations.reviews.answers import SingleScore, are_scores_equal
from evaluations.reviews.sheet import find_judge_rater
from evaluations.verdicts.judge_choices import load_judge_choices, scoring_raters
from evaluations.verdicts.reviewer_choices import load_first_choices
from evaluations.verdicts.score_choices import derive_score_choices
from evaluations.visibility import reveal_comparisons, visible_comparisons

# The last reviews are compared: on each of them the reviewer then counts as having seen what others chose.
SUMMARY_REVIEWS: Final = 200

ChoicesByReview = Mapping[int, Mapping[str, Choice]]
ScoresByReview = Mapping[int, Mapping[str, float]]


@dataclass(frozen=True)
class Agreement:
    """How many of a reviewer's first choices or scores, one for each aspect, are those of somebody else."""

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
    pairs = [review for review in reviews if not review.comparison.is_single]
    singles = [review for review in reviews if review.comparison.is_single]
    first, scores = load_first_choices(pairs, aspects), load_first_scores(singles)
    return ReviewSummary(
        reviewed=len(reviews),
        median_seconds=median(times) / 1000 if times else None,
        judge_name=judge.judge.name if judge and judge.judge else "",
        judge=count_agreement(
            [*compare_with_judge(pairs, first, judge), *compare_scores_with_judge(singles, scores, aspects, judge)]
        ),
        others=count_agreement(
            [*compare_with_others(pairs, first, aspects), *compare_scores_with_others(singles, scores, aspects)]
        ),
    )


def list_last_reviews(user: User, evaluation: Evaluation, rater: Rater | None) -> list[Review]:
    """Newest first; without those of calibrations, which have a result of their own."""
    if rater is None:
        return []
    reviews = Review.objects.filter(
        rater=rater,
        rubric_version=evaluation.review_rubric_id,
        state=ReviewState.FINAL,
        comparison__in=visible_comparisons(user, evaluation, Comparison.reviewable),
    ).exclude(selection_method=SelectionMethod.CALIBRATION)
    return list(reviews.select_related("comparison").order_by("-finished_at", "-pk")[:SUMMARY_REVIEWS])


# ---- on pairs: whether each choice is the same


def compare_with_judge(reviews: Sequence[Review], first: ChoicesByReview, judge: Rater | None) -> Iterator[bool]:
    met = select_met_reviews(reviews)
    choices = load_judge_choices(judge, [review.comparison_id for review in met]) if judge and met else {}
    for review in met:
        judged = choices.get(review.comparison_id, {})
        for key, choice in first.get(review.pk, {}).items():
            if key in judged:
                yield choice == judged[key].choice


def compare_with_others(
    reviews: Sequence[Review], first: ChoicesByReview, aspects: Sequence[AspectSpec]
) -> Iterator[bool]:
    own = {review.comparison_id: first.get(review.pk, {}) for review in reviews}
    theirs = list_reviews_of_others(reviews)
    chosen = load_first_choices(theirs, aspects)
    for review in theirs:
        for key, choice in chosen.get(review.pk, {}).items():
            if key in own[review.comparison_id]:
                yield own[review.comparison_id][key] == choice


def select_met_reviews(reviews: Sequence[Review]) -> list[Review]:
    """A review that still awaits the judge is left out: its reviewer has not met the judge's choices yet."""
    return [review for review in reviews if not review.awaits_judge]


def list_reviews_of_others(reviews: Sequence[Review]) -> list[Review]:
    """The saved reviews of the same comparisons by each other reviewer, by the same rubric."""
    if not reviews:
        return []
    others = Review.objects.filter(
        comparison__in=[review.comparison_id for review in reviews],
        rubric_version=reviews[0].rubric_version_id,
        state__in=SAVED_REVIEW_STATES,
        rater__kind=RaterKind.HUMAN,
    ).exclude(rater=reviews[0].rater_id)
    return list(others.select_related("comparison"))


# ---- on single responses: whether each score is the same, up to the rubric's tie margin


def load_first_scores(reviews: Iterable[Review]) -> ScoresByReview:
    scores: dict[int, dict[str, float]] = defaultdict(dict)
    rows = Score.objects.filter(review__in=[review.pk for review in reviews], stage=Stage.FIRST)
    for pk, key, value in rows.values_list("review", "aspect__key", "value"):
        if pk is not None:
            scores[pk][key] = value
    return scores


def compare_scores_with_judge(
    reviews: Sequence[Review], first: ScoresByReview, aspects: Sequence[AspectSpec], judge: Rater | None
) -> Iterator[bool]:
    met = select_met_reviews(reviews)
    sides = {review.comparison_id: (review.comparison.response_a_id,) * 2 for review in met}
    scorers = scoring_raters([judge]) if judge and met else []
    judged = derive_score_choices(scorers, sides)[scorers[0].pk] if scorers else {}
    for review in met:
        given = {key: both.score_a for key, both in judged.get(review.comparison_id, {}).items()}
        yield from compare_scores(first.get(review.pk, {}), given, aspects)


def compare_scores_with_others(
    reviews: Sequence[Review], first: ScoresByReview, aspects: Sequence[AspectSpec]
) -> Iterator[bool]:
    own = {review.comparison_id: first.get(review.pk, {}) for review in reviews}
    theirs = list_reviews_of_others(reviews)
    scores = load_first_scores(theirs)
    for review in theirs:
        yield from compare_scores(own[review.comparison_id], scores.get(review.pk, {}), aspects)


def compare_scores(
    mine: Mapping[str, float], theirs: Mapping[str, float], aspects: Sequence[AspectSpec]
) -> Iterator[bool]:
    for aspect in aspects:
        if aspect.key in mine and aspect.key in theirs:
            yield are_scores_equal(aspect, SingleScore(mine[aspect.key]), SingleScore(theirs[aspect.key]))


def count_agreement(agreed: Sequence[bool]) -> Agreement:
    return Agreement(sum(agreed), len(agreed))
