"""Calibration: a few comparisons with known labels that a person reviews before any other.

What they chose at first is compared with what is known once they have met all of them.
"""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from django.db.models import Q, QuerySet

from evaluations.domain import (
    FLIPPED,
    SAVED_REVIEW_STATES,
    AspectSpec,
    Choice,
    ReviewState,
    RoundKind,
    Shown,
    Stage,
    derived_choice,
)
from evaluations.models import Comparison, Evaluation, Event, Pick, Rater, Review, Round, Score, User, Verdict
from evaluations.services.recording import record
from evaluations.services.reviewing.posing import Known, known_labels

SAW_RESULT: Final = "saw calibration result"
# A skipped one is met too: nobody is kept from work by a comparison that they cannot decide.
MET: Final = (*SAVED_REVIEW_STATES, ReviewState.SKIPPED)


@dataclass(frozen=True)
class Standing:
    """How far a person is with a calibration round. ``is_news``: finished, and the result not opened yet.

    ``place``: which of its comparisons lies before the person; None where it is none of them.
    """

    round: Round
    done: int
    total: int
    is_news: bool = False
    place: int | None = None

    @property
    def is_finished(self) -> bool:
        return self.done >= self.total


@dataclass(frozen=True)
class Agreement:
    """On one aspect: how many known labels the person chose on, and how many of them alike."""

    aspect: AspectSpec
    compared: int
    agreed: int

    @property
    def share(self) -> float | None:
        return self.agreed / self.compared if self.compared else None


@dataclass(frozen=True)
class Difference:
    """Where a person chose otherwise than is known, both in terms of A and B as stored."""

    comparison: Comparison
    review: Review
    aspect: AspectSpec
    chosen: Choice
    known: Choice

    @property
    def chosen_as_seen(self) -> Choice:
        return self.as_seen(self.chosen)

    @property
    def known_as_seen(self) -> Choice:
        return self.as_seen(self.known)

    def as_seen(self, choice: Choice) -> Choice:
        """In terms of the person's own left and right."""
        return FLIPPED[choice] if self.review.shown == Shown.SWAPPED else choice


@dataclass(frozen=True)
class CalibrationResult:
    standing: Standing
    agreements: tuple[Agreement, ...]
    differences: tuple[Difference, ...]
    skipped: int

    @property
    def overall(self) -> Agreement | None:
        """All aspects together; None where nothing could be compared."""
        compared = sum(one.compared for one in self.agreements)
        agreed = sum(one.agreed for one in self.agreements)
        return Agreement(AspectSpec("", "All aspects", ""), compared, agreed) if compared else None


# ---- how far a person is


# The same for every page of review: nearly always none.
OPEN: Final = """
SELECT * FROM evaluations_round
WHERE rubric_version_id = %s AND kind = 'calibration' AND closed_at IS NULL ORDER BY id
"""


def open_rounds(evaluation: Evaluation) -> "QuerySet[Round]":
    """The calibration rounds that everyone who reviews by the rubric in force has to go through."""
    rounds: QuerySet[Round] = Round.objects.filter(
        evaluation=evaluation,
        rubric_version=evaluation.review_rubric_id,
        kind=RoundKind.CALIBRATION,
        closed_at__isnull=True,
    )
    return rounds.order_by("pk")


def standing(evaluation: Evaluation, rater: Rater | None, comparison: Comparison | None = None) -> Standing | None:
    """The first round that this person has not finished, else the first whose result they have not opened."""
    standings = [standing_in(one, rater) for one in Round.objects.raw(OPEN, [evaluation.review_rubric_id])]
    unfinished = next((one for one in standings if not one.is_finished), None)
    if unfinished is None or comparison is None:
        return unfinished or next((one for one in standings if one.is_news), None)
    picks = unfinished.round.picks.filter(item__comparison=comparison)
    return replace(unfinished, place=picks.values_list("place", flat=True).first())


def unseen_result(evaluation: Evaluation, rater: Rater | None) -> Round | None:
    """The round whose result is to be shown to this person now, before they go on."""
    found = standing(evaluation, rater)
    return found.round if found and found.is_news else None


def ends_with(evaluation: Evaluation, rater: Rater, comparisons: Collection[int]) -> bool:
    """Whether these are all that is left of this person's calibration: its result comes before anything else."""
    left: set[int] = set()
    for one in Round.objects.raw(OPEN, [evaluation.review_rubric_id]):
        met = met_by(one, rater).values("comparison")
        left.update(one.picks.exclude(item__comparison__in=met).values_list("item__comparison", flat=True))
    return bool(left) and left.issubset(comparisons)


def standing_in(made: Round, rater: Rater | None) -> Standing:
    total = made.picks.count()
    done = met_by(made, rater).count() if rater else 0
    return Standing(made, done, total, is_news=done >= total and rater is not None and not has_seen_result(made, rater))


def met_by(made: Round, rater: Rater) -> "QuerySet[Review]":
    """This person's reviews of the round's comparisons, also those from before it was made."""
    reviews: QuerySet[Review] = Review.objects.filter(
        rater=rater,
        rubric_version=made.rubric_version_id,
        comparison__in=made.picks.values("item__comparison"),
        state__in=MET,
    )
    return reviews


def has_seen_result(made: Round, rater: Rater) -> bool:
    return Event.objects.filter(object_type="round", object_id=made.pk, user=rater.user_id, verb=SAW_RESULT).exists()


def note_result_seen(made: Round, user: User) -> None:
    """So that it is offered to the person only until they have opened it."""
    if not Event.objects.filter(object_type="round", object_id=made.pk, user=user, verb=SAW_RESULT).exists():
        record(SAW_RESULT, made, user=user, evaluation=made.evaluation)


def saw_known_label(user: User, review: Review) -> bool:
    """Whether this person has opened the result of a calibration that the comparison is in."""
    picks = Pick.objects.filter(
        item__comparison=review.comparison_id,
        item__rubric_version=review.rubric_version_id,
        round__kind=RoundKind.CALIBRATION,
    )
    seen = Event.objects.filter(object_type="round", user=user, verb=SAW_RESULT)
    return seen.filter(object_id__in=picks.values("round")).exists()


# ---- the result


def result(made: Round, rater: Rater) -> CalibrationResult:
    """What this person chose at first, beside what is known. To be shown when the round is finished."""
    return results(made, [rater])[rater.pk]


def results(made: Round, raters: Collection[Rater]) -> Mapping[int, CalibrationResult]:
    """Rater id → result; as many queries for one person as for fifty."""
    aspects = made.rubric_version.spec().aspects
    picked = list(made.picks.order_by("place").values_list("item__comparison", flat=True))
    known = known_labels(picked)
    reviews = Review.objects.filter(
        rater__in=raters, rubric_version=made.rubric_version_id, comparison__in=picked, state__in=MET
    ).select_related("comparison__query")
    by_rater: dict[int, list[Review]] = defaultdict(list)
    for review in sorted(reviews, key=lambda review: picked.index(review.comparison_id)):
        by_rater[review.rater_id].append(review)
    chosen = first_choices(reviews, aspects)
    return {
        rater.pk: result_of(
            Standing(made, len(by_rater[rater.pk]), len(picked)), by_rater[rater.pk], aspects, known, chosen
        )
        for rater in raters
    }


def result_of(
    standing: Standing, reviews: list[Review], aspects: tuple[AspectSpec, ...], known: Known, chosen: Known
) -> CalibrationResult:
    pairs = [
        (review, aspect, chosen[review.pk][aspect.key], known[review.comparison_id][aspect.key])
        for review in reviews
        for aspect in aspects
        if aspect.key in chosen.get(review.pk, {}) and aspect.key in known.get(review.comparison_id, {})
    ]
    agreements = tuple(agreement(aspect, [pair[2:] for pair in pairs if pair[1] is aspect]) for aspect in aspects)
    differences = tuple(
        Difference(review.comparison, review, aspect, mine, label)
        for review, aspect, mine, label in pairs
        if mine != label
    )
    skipped = sum(review.state == ReviewState.SKIPPED for review in reviews)
    return CalibrationResult(standing, agreements, differences, skipped)


def agreement(aspect: AspectSpec, pairs: Collection[tuple[Choice, Choice]]) -> Agreement:
    return Agreement(aspect, len(pairs), sum(mine == label for mine, label in pairs))


def first_choices(reviews: Iterable[Review], aspects: Iterable[AspectSpec]) -> Known:
    """Review → aspect → choice as stored; from scores it is derived with the aspect's margin."""
    ids = [review.pk for review in reviews]
    told: dict[int, dict[str, Choice]] = defaultdict(dict)
    first = Q(review__in=ids, stage=Stage.FIRST)
    for pk, key, choice in Verdict.objects.filter(first).values_list("review", "aspect__key", "choice"):
        told[pk][key] = Choice(choice)
    scores: dict[tuple[int, int, str], float] = {}
    for pk, response, key, value in Score.objects.filter(first).values_list(
        "review", "response", "aspect__key", "value"
    ):
        scores[pk, response, key] = value
    for review in reviews if scores else ():
        for aspect in aspects:
            sides = (review.comparison.response_a_id, review.comparison.response_b_id)
            a, b = (scores.get((review.pk, side, aspect.key)) for side in sides)
            if (derived := derived_choice(a, b, aspect.tie_margin)) is not None:
                told[review.pk][aspect.key] = derived
    return told
