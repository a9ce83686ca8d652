"""The human votes that count: one per reviewer, comparison and aspect."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from django.db.models import Count, Q

from evaluations.domain.choices import Choice, Stage, choice_from_scores
from evaluations.domain.reviews import SAVED_REVIEW_STATES, ReviewState, SelectionMethod, review_rank
from evaluations.domain.roles import RaterKind
from evaluations.models.rubrics import RubricAspect
from evaluations.models.verdicts import Review, Score, Verdict
from evaluations.verdicts.response_scores import load_score_preferences

COUNTED_PICKS: Final = [
    picked_by.value for picked_by in SelectionMethod if picked_by is not SelectionMethod.CALIBRATION
]

VoteSubject = tuple[int, int]  # a comparison's id and an aspect's

VotesBySubject = Mapping[VoteSubject, Mapping[Choice, int]]


class Vote(NamedTuple):
    """``review`` is None for what came with an import."""

    comparison: int
    aspect: int
    rater: int
    review: int | None
    choice: Choice


def count_human_votes(comparison_ids: Sequence[int]) -> VotesBySubject:
    """How often people finally made each choice, in three queries, or a few more where people gave scores."""
    votes: dict[VoteSubject, Counter[Choice]] = defaultdict(Counter)
    given = (
        *read_chosen_votes(comparison_ids),
        *read_review_score_votes(comparison_ids),
        *read_imported_votes(comparison_ids),
    )
    for vote in keep_newest_votes(given):
        votes[vote.comparison, vote.aspect][vote.choice] += 1
    return votes


def keep_newest_votes(votes: Iterable[Vote]) -> list[Vote]:
    """Of a person's reviews the newest that has the aspect. Imported votes have no order: all of them count."""
    imported, newest = [], {}
    for vote in sorted(votes, key=lambda vote: vote.review or 0):
        if vote.review is None:
            imported.append(vote)
        else:
            newest[vote.comparison, vote.aspect, vote.rater] = vote
    return [*imported, *newest.values()]


def read_chosen_votes(comparison_ids: Sequence[int]) -> Iterator[Vote]:
    """By people, in reviews and in imports that are done."""
    finished = Q(stage=Stage.FINAL, review__state=ReviewState.FINAL, review__picked_by__in=COUNTED_PICKS)
    said = Verdict.objects.filter(finished | Q(review__isnull=True), rater__kind=RaterKind.HUMAN)
    rows = said.filter(comparison__in=comparison_ids).order_by("pk")
    columns = rows.values_list("comparison_id", "aspect_id", "rater_id", "review_id", "choice")
    return (Vote(one, aspect, rater, review, Choice(choice)) for one, aspect, rater, review, choice in columns)


def read_review_score_votes(comparison_ids: Sequence[int]) -> Iterator[Vote]:
    """From the scores that a person finally gave the two responses, by the margin of the review's rubric."""
    given: dict[tuple[int, int], dict[int, float]] = defaultdict(dict)
    scores = Score.objects.filter(
        review__comparison__in=comparison_ids,
        review__state=ReviewState.FINAL,
        review__picked_by__in=COUNTED_PICKS,
        stage=Stage.FINAL,
    )
    for review, aspect, response, value in scores.values_list("review_id", "aspect_id", "response_id", "value"):
        given[review, aspect][response] = value
    if not given:
        return
    reviews = Review.objects.select_related("comparison").filter(pk__in={review for review, _ in given})
    known = {review.pk: review for review in reviews}
    margins = get_tie_margins({review.rubric_version_id for review in known.values()})
    for (pk, aspect), values in given.items():
        made, sides = known[pk], known[pk].comparison
        margin = margins.get((made.rubric_version_id, aspect), 0.0)
        choice = choice_from_scores(values.get(sides.response_a_id), values.get(sides.response_b_id), margin)
        if choice is not None:
            yield Vote(made.comparison_id, aspect, made.rater_id, pk, choice)


def read_imported_votes(comparison_ids: Sequence[int]) -> Iterator[Vote]:
    """From the scores of people that came with imports, two of one sample each."""
    return (
        Vote(one.comparison, one.aspect, one.rater, None, one.choice) for one in load_score_preferences(comparison_ids)
    )


def get_tie_margins(versions: Collection[int]) -> dict[tuple[int, int], float]:
    """The margin of a tie by rubric version and aspect."""
    rows = RubricAspect.objects.filter(version__in=versions).order_by()
    columns = rows.values_list("version_id", "aspect_id", "tie_margin")
    return {(version, aspect): margin for version, aspect, margin in columns}


RESPONSES_PER_COMPARISON: Final = 2  # a scored review says something about a comparison once it has scored both


def find_replaced_votes(comparison_ids: Collection[int]) -> frozenset[tuple[int, int]]:
    """The (review id, aspect id) pairs on these comparisons that another review of the same person replaces.

    Calibration reviews hold no vote and replace none.
    """
    ranks = rank_repeated_reviews(comparison_ids)
    votes: dict[tuple[int, int, int], list[int]] = defaultdict(list)
    for review, aspect in list_review_aspects(list(ranks)):
        (comparison, rater), _ = ranks[review]
        votes[comparison, rater, aspect].append(review)
    replaced: set[tuple[int, int]] = set()
    for (_, _, aspect), reviews in votes.items():
        holds_vote = max(reviews, key=lambda review: ranks[review][1])
        replaced.update((review, aspect) for review in reviews if review != holds_vote)
    return frozenset(replaced)


def rank_repeated_reviews(comparison_ids: Collection[int]) -> Mapping[int, tuple[tuple[int, int], tuple[bool, int]]]:
    """Review id → (comparison id, rater id) and rank, where a person made several reviews of a comparison."""
    saved = Review.objects.filter(comparison__in=comparison_ids, state__in=SAVED_REVIEW_STATES)
    saved = saved.exclude(picked_by=SelectionMethod.CALIBRATION)
    by_person: dict[tuple[int, int], list[tuple[int, str]]] = defaultdict(list)
    for review, comparison, rater, state in saved.values_list("pk", "comparison_id", "rater_id", "state"):
        by_person[comparison, rater].append((review, state))
    return {
        review: (subject, review_rank(state, review))
        for subject, reviews in by_person.items()
        if len(reviews) > 1
        for review, state in reviews
    }


def list_review_aspects(review_ids: Collection[int]) -> list[tuple[int, int]]:
    """(review id, aspect id) for each aspect that a review has a choice on, or a score of both responses."""
    if not review_ids:
        return []
    first = {"review__in": review_ids, "stage": Stage.FIRST}
    chosen = Verdict.objects.filter(**first).values_list("review_id", "aspect_id")
    scored = Score.objects.filter(**first).order_by().values_list("review_id", "aspect_id")
    both = scored.annotate(responses=Count("response")).filter(responses=RESPONSES_PER_COMPARISON)
    pairs = (*chosen, *((review, aspect) for review, aspect, _ in both))
    return [(review, aspect) for review, aspect in pairs if review is not None]
