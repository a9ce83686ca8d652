"""Every reviewer's first and final choices on one comparison."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from django.db.models import Q

from evaluations.domain.choices import Choice, ShownOrder, Stage
from evaluations.domain.groups import group_values
from evaluations.domain.reviews import DIFFERENCE_REASON_TEXTS, DifferenceReason, ReviewState
from evaluations.domain.roles import RaterKind
from evaluations.domain.rubrics import AspectSpec
from evaluations.domain.vote_rules import LABEL_VOTES, find_vote_holder
from evaluations.models.comparisons import Comparison
from evaluations.models.judges import Rater
from evaluations.models.rubrics import Aspect
from evaluations.models.verdicts import Review, Score, Verdict
from evaluations.verdicts.score_choices import choose_by_scores, load_imported_preferences, load_review_scores
from evaluations.verdicts.votes import get_review_facts


@dataclass(frozen=True)
class StageChoice:
    """A choice at one stage. ``scores``: what it was derived from, where the person gave numbers."""

    choice: Choice | None
    scores: tuple[float | None, float | None] | None = None
    reason: str = ""
    note: str = ""
    shown: ShownOrder = ShownOrder.UNKNOWN


@dataclass(frozen=True)
class ReviewerChoice:
    """One person on one aspect. ``review`` is None for what came with an import; ``final`` while it is open.

    ``is_replaced``: a newer review of the same person, by another version of the rubric, is their vote.
    """

    rater: Rater
    review: Review | None
    first: StageChoice | None
    final: StageChoice | None
    is_replaced: bool = False

    @property
    def current(self) -> StageChoice | None:
        return self.final or self.first

    @property
    def has_changed(self) -> bool:
        return bool(self.first and self.final and self.first.choice != self.final.choice)

    @property
    def is_confirmed(self) -> bool:
        return self.review is None or self.review.state == ReviewState.FINAL

    @property
    def is_vote(self) -> bool:
        """Whether the choice counts as a vote. Imported votes have no review."""
        return self.review is not None and LABEL_VOTES.admits(get_review_facts(self.review))

    @property
    def reason(self) -> str:
        reason = self.current.reason if self.current else ""
        return DIFFERENCE_REASON_TEXTS[DifferenceReason(reason)] if reason else ""

    @property
    def has_explained(self) -> bool:
        """Whether there is a reason or a note, on this aspect or on the whole."""
        notes = (self.current.note if self.current else "", self.review.note if self.review else "")
        return bool(self.reason or any(notes))


ReviewerChoicesByAspect = Mapping[Aspect, list[ReviewerChoice]]
ImportedPass = tuple[int, str]  # its sample and the order shown, or that it was given as scores
ReviewerChoiceKey = tuple[Aspect, Rater, Review | ImportedPass]
AS_SCORES: Final = "scores"


def get_reviewer_choices(comparison: Comparison) -> ReviewerChoicesByAspect:
    """By aspect everyone's choices; the same few queries however many people there are."""
    by_key: dict[ReviewerChoiceKey, dict[str, StageChoice]] = defaultdict(dict)
    for key, stage, choice in (
        *read_made_choices(comparison),
        *read_derived_choices(comparison),
        *read_imported_choices(comparison),
    ):
        by_key[key][stage] = choice
    by_aspect: dict[Aspect, list[ReviewerChoice]] = defaultdict(list)
    for aspect, rater, source in sorted(by_key, key=order_by_name_and_age):
        stages = by_key[aspect, rater, source]
        review = source if isinstance(source, Review) else None
        by_aspect[aspect].append(ReviewerChoice(rater, review, stages.get(Stage.FIRST), stages.get(Stage.FINAL)))
    return {aspect: mark_replaced_choices(choices) for aspect, choices in by_aspect.items()}


def order_by_name_and_age(key: ReviewerChoiceKey) -> tuple[str, int]:
    _, rater, source = key
    return rater.name.casefold(), source.pk if isinstance(source, Review) else 0


def mark_replaced_choices(choices: list[ReviewerChoice]) -> list[ReviewerChoice]:
    """Order choices from oldest to newest and mark those replaced by a newer vote of the same person."""
    reviews = group_values(
        (choice.rater, get_review_facts(choice.review)) for choice in choices if choice.review is not None
    )
    holders = {find_vote_holder(facts, LABEL_VOTES) for facts in reviews.values()}
    return [
        replace(
            choice,
            is_replaced=choice.is_vote and choice.review is not None and get_review_facts(choice.review) not in holders,
        )
        for choice in choices
    ]


def read_made_choices(comparison: Comparison) -> Iterator[tuple[ReviewerChoiceKey, str, StageChoice]]:
    """An imported vote has no stages: it is final, and several of one person stand by themselves."""
    rows = Verdict.objects.filter(comparison=comparison, rater__kind=RaterKind.HUMAN)
    for row in rows.select_related("rater", "aspect", "review").order_by("pk"):
        choice = StageChoice(Choice(row.choice), None, row.reason, row.note or row.rationale, ShownOrder(row.shown))
        source = row.review or (row.sample, row.shown)
        yield (row.aspect, row.rater, source), row.stage if row.review else Stage.FINAL, choice


def read_derived_choices(comparison: Comparison) -> Iterator[tuple[ReviewerChoiceKey, str, StageChoice]]:
    """What two scores of one review say together, by the margin of the rubric that asked for them."""
    pairs = load_review_scores([comparison.pk])
    reviews = Review.objects.select_related("rater").in_bulk({pair.review.number for pair in pairs})
    aspects = Aspect.objects.in_bulk({pair.aspect for pair in pairs})
    for pair in pairs:
        review, scores = reviews[pair.review.number], (pair.score_a, pair.score_b)
        choice = StageChoice(pair.choice, scores, pair.reason, pair.note, ShownOrder(review.shown))
        yield (aspects[pair.aspect], review.rater, review), pair.stage, choice


def read_imported_choices(comparison: Comparison) -> Iterator[tuple[ReviewerChoiceKey, str, StageChoice]]:
    """Read the choices from imported scores of people, which are final like imported votes."""
    preferences = load_imported_preferences([comparison.pk])
    raters = Rater.objects.in_bulk({pair.rater for pair in preferences})
    aspects = Aspect.objects.in_bulk({pair.aspect for pair in preferences})
    for pair in preferences:
        choice = StageChoice(pair.choice, (pair.score_a, pair.score_b), note=pair.rationale)
        yield (aspects[pair.aspect], raters[pair.rater], (pair.sample, AS_SCORES)), Stage.FINAL, choice


def load_first_choices(reviews: Iterable[Review], aspects: Iterable[AspectSpec]) -> Mapping[int, Mapping[str, Choice]]:
    """Review id → aspect key → first choice as stored, or as scores make it."""
    ids = [review.pk for review in reviews]
    choices: dict[int, dict[str, Choice]] = defaultdict(dict)
    first = Q(review__in=ids, stage=Stage.FIRST)
    for pk, key, choice in Verdict.objects.filter(first).values_list("review", "aspect__key", "choice"):
        choices[pk][key] = Choice(choice)
    scores: dict[tuple[int, int, str], float] = {}
    for pk, response, key, value in Score.objects.filter(first).values_list(
        "review", "response", "aspect__key", "value"
    ):
        scores[pk, response, key] = value
    for review in reviews if scores else ():
        for aspect in aspects:
            sides = (review.comparison.response_a_id, review.comparison.response_b_id)
            a, b = (scores.get((review.pk, side, aspect.key)) for side in sides)
            if (derived := choose_by_scores(aspect, a, b)) is not None:
                choices[review.pk][aspect.key] = derived
    return choices
