"""A reviewer's answers to a rubric: validated, stored in terms of A and B, read back as shown."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from types import MappingProxyType
from typing import Final, NamedTuple

from evaluations.domain.choices import FLIPPED_CHOICES, Choice, ShownOrder, Stage
from evaluations.domain.errors import InputRefused
from evaluations.domain.reviews import DIFFERENCE_REASON_TEXTS, DifferenceReason
from evaluations.domain.rubrics import AspectSpec, RubricKind, RubricSpec
from evaluations.models.bulk import insert_objects
from evaluations.models.rubrics import Aspect
from evaluations.models.verdicts import Review, Score, Verdict
from evaluations.replies.reply_format import format_range, scale_ends, scale_meanings, scale_values, snap_to_scale
from evaluations.verdicts.packed_votes import delete_packed_review, pack_review_verdicts
from evaluations.verdicts.score_choices import choose_by_scores

# A scale with more values than this is a field to write in.
MAX_SCALE_BUTTONS: Final = 11


class ScorePair(NamedTuple):
    """The scores of both responses for one aspect, left and right as shown."""

    left: float
    right: float


class SingleScore(NamedTuple):
    """The score of the response of a single comparison."""

    value: float


Answer = Choice | ScorePair | SingleScore
Answers = Mapping[str, Answer]
TextByAspect = Mapping[str, str]  # aspect key → what was written about it
NO_TEXTS: Final[TextByAspect] = MappingProxyType({})


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


def swap_answer(answer: Answer, shown: ShownOrder) -> Answer:
    if isinstance(answer, Choice):
        return swap_choice(answer, shown)
    if isinstance(answer, SingleScore):
        return answer
    return ScorePair(answer.right, answer.left) if shown == ShownOrder.SWAPPED else answer


def get_choice_of_answer(aspect: AspectSpec, answer: Answer) -> Choice | None:
    """The choice, or what two scores amount to by the rubric's tie margin; None for a single score."""
    if isinstance(answer, Choice):
        return answer
    if isinstance(answer, SingleScore):
        return None
    choice = choose_by_scores(aspect, answer.left, answer.right)
    assert choice is not None
    return choice


def are_scores_equal(aspect: AspectSpec, one: SingleScore, other: SingleScore) -> bool:
    """Whether two raters gave a response the same score, up to the rubric's tie margin."""
    return choose_by_scores(aspect, one.value, other.value) == Choice.TIE


@dataclass(frozen=True)
class ScaleDisplay:
    """A scale on the page: ``values`` as buttons, or a number field if there are too many."""

    values: tuple[str, ...]
    low: str
    high: str
    step: str
    meanings: tuple[tuple[str, str], ...]


def build_scale_display(aspect: AspectSpec) -> ScaleDisplay:
    values = scale_values(aspect)
    buttons = values if len(values) <= MAX_SCALE_BUTTONS else ()
    low, high = map(format_number_field, scale_ends(aspect))
    step = format_number_field(aspect.scale_step) if aspect.scale_step else "any"
    return ScaleDisplay(tuple(map(format_number_field, buttons)), low, high, step, tuple(scale_meanings(aspect)))


def format_number_field(value: float) -> str:
    """A number as form fields hold it: 4, not 4.0."""
    return f"{value:.10g}"


# ---- what may be said


def validate_answers(spec: RubricSpec, choices: Answers, *, is_single: bool = False) -> Answers:
    """The answers, if they cover exactly the rubric's aspects with values that it offers.

    ``is_single``: they are about one response, so that each is one score.
    """
    aspects = {aspect.key: aspect for aspect in spec.aspects}
    missing = [aspect.name for key, aspect in aspects.items() if key not in choices]
    if missing and spec.kind == RubricKind.POINTWISE and not is_single:
        raise InputRefused(f"{list_missing(missing)} still missing. Score both responses.")
    if missing:
        raise InputRefused(f"{list_missing(missing)} still missing.")
    for key in choices:
        if key not in aspects:
            raise InputRefused(f"The rubric does not ask about “{key}”.")
    return {
        key: validate_answer(aspects[key], spec.kind, answer, is_single=is_single) for key, answer in choices.items()
    }


def list_missing(names: Sequence[str]) -> str:
    """“Clarity, Helpfulness are”, before “still missing”."""
    return ", ".join(names) + (" is" if len(names) == 1 else " are")


def validate_answer(aspect: AspectSpec, kind: RubricKind, answer: Answer, *, is_single: bool) -> Answer:
    if isinstance(answer, Choice):
        if kind == RubricKind.POINTWISE or answer not in aspect.choices:
            raise InputRefused(f"The rubric does not offer “{answer}” for {aspect.name}.")
        return answer
    if kind != RubricKind.POINTWISE:
        raise InputRefused(f"The rubric asks which response is better for {aspect.name}, not for scores.")
    if isinstance(answer, SingleScore) != is_single:
        raise InputRefused(f"Give {aspect.name} {'one score' if is_single else 'two scores, one for each response'}.")
    if isinstance(answer, SingleScore):
        return SingleScore(validate_score(aspect, answer.value))
    return ScorePair(validate_score(aspect, answer.left), validate_score(aspect, answer.right))


def validate_score(aspect: AspectSpec, score: float) -> float:
    value = snap_to_scale(aspect, score)
    if value is None:
        raise InputRefused(
            f"The score for {aspect.name} must be {format_range(aspect)}, not {format_number_field(score)}."
        )
    return value


def refuse_unknown_reasons(reasons: TextByAspect) -> None:
    for reason in reasons.values():
        if reason not in tuple(DifferenceReason):
            raise InputRefused(
                f"“{reason}” is not a reason. Choose one of: {', '.join(DIFFERENCE_REASON_TEXTS.values())}."
            )


# ---- what is stored


def store_answers(
    review: Review,
    choices: Answers,
    *stages: Stage,
    notes: TextByAspect = NO_TEXTS,
    reasons: TextByAspect = NO_TEXTS,
) -> None:
    """Store the same answers at each of these stages."""
    aspects = {aspect.key: aspect for aspect in Aspect.objects.filter(evaluation=review.comparison.evaluation_id)}
    verdicts, scores = [], []
    for stage, (key, shown_answer) in product(stages, choices.items()):
        answer = swap_answer(shown_answer, ShownOrder(review.shown))
        texts = {"note": notes.get(key, ""), "reason": reasons.get(key, "")}
        if isinstance(answer, Choice):
            verdicts.append(build_verdict(review, aspects[key], stage, answer, texts))
        else:
            scores += build_scores(review, aspects[key], stage, answer, texts)
    insert_objects(verdicts)
    pack_review_verdicts(review, verdicts)
    insert_objects(scores)


def build_verdict(review: Review, aspect: Aspect, stage: Stage, choice: Choice, texts: TextByAspect) -> Verdict:
    return Verdict(
        rater_id=review.rater_id,
        comparison_id=review.comparison_id,
        aspect=aspect,
        stage=stage,
        shown=review.shown,
        choice=choice,
        review=review,
        **texts,
    )


def build_scores(
    review: Review, aspect: Aspect, stage: Stage, scores: ScorePair | SingleScore, texts: TextByAspect
) -> list[Score]:
    """A score row for each response. Note and reason go on response A's row only, so that they are counted once."""
    columns = {"rater_id": review.rater_id, "aspect": aspect, "stage": stage, "review": review}
    comparison = review.comparison
    if isinstance(scores, SingleScore):
        return [Score(response_id=comparison.response_a_id, value=scores.value, **columns, **texts)]
    return [
        Score(response_id=comparison.response_a_id, value=scores.left, **columns, **texts),
        Score(response_id=comparison.response_b_id, value=scores.right, **columns),
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
    answers: dict[str, dict[str, Answer]] = {Stage.FIRST: {}, Stage.FINAL: {}}
    notes, reasons = {}, {}
    rows = review.verdicts.values_list("aspect__key", "stage", "choice", "note", "reason")
    for key, stage, choice, note, reason in rows.order_by("pk"):
        answers[stage][key] = swap_choice(Choice(choice), ShownOrder(review.shown))
        notes[key], reasons[key] = note, reason
    return ReviewAnswers(answers[Stage.FIRST], answers[Stage.FINAL], drop_empty_texts(notes), drop_empty_texts(reasons))


def read_score_answers(review: Review) -> ReviewAnswers:
    values: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
    notes: dict[str, str] = {}
    reasons: dict[str, str] = {}
    rows = review.scores.values_list("aspect__key", "stage", "response_id", "value", "note", "reason")
    for key, stage, response, value, note, reason in rows.order_by("pk"):
        values[stage, key][response] = value
        notes[key] = notes.get(key) or note
        reasons[key] = reasons.get(key) or reason
    answers: dict[str, dict[str, Answer]] = {Stage.FIRST: {}, Stage.FINAL: {}}
    a, b = review.comparison.response_a_id, review.comparison.response_b_id
    for (stage, key), by_response in values.items():
        answer: Answer = SingleScore(by_response[a]) if a == b else ScorePair(by_response[a], by_response[b])
        answers[stage][key] = swap_answer(answer, ShownOrder(review.shown))
    return ReviewAnswers(answers[Stage.FIRST], answers[Stage.FINAL], drop_empty_texts(notes), drop_empty_texts(reasons))


def drop_empty_texts(texts: TextByAspect) -> TextByAspect:
    return {key: text for key, text in texts.items() if text}


# ---- the names of its fields on the page


def build_field_values(choices: Answers, notes: TextByAspect, reasons: TextByAspect) -> dict[str, str]:
    """The answers as form field values."""
    fields = {}
    for key, answer in choices.items():
        if isinstance(answer, Choice):
            fields[f"choice_{key}"] = answer.value
        elif isinstance(answer, SingleScore):
            fields[f"score_{key}"] = format_number_field(answer.value)
        else:
            fields |= {
                f"left_{key}": format_number_field(answer.left),
                f"right_{key}": format_number_field(answer.right),
            }
    fields |= {f"note_{key}": note for key, note in notes.items()}
    return fields | {f"reason_{key}": reason for key, reason in reasons.items()}
