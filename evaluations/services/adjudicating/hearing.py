"""What each person said of one comparison, aspect by aspect: first, at last, and why."""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from evaluations.domain import (
    REASONS_IN_WORDS,
    SAVED_REVIEW_STATES,
    Choice,
    PickedBy,
    RaterKind,
    Reason,
    ReviewState,
    Shown,
    Stage,
    derived_choice,
)
from evaluations.models import Aspect, Comparison, Rater, Review, Score, Span, Verdict
from evaluations.services.importing.preferring import preferences
from evaluations.services.reviewing.tallying import margins_of


@dataclass(frozen=True)
class Said:
    """A choice at one stage. ``scores``: what it was derived from, where the person gave numbers."""

    choice: Choice | None
    scores: tuple[float | None, float | None] | None = None
    reason: str = ""
    note: str = ""
    shown: Shown = Shown.UNKNOWN


@dataclass(frozen=True)
class Voice:
    """One person on one aspect. ``review`` is None for what came with an import; ``final`` while it is open.

    ``is_replaced``: a newer review of the same person, by another version of the rubric, is their vote.
    """

    rater: Rater
    review: Review | None
    first: Said | None
    final: Said | None
    is_replaced: bool = False

    @property
    def said(self) -> Said | None:
        return self.final or self.first

    @property
    def has_changed(self) -> bool:
        return bool(self.first and self.final and self.first.choice != self.final.choice)

    @property
    def is_calibration(self) -> bool:
        return self.review is not None and self.review.picked_by == PickedBy.CALIBRATION

    @property
    def is_confirmed(self) -> bool:
        return self.review is None or self.review.state == ReviewState.FINAL

    @property
    def is_vote(self) -> bool:
        """Of a review that counts; imported votes stand by themselves."""
        return self.review is not None and self.is_confirmed and not self.is_calibration

    @property
    def reason(self) -> str:
        known = self.said.reason if self.said else ""
        return REASONS_IN_WORDS[Reason(known)] if known else ""


Voices = Mapping[Aspect, list[Voice]]
Key = tuple[Aspect, Rater, Review | None]


def voices_on(comparison: Comparison) -> Voices:
    """By aspect everyone's choices; the same few queries however many people there are."""
    given: dict[Key, dict[str, Said]] = defaultdict(dict)
    for key, stage, said in (*choices_made(comparison), *choices_derived(comparison), *choices_imported(comparison)):
        given[key][stage] = said
    told: dict[Aspect, list[Voice]] = defaultdict(list)
    for aspect, rater, review in sorted(given, key=by_name_and_age):
        stages = given[aspect, rater, review]
        told[aspect].append(Voice(rater, review, stages.get(Stage.FIRST), stages.get(Stage.FINAL)))
    return {aspect: marked(voices) for aspect, voices in told.items()}


def by_name_and_age(key: Key) -> tuple[str, int]:
    _, rater, review = key
    return rater.name.casefold(), review.pk if review else 0


def marked(voices: list[Voice]) -> list[Voice]:
    """As they came, the oldest first, with those that a newer vote of the same person stands for."""
    newest = {one.rater: one.review for one in voices if one.is_vote}
    return [replace(one, is_replaced=one.is_vote and newest[one.rater] != one.review) for one in voices]


def choices_made(comparison: Comparison) -> Iterator[tuple[Key, str, Said]]:
    """An imported vote has no stages: it is final, and several of one person stand by themselves."""
    rows = Verdict.objects.filter(comparison=comparison, rater__kind=RaterKind.HUMAN)
    for row in rows.select_related("rater", "aspect", "review").order_by("pk"):
        said = Said(Choice(row.choice), None, row.reason, row.note or row.rationale, Shown(row.shown))
        yield (row.aspect, row.rater, row.review), row.stage if row.review else Stage.FINAL, said


def choices_derived(comparison: Comparison) -> Iterator[tuple[Key, str, Said]]:
    """What two scores of one review say together, by the margin of the rubric that asked for them."""
    rows = Score.objects.filter(review__comparison=comparison).select_related("rater", "aspect", "review")
    pairs: dict[tuple[Key, str], dict[int, Score]] = defaultdict(dict)
    for row in rows.order_by("pk"):
        pairs[(row.aspect, row.rater, row.review), row.stage][row.response_id] = row
    margins = margins_of({row.review.rubric_version_id for row in rows if row.review}) if pairs else {}
    for (key, stage), scores in pairs.items():
        review = key[2]
        assert review is not None
        yield key, stage, derived(comparison, review, scores, margins.get((review.rubric_version_id, key[0].pk), 0.0))


def choices_imported(comparison: Comparison) -> Iterator[tuple[Key, str, Said]]:
    """What the scores of people that came with imports say: final, as imported votes are."""
    given = preferences([comparison.pk])
    raters = Rater.objects.in_bulk({one.rater for one in given})
    aspects = Aspect.objects.in_bulk({one.aspect for one in given})
    for one in given:
        said = Said(one.choice, (one.score_a, one.score_b), note=one.rationale)
        yield (aspects[one.aspect], raters[one.rater], None), Stage.FINAL, said


def derived(comparison: Comparison, review: Review, scores: Mapping[int, Score], margin: float) -> Said:
    a, b = scores.get(comparison.response_a_id), scores.get(comparison.response_b_id)
    values = (a.value if a else None, b.value if b else None)
    either = [one for one in (a, b) if one]
    return Said(
        derived_choice(*values, margin),
        values,
        next((one.reason for one in either if one.reason), ""),
        next((one.note for one in either if one.note), ""),
        Shown(review.shown),
    )


def passages_of(comparison: Comparison) -> list[Span]:
    """What people marked in the responses of saved reviews, in the order in which it stands there."""
    saved = Span.objects.filter(review__comparison=comparison, review__state__in=SAVED_REVIEW_STATES)
    return list(saved.select_related("review__rater", "aspect").order_by("response", "turn", "start", "pk"))
