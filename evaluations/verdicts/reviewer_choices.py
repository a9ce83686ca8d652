"""Every reviewer's first and final choices on one comparison."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from evaluations.domain.choices import Choice, ShownOrder, Stage, choice_from_scores
from evaluations.domain.reviews import DIFFERENCE_REASON_TEXTS, DifferenceReason, ReviewState, SelectionMethod
from evaluations.domain.roles import RaterKind
from evaluations.domain.vote_rules import LABEL_VOTES, ReviewFacts, find_vote_holder
from evaluations.models.comparisons import Comparison
from evaluations.models.judges import Rater
from evaluations.models.rubrics import Aspect
from evaluations.models.verdicts import Review, Score, Verdict
from evaluations.verdicts.score_choices import get_tie_margins, load_imported_preferences
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
    def said(self) -> StageChoice | None:
        return self.final or self.first

    @property
    def has_changed(self) -> bool:
        return bool(self.first and self.final and self.first.choice != self.final.choice)

    @property
    def is_calibration(self) -> bool:
        return self.review is not None and self.review.selection_method == SelectionMethod.CALIBRATION

    @property
    def is_confirmed(self) -> bool:
        return self.review is None or self.review.state == ReviewState.FINAL

    @property
    def is_vote(self) -> bool:
        """Whether the choice counts as a vote. Imported votes have no review."""
        return self.review is not None and LABEL_VOTES.admits(get_review_facts(self.review))

    @property
    def reason(self) -> str:
        known = self.said.reason if self.said else ""
        return DIFFERENCE_REASON_TEXTS[DifferenceReason(known)] if known else ""

    @property
    def has_explained(self) -> bool:
        """Whether there is a reason or a note, on this aspect or on the whole."""
        notes = (self.said.note if self.said else "", self.review.note if self.review else "")
        return bool(self.reason or any(notes))


ReviewerChoicesByAspect = Mapping[Aspect, list[ReviewerChoice]]
ImportedPass = tuple[int, str]  # its sample and the order shown, or that it was given as scores
ReviewerChoiceKey = tuple[Aspect, Rater, Review | ImportedPass]
AS_SCORES: Final = "scores"


def get_reviewer_choices(comparison: Comparison) -> ReviewerChoicesByAspect:
    """By aspect everyone's choices; the same few queries however many people there are."""
    given: dict[ReviewerChoiceKey, dict[str, StageChoice]] = defaultdict(dict)
    for key, stage, said in (
        *read_made_choices(comparison),
        *read_derived_choices(comparison),
        *read_imported_choices(comparison),
    ):
        given[key][stage] = said
    told: dict[Aspect, list[ReviewerChoice]] = defaultdict(list)
    for aspect, rater, source in sorted(given, key=order_by_name_and_age):
        stages = given[aspect, rater, source]
        review = source if isinstance(source, Review) else None
        told[aspect].append(ReviewerChoice(rater, review, stages.get(Stage.FIRST), stages.get(Stage.FINAL)))
    return {aspect: mark_replaced_choices(voices) for aspect, voices in told.items()}


def order_by_name_and_age(key: ReviewerChoiceKey) -> tuple[str, int]:
    _, rater, source = key
    return rater.name.casefold(), source.pk if isinstance(source, Review) else 0


def mark_replaced_choices(voices: list[ReviewerChoice]) -> list[ReviewerChoice]:
    """Order choices from oldest to newest and mark those replaced by a newer vote of the same person."""
    reviews: dict[Rater, list[ReviewFacts]] = defaultdict(list)
    for one in voices:
        if one.review is not None:
            reviews[one.rater].append(get_review_facts(one.review))
    held = {find_vote_holder(given, LABEL_VOTES) for given in reviews.values()}
    return [
        replace(one, is_replaced=one.is_vote and one.review is not None and get_review_facts(one.review) not in held)
        for one in voices
    ]


def read_made_choices(comparison: Comparison) -> Iterator[tuple[ReviewerChoiceKey, str, StageChoice]]:
    """An imported vote has no stages: it is final, and several of one person stand by themselves."""
    rows = Verdict.objects.filter(comparison=comparison, rater__kind=RaterKind.HUMAN)
    for row in rows.select_related("rater", "aspect", "review").order_by("pk"):
        said = StageChoice(Choice(row.choice), None, row.reason, row.note or row.rationale, ShownOrder(row.shown))
        source = row.review or (row.sample, row.shown)
        yield (row.aspect, row.rater, source), row.stage if row.review else Stage.FINAL, said


def read_derived_choices(comparison: Comparison) -> Iterator[tuple[ReviewerChoiceKey, str, StageChoice]]:
    """Read the choices from two scores of one review, by the margin of its rubric."""
    rows = Score.objects.filter(review__comparison=comparison).select_related("rater", "aspect", "review")
    pairs: dict[tuple[ReviewerChoiceKey, str], dict[int, Score]] = defaultdict(dict)
    for row in rows.order_by("pk"):
        assert row.review is not None
        pairs[(row.aspect, row.rater, row.review), row.stage][row.response_id] = row
    margins = get_tie_margins({row.review.rubric_version_id for row in rows if row.review}) if pairs else {}
    for (key, stage), scores in pairs.items():
        review = key[2]
        assert isinstance(review, Review)
        yield (
            key,
            stage,
            derive_stage_choice(comparison, review, scores, margins.get((review.rubric_version_id, key[0].pk), 0.0)),
        )


def read_imported_choices(comparison: Comparison) -> Iterator[tuple[ReviewerChoiceKey, str, StageChoice]]:
    """Read the choices from imported scores of people, which are final like imported votes."""
    given = load_imported_preferences([comparison.pk])
    raters = Rater.objects.in_bulk({one.rater for one in given})
    aspects = Aspect.objects.in_bulk({one.aspect for one in given})
    for one in given:
        said = StageChoice(one.choice, (one.score_a, one.score_b), note=one.rationale)
        yield (aspects[one.aspect], raters[one.rater], (one.sample, AS_SCORES)), Stage.FINAL, said


def derive_stage_choice(
    comparison: Comparison, review: Review, scores: Mapping[int, Score], margin: float
) -> StageChoice:
    a, b = scores.get(comparison.response_a_id), scores.get(comparison.response_b_id)
    values = (a.value if a else None, b.value if b else None)
    either = [one for one in (a, b) if one]
    return StageChoice(
        choice_from_scores(*values, margin),
        values,
        next((one.reason for one in either if one.reason), ""),
        next((one.note for one in either if one.note), ""),
        ShownOrder(review.shown),
    )
