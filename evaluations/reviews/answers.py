"""A reviewer's answers to a rubric: validated, stored in terms of A and B, read back as shown."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Final, NamedTuple

from evaluations.domain.choices import FLIPPED_CHOICES, Choice, ShownOrder, Stage, choice_from_scores
from evaluations.domain.errors import InputRefused
from evaluations.domain.reviews import DIFFERENCE_REASON_TEXTS, DifferenceReason
from evaluations.domain.rubrics import AspectSpec, RubricKind, RubricSpec
from evaluations.models.rubrics import Aspect
from evaluations.models.verdicts import Review, Score, Verdict
from evaluations.replies.reply_format import format_range, scale_ends, scale_meanings, scale_values, snap_to_scale
from evaluations.verdicts.packed_votes import delete_packed_review, pack_review_verdicts

# A scale with more values than this is a field to write in.
MAX_SCALE_BUTTONS: Final = 11


class ScorePair(NamedTuple):
    """The scores of both responses for one aspect, left and right as shown."""

    left: float
    right: float


Answer = Choice | ScorePair
Answers = Mapping[str, Answer]
TextByAspect = Mapping[str, str]  # aspect key → what was written about it


@dataclass(frozen=True)
class ReviewAnswers:
    """All answers of a review by aspect. Notes and reasons belong to the final choices."""

    first: Answers = field(default_factory=dict)
    final: Answers = field(default_factory=dict)
    notes: TextByAspect = field(default_factory=dict)
    reasons: TextByAspect = field(default_factory=dict)


def swap_choice(choice: Choice, shown: ShownOrder) -> Choice:
    """Convert between left/right as shown and A/B as stored; the function is its own inverse."""
    return FLIPPED_CHOICES[choice] if shown == ShownOrder.SWAPPED else choice


def swap_answer(given: Answer, shown: ShownOrder) -> Answer:
    if isinstance(given, Choice):
        return swap_choice(given, shown)
    return ScorePair(given.right, given.left) if shown == ShownOrder.SWAPPED else given


def get_choice_of_answer(asked: AspectSpec, given: Answer) -> Choice:
    """The choice, or what two scores amount to by the rubric's tie margin."""
    if isinstance(given, Choice):
        return given
    choice = choice_from_scores(given.left, given.right, asked.tie_margin)
    assert choice is not None
    return choice


@dataclass(frozen=True)
class ScaleDisplay:
    """A scale on the page: ``values`` as buttons, or a number field if there are too many."""

    values: tuple[str, ...]
    low: str
    high: str
    step: str
    meanings: tuple[tuple[str, str], ...]


def build_scale_display(asked: AspectSpec) -> ScaleDisplay:
    values = scale_values(asked)
    few = values if len(values) <= MAX_SCALE_BUTTONS else ()
    low, high = map(format_number_field, scale_ends(asked))
    step = format_number_field(asked.scale_step) if asked.scale_step else "any"
    return ScaleDisplay(tuple(map(format_number_field, few)), low, high, step, tuple(scale_meanings(asked)))


def format_number_field(value: float) -> str:
    """A number as form fields hold it: 4, not 4.0."""
    return f"{value:.10g}"


# ---- what may be said


def validate_answers(spec: RubricSpec, choices: Answers) -> Answers:
    """The answers, if they cover exactly the rubric's aspects with values that it offers."""
    asked = {aspect.key: aspect for aspect in spec.aspects}
    missing = [aspect.name for key, aspect in asked.items() if key not in choices]
    if missing and spec.kind == RubricKind.POINTWISE:
        raise InputRefused(f"Score both responses for {', '.join(missing)} too: nothing was stored yet.")
    if missing:
        raise InputRefused(f"Choose for {', '.join(missing)} too: nothing was stored yet.")
    for key in choices:
        if key not in asked:
            raise InputRefused(f"The rubric does not ask about “{key}”.")
    return {key: validate_answer(asked[key], spec.kind, given) for key, given in choices.items()}


def validate_answer(asked: AspectSpec, kind: RubricKind, given: Answer) -> Answer:
    if isinstance(given, Choice):
        if kind == RubricKind.POINTWISE or given not in asked.choices:
            raise InputRefused(f"The rubric does not offer “{given}” for {asked.name}.")
        return given
    if kind != RubricKind.POINTWISE:
        raise InputRefused(f"The rubric asks which response is better for {asked.name}, and for no scores.")
    return ScorePair(validate_score(asked, given.left), validate_score(asked, given.right))


def validate_score(asked: AspectSpec, given: float) -> float:
    value = snap_to_scale(asked, given)
    if value is None:
        raise InputRefused(
            f"The score for {asked.name} must be {format_range(asked)}, not "
            f"{format_number_field(given)}: nothing was stored yet."
        )
    return value


def refuse_unknown_reasons(reasons: TextByAspect) -> None:
    for reason in reasons.values():
        if reason not in tuple(DifferenceReason):
            raise InputRefused(f"“{reason}” is none of the reasons: {', '.join(DIFFERENCE_REASON_TEXTS.values())}.")


# ---- what is stored


def store_answers(
    review: Review,
    choices: Answers,
    *stages: Stage,
    notes: TextByAspect | None = None,
    reasons: TextByAspect | None = None,
) -> None:
    """Store the same answers at each of these stages."""
    aspects = {aspect.key: aspect for aspect in Aspect.objects.filter(evaluation=review.comparison.evaluation_id)}
    verdicts, scores = [], []
    for stage, (key, seen) in product(stages, choices.items()):
        given = swap_answer(seen, ShownOrder(review.shown))
        words = {"note": (notes or {}).get(key, ""), "reason": (reasons or {}).get(key, "")}
        if isinstance(given, Choice):
            verdicts.append(build_verdict(review, aspects[key], stage, given, words))
        else:
            scores += build_scores(review, aspects[key], stage, given, words)
    Verdict.objects.bulk_create(verdicts)
    pack_review_verdicts(review, verdicts)
    Score.objects.bulk_create(scores)


def build_verdict(review: Review, aspect: Aspect, stage: Stage, choice: Choice, words: TextByAspect) -> Verdict:
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


def build_scores(review: Review, aspect: Aspect, stage: Stage, scores: ScorePair, words: TextByAspect) -> list[Score]:
    """Two score rows. Note and reason go on response A's row only, so that they are counted once."""
    about = {"rater_id": review.rater_id, "aspect": aspect, "stage": stage, "review": review}
    comparison = review.comparison
    return [
        Score(response_id=comparison.response_a_id, value=scores.left, **about, **words),
        Score(response_id=comparison.response_b_id, value=scores.right, **about),
    ]


def delete_answers(review: Review, stage: Stage | None = None) -> None:
    """Delete the stored answers of one stage, or of both."""
    delete_packed_review(review, stage)
    for rows in (review.verdicts.all(), review.scores.all()):
        (rows.filter(stage=stage) if stage else rows).delete()


def read_answers(review: Review, kind: RubricKind) -> ReviewAnswers:
    """All answers of this review, in one query."""
    return read_score_answers(review) if kind == RubricKind.POINTWISE else read_verdict_answers(review)


def read_verdict_answers(review: Review) -> ReviewAnswers:
    given: dict[str, dict[str, Answer]] = {Stage.FIRST: {}, Stage.FINAL: {}}
    notes, reasons = {}, {}
    rows = review.verdicts.values_list("aspect__key", "stage", "choice", "note", "reason")
    for key, stage, choice, note, reason in rows.order_by("pk"):
        given[stage][key] = swap_choice(Choice(choice), ShownOrder(review.shown))
        notes[key], reasons[key] = note, reason
    return ReviewAnswers(given[Stage.FIRST], given[Stage.FINAL], drop_empty_texts(notes), drop_empty_texts(reasons))


def read_score_answers(review: Review) -> ReviewAnswers:
    values: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    notes: dict[str, str] = {}
    reasons: dict[str, str] = {}
    rows = review.scores.values_list("aspect__key", "stage", "response_id", "value", "note", "reason")
    for key, stage, response, value, note, reason in rows.order_by("pk"):
        values[stage, key][response] = value
        notes[key] = notes.get(key) or note
        reasons[key] = reasons.get(key) or reason
    given: dict[str, dict[str, Answer]] = {Stage.FIRST: {}, Stage.FINAL: {}}
    sides = (review.comparison.response_a_id, review.comparison.response_b_id)
    for (stage, key), of in values.items():
        given[stage][key] = swap_answer(ScorePair(*(of[side] for side in sides)), ShownOrder(review.shown))
    return ReviewAnswers(given[Stage.FIRST], given[Stage.FINAL], drop_empty_texts(notes), drop_empty_texts(reasons))


def drop_empty_texts(words: TextByAspect) -> TextByAspect:
    return {key: text for key, text in words.items() if text}


# ---- the names of its fields on the page


def build_field_values(choices: Answers, notes: TextByAspect, reasons: TextByAspect) -> dict[str, str]:
    """The answers as form field values."""
    fields = {}
    for key, given in choices.items():
        if isinstance(given, Choice):
            fields[f"choice_{key}"] = given.value
        else:
            fields |= {f"left_{key}": format_number_field(given.left), f"right_{key}": format_number_field(given.right)}
    fields |= {f"note_{key}": note for key, note in notes.items()}
    return fields | {f"reason_{key}": reason for key, reason in reasons.items()}
