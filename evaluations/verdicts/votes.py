"""The human votes that count, one per reviewer, comparison and aspect, and the label rows that they make."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from django.db import connection
from django.db.models import Count, Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from evaluations.domain.choices import Choice, LabelSource, Stage
from evaluations.domain.roles import RaterKind
from evaluations.domain.texts import ComparisonOrigin
from evaluations.domain.vote_rules import (
    CURRENT_VOTES,
    LABEL_VOTES,
    ReviewFacts,
    find_counted_reviews,
    find_vote_holder,
)
from evaluations.models.bulk import insert_many, update_many
from evaluations.models.comparisons import IS_SINGLE, Comparison
from evaluations.models.compiled_select import CompiledSelect
from evaluations.models.verdicts import Adjudication, Label, Review, Score, Verdict
from evaluations.models.vote_holders import admitted, was_drawn
from evaluations.verdicts.score_choices import load_imported_preferences, load_review_scores

RESPONSES_PER_COMPARISON: Final = 2  # a review by scores has an aspect once it has scored both responses

VoteSubject = tuple[int, int]  # a comparison's id and an aspect's
VotesBySubject = Mapping[VoteSubject, Mapping[Choice, int]]


class Vote(NamedTuple):
    """A final choice of a reviewer; ``review`` is None for what came with an import."""

    comparison: int
    aspect: int
    rater: int
    review: ReviewFacts | None
    choice: Choice


def count_votes(comparison_ids: Sequence[int]) -> VotesBySubject:
    """How often people finally made each choice, in two queries, or a few more where responses have scores."""
    votes: dict[VoteSubject, Counter[Choice]] = defaultdict(Counter)
    candidates = [*read_chosen_votes(comparison_ids)]
    if scored := [pk for (pk,) in SCORED_PAIRS.read(comparison_ids)]:
        candidates += [*read_scored_votes(scored), *read_imported_votes(scored)]
    for vote in keep_one_vote_each(candidates):
        votes[vote.comparison, vote.aspect][vote.choice] += 1
    return votes


def keep_one_vote_each(votes: Iterable[Vote]) -> list[Vote]:
    """Keep the vote of each reviewer that counts for the label. All imported votes count, since they have no order."""
    imported: list[Vote] = []
    by_reviewer: dict[tuple[int, int, int], dict[ReviewFacts, Vote]] = defaultdict(dict)
    for vote in votes:
        if vote.review is None:
            imported.append(vote)
        else:
            by_reviewer[vote.comparison, vote.aspect, vote.rater][vote.review] = vote
    holders = ((by_review, find_vote_holder(by_review, LABEL_VOTES)) for by_review in by_reviewer.values())
    return [*imported, *(by_review[review] for by_review, review in holders if review is not None)]


def select_chosen_votes() -> "QuerySet[Verdict, Any]":
    """By people, in reviews and in imports that are done."""
    finished = Q(stage=Stage.FINAL) & admitted(LABEL_VOTES, "review__")
    verdicts = Verdict.objects.filter(finished | Q(review__isnull=True), rater__kind=RaterKind.HUMAN)
    columns = (
        *("comparison_id", "aspect_id", "rater_id", "choice"),
        *("review_id", "review__state", "review__selection_method"),
    )
    return verdicts.order_by("pk").values_list(*columns)


# Run at every save: each is put together once.
CHOSEN_VOTES: Final = CompiledSelect("comparison_id", select_chosen_votes)
SCORED_PAIRS: Final = CompiledSelect(
    "id",
    lambda: Comparison.all_rows.filter(
        ~IS_SINGLE,
        Exists(Score.all_rows.filter(response=OuterRef("response_a"))),
    ).values_list("pk"),
)
RESOLUTIONS: Final = CompiledSelect(
    "comparison_id", lambda: Adjudication.objects.values_list("comparison_id", "aspect_id", "choice")
)
LABELS: Final = CompiledSelect(
    "comparison_id",
    lambda: Label.objects.values_list("pk", "comparison_id", "aspect_id", "choice", "source", "votes", "unanimous"),
)
LOCKED_COMPARISONS: Final = CompiledSelect(
    "id", lambda: Comparison.all_rows.select_for_update(no_key=True).order_by("pk").values_list("pk")
)


def read_chosen_votes(comparison_ids: Sequence[int]) -> Iterator[Vote]:
    for comparison, aspect, rater, choice, review, state, selection_method in CHOSEN_VOTES.read(comparison_ids):
        facts = None if review is None else ReviewFacts(review, state, selection_method)
        yield Vote(comparison, aspect, rater, facts, Choice(choice))


def read_scored_votes(comparison_ids: Sequence[int]) -> Iterator[Vote]:
    """From the scores that a person finally gave the two responses, by the margin of the review's rubric."""
    for pair in load_review_scores(comparison_ids, Q(stage=Stage.FINAL) & admitted(LABEL_VOTES, "review__")):
        if pair.choice is not None:
            yield Vote(pair.comparison, pair.aspect, pair.rater, pair.review, pair.choice)


def read_imported_votes(comparison_ids: Sequence[int]) -> Iterator[Vote]:
    """From the scores of people that came with imports, two of one sample each."""
    return (
        Vote(pair.comparison, pair.aspect, pair.rater, None, pair.choice)
        for pair in load_imported_preferences(comparison_ids)
    )


def get_review_facts(review: Review) -> ReviewFacts:
    """Without whether the comparison was drawn, which labels and pages do not ask."""
    return ReviewFacts(review.pk, review.state, review.selection_method, review.blind)


# ---- what counts for a label or in the statistics ---------------------------------------------


class CountedReviews:
    """The choices that count, of people who reviewed a comparison several times."""

    def __init__(self, repeated: Collection[int], places: Mapping[tuple[int, int], int]) -> None:
        """``repeated``: ids of all such reviews. ``places``: by review and aspect, of those that count."""
        self.repeated = repeated
        self.places = places

    def get_place(self, review_id: int, aspect_id: int) -> int | None:
        """0 for the choice that the label counts, 1 and 2 for others that statistics count; None where none does."""
        return self.places.get((review_id, aspect_id)) if review_id in self.repeated else 0


def find_counted_choices(comparison_ids: Collection[int]) -> CountedReviews:
    """Find the choices that count in reviews of these comparisons, with two to five queries."""
    subjects = read_repeated_reviews(comparison_ids)
    by_aspect: dict[tuple[int, int, int], list[ReviewFacts]] = defaultdict(list)
    for review, aspect in read_review_aspects(list(subjects)):
        comparison, rater, facts = subjects[review]
        by_aspect[comparison, rater, aspect].append(facts)
    places = {
        (review, aspect): place
        for (_, _, aspect), reviews in by_aspect.items()
        for place, review in enumerate(find_counted_reviews(reviews))
    }
    return CountedReviews(subjects.keys(), places)


def read_repeated_reviews(comparison_ids: Collection[int]) -> Mapping[int, tuple[int, int, ReviewFacts]]:
    """Review id → comparison id, rater id and facts, where a person made several reviews of a comparison."""
    saved = Review.objects.filter(admitted(CURRENT_VOTES), comparison__in=comparison_ids)
    by_person: dict[tuple[int, int], list[ReviewFacts]] = defaultdict(list)
    columns = ("comparison_id", "rater_id", "pk", "state", "selection_method", "blind")
    for comparison, rater, pk, state, selection_method, blind in saved.values_list(*columns):
        by_person[comparison, rater].append(ReviewFacts(pk, state, selection_method, blind))
    again = {subject: reviews for subject, reviews in by_person.items() if len(reviews) > 1}
    if not again:
        return {}
    repeated = [facts.number for reviews in again.values() for facts in reviews]
    drawn = set(saved.filter(was_drawn(), pk__in=repeated).values_list("pk", flat=True))
    return {
        facts.number: (comparison, rater, facts._replace(is_drawn=facts.number in drawn))
        for (comparison, rater), reviews in again.items()
        for facts in reviews
    }


def read_review_aspects(review_ids: Collection[int]) -> list[tuple[int, int]]:
    """(review id, aspect id) for each aspect that a review has a choice on, or a score of every response."""
    if not review_ids:
        return []
    first = {"review__in": review_ids, "stage": Stage.FIRST}
    chosen = Verdict.objects.filter(**first).values_list("review_id", "aspect_id")
    scored = Score.objects.filter(**first).order_by().values_list("review_id", "aspect_id")
    is_single = Q(review__comparison__origin=ComparisonOrigin.SINGLE)
    counted = scored.annotate(responses=Count("response"))
    complete = counted.filter(Q(responses=RESPONSES_PER_COMPARISON) | is_single)
    pairs = (*chosen, *((review, aspect) for review, aspect, _ in complete))
    return [(review, aspect) for review, aspect in pairs if review is not None]


# ---- label rows, updated in the transaction that changes a vote ----------------------------------


class LabelRow(NamedTuple):
    choice: str
    source: str
    votes: int
    unanimous: bool


def update_labels(comparison_ids: Iterable[int]) -> None:
    """Recount the votes on these comparisons, inside the transaction that changed one."""
    ids = sorted(set(comparison_ids))
    if not ids:
        return
    lock_comparisons(ids)
    due = compute_label_rows(ids)
    existing = {(comparison, aspect): (pk, LabelRow(*row)) for pk, comparison, aspect, *row in LABELS.read(ids)}
    if gone := [pk for subject, (pk, _) in existing.items() if subject not in due]:
        Label.objects.filter(pk__in=gone).delete()
    changed = [(pk, *due[subject]) for subject, (pk, row) in existing.items() if due.get(subject, row) != row]
    update_many(Label, ("id", *LabelRow._fields), changed)
    now = timezone.now()
    new = [(now, *subject, *row) for subject, row in due.items() if subject not in existing]
    insert_many(Label, ("created_at", "comparison_id", "aspect_id", *LabelRow._fields), new)


def lock_comparisons(comparison_ids: Collection[int]) -> None:
    """Let nobody else count these until the transaction ends: the second of two simultaneous voters sees both votes."""
    if connection.features.has_select_for_update:
        LOCKED_COMPARISONS.read(comparison_ids)


def compute_label_rows(comparison_ids: Iterable[int]) -> dict[VoteSubject, LabelRow]:
    ids = list(comparison_ids)
    votes = count_votes(ids)
    due = {subject: compute_label_row(counts) for subject, counts in votes.items()}
    for comparison, aspect, choice in RESOLUTIONS.read(ids):
        counts = votes.get((comparison, aspect), {})
        due[comparison, aspect] = LabelRow(choice, LabelSource.ADJUDICATED, sum(counts.values()), len(counts) < 2)
    return due


def compute_label_row(votes: Mapping[Choice, int]) -> LabelRow:
    """The choice with more votes than any other; a split gives none."""
    number, leading = sum(votes.values()), max(votes.values())
    first, *others = [choice for choice, count in votes.items() if count == leading]
    if others:
        return LabelRow("", LabelSource.SPLIT, number, False)
    return LabelRow(first, LabelSource.SINGLE if number == 1 else LabelSource.MAJORITY, number, len(votes) == 1)
