"""What a person says of a comparison: a choice for every aspect, or a score for either response.

It comes in and goes out as the person sees it, A on the left, and is stored in terms of A and B as stored.
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Final, NamedTuple

from evaluations.domain import (
    FLIPPED,
    REASONS_IN_WORDS,
    AspectSpec,
    Choice,
    InputRefused,
    Reason,
    RubricKind,
    RubricSpec,
    Shown,
    Stage,
    derived_choice,
)
from evaluations.judge.scales import ends_of, meanings_of, placed, range_shown, values_of
from evaluations.models import Aspect, Review, Score, Verdict
from evaluations.services import balloting

# A scale with more values than this is a field to write in.
MOST_BUTTONS: Final = 11


class Scores(NamedTuple):
    """One aspect of both responses, as the person sees them."""

    left: float
    right: float


Given = Choice | Scores
Choices = Mapping[str, Given]
Words = Mapping[str, str]  # aspect key → what was written about it


@dataclass(frozen=True)
class Said:
    """Everything a review holds by aspect. Notes and reasons stand on what is final."""

    first: Choices = field(default_factory=dict)
    final: Choices = field(default_factory=dict)
    notes: Words = field(default_factory=dict)
    reasons: Words = field(default_factory=dict)


def turned(choice: Choice, shown: Shown) -> Choice:
    """From left and right to A and B as stored, and back again: it is its own inverse."""
    return FLIPPED[choice] if shown == Shown.SWAPPED else choice


def turned_given(given: Given, shown: Shown) -> Given:
    if isinstance(given, Choice):
        return turned(given, shown)
    return Scores(given.right, given.left) if shown == Shown.SWAPPED else given


def choice_in(asked: AspectSpec, given: Given) -> Choice:
    """The choice itself, or what two scores say together by the margin of the rubric."""
    if isinstance(given, Choice):
        return given
    choice = derived_choice(given.left, given.right, asked.tie_margin)
    assert choice is not None
    return choice


@dataclass(frozen=True)
class ScaleShown:
    """How a scale stands on the page: as ``values`` to press, or where they are too many as a number to enter."""

    values: tuple[str, ...]
    low: str
    high: str
    step: str
    meanings: tuple[tuple[str, str], ...]


def scale_shown(asked: AspectSpec) -> ScaleShown:
    values = values_of(asked)
    few = values if len(values) <= MOST_BUTTONS else ()
    low, high = map(number, ends_of(asked))
    step = number(asked.scale_step) if asked.scale_step else "any"
    return ScaleShown(tuple(map(number, few)), low, high, step, tuple(meanings_of(asked)))


def number(value: float) -> str:
    """As a field of the page holds it: 4, not 4.0."""
    return f"{value:.10g}"


# ---- what may be said


def checked(spec: RubricSpec, choices: Choices) -> Choices:
    """Every aspect of the rubric, nothing else, and only what it offers; scores as the scale's own values."""
    asked = {aspect.key: aspect for aspect in spec.aspects}
    missing = [aspect.name for key, aspect in asked.items() if key not in choices]
    if missing and spec.kind == RubricKind.POINTWISE:
        raise InputRefused(f"Score both responses for {', '.join(missing)} too: nothing was stored yet.")
    if missing:
        raise InputRefused(f"Choose for {', '.join(missing)} too: nothing was stored yet.")
    for key in choices:
        if key not in asked:
            raise InputRefused(f"The rubric does not ask about “{key}”.")
    return {key: offered(asked[key], spec.kind, given) for key, given in choices.items()}


def offered(asked: AspectSpec, kind: RubricKind, given: Given) -> Given:
    if isinstance(given, Choice):
        if kind == RubricKind.POINTWISE or given not in asked.choices:
            raise InputRefused(f"The rubric does not offer “{given}” for {asked.name}.")
        return given
    if kind != RubricKind.POINTWISE:
        raise InputRefused(f"The rubric asks which response is better for {asked.name}, and for no scores.")
    return Scores(on_scale(asked, given.left), on_scale(asked, given.right))


def on_scale(asked: AspectSpec, given: float) -> float:
    value = placed(asked, given)
    if value is None:
        raise InputRefused(
            f"The score for {asked.name} must be {range_shown(asked)}, not {number(given)}: nothing was stored yet."
        )
    return value


def refuse_unknown_reasons(reasons: Words) -> None:
    for reason in reasons.values():
        if reason not in tuple(Reason):
            raise InputRefused(f"“{reason}” is none of the reasons: {', '.join(REASONS_IN_WORDS.values())}.")


# ---- what is stored


def write(
    review: Review, choices: Choices, *stages: Stage, notes: Words | None = None, reasons: Words | None = None
) -> None:
    """The same choices in each of these stages."""
    aspects = {aspect.key: aspect for aspect in Aspect.objects.filter(evaluation=review.comparison.evaluation_id)}
    verdicts, scores = [], []
    for stage, (key, seen) in product(stages, choices.items()):
        given = turned_given(seen, Shown(review.shown))
        words = {"note": (notes or {}).get(key, ""), "reason": (reasons or {}).get(key, "")}
        if isinstance(given, Choice):
            verdicts.append(verdict_row(review, aspects[key], stage, given, words))
        else:
            scores += score_rows(review, aspects[key], stage, given, words)
    Verdict.objects.bulk_create(verdicts)
    balloting.keep_review(review, verdicts)
    Score.objects.bulk_create(scores)


def verdict_row(review: Review, aspect: Aspect, stage: Stage, choice: Choice, words: Words) -> Verdict:
    return Verdict(
        rater_id=review.rater_id,
        comparison_id=review.comparison_id,
        aspect=aspect,
        stage=stage,
        shown=review.shown,
        choice=choice,
        review=review,
        **words,
    )


def score_rows(review: Review, aspect: Aspect, stage: Stage, scores: Scores, words: Words) -> list[Score]:
    """One for either response. What was written stands on that of A alone, so that it is counted once."""
    about = {"rater_id": review.rater_id, "aspect": aspect, "stage": stage, "review": review}
    comparison = review.comparison
    return [
        Score(response_id=comparison.response_a_id, value=scores.left, **about, **words),
        Score(response_id=comparison.response_b_id, value=scores.right, **about),
    ]


def forget(review: Review, stage: Stage | None = None) -> None:
    """Delete what is stored of one stage, or of both."""
    balloting.forget_review(review, stage)
    for rows in (review.verdicts.all(), review.scores.all()):
        (rows.filter(stage=stage) if stage else rows).delete()


def said_in(review: Review, kind: RubricKind) -> Said:
    """Everything of this review, in one query."""
    return scores_in(review) if kind == RubricKind.POINTWISE else verdicts_in(review)


def verdicts_in(review: Review) -> Said:
    given: dict[str, dict[str, Given]] = {Stage.FIRST: {}, Stage.FINAL: {}}
    notes, reasons = {}, {}
    rows = review.verdicts.values_list("aspect__key", "stage", "choice", "note", "reason")
    for key, stage, choice, note, reason in rows.order_by("pk"):
        given[stage][key] = turned(Choice(choice), Shown(review.shown))
        notes[key], reasons[key] = note, reason
    return Said(given[Stage.FIRST], given[Stage.FINAL], filled(notes), filled(reasons))


def scores_in(review: Review) -> Said:
    values: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    notes: dict[str, str] = {}
    reasons: dict[str, str] = {}
    rows = review.scores.values_list("aspect__key", "stage", "response_id", "value", "note", "reason")
    for key, stage, response, value, note, reason in rows.order_by("pk"):
        values[stage, key][response] = value
        notes[key] = notes.get(key) or note
        reasons[key] = reasons.get(key) or reason
    given: dict[str, dict[str, Given]] = {Stage.FIRST: {}, Stage.FINAL: {}}
    sides = (review.comparison.response_a_id, review.comparison.response_b_id)
    for (stage, key), of in values.items():
        given[stage][key] = turned_given(Scores(*(of[side] for side in sides)), Shown(review.shown))
    return Said(given[Stage.FIRST], given[Stage.FINAL], filled(notes), filled(reasons))


def filled(words: Words) -> Words:
    return {key: text for key, text in words.items() if text}


# ---- the names of its fields on the page


def fields_of(choices: Choices, notes: Words, reasons: Words) -> dict[str, str]:
    """What was said, as the fields of the page hold it: the form reads it back."""
    fields = {}
    for key, given in choices.items():
        if isinstance(given, Choice):
            fields[f"choice_{key}"] = given.value
        else:
            fields |= {f"left_{key}": number(given.left), f"right_{key}": number(given.right)}
    fields |= {f"note_{key}": note for key, note in notes.items()}
    return fields | {f"reason_{key}": reason for key, reason in reasons.items()}
