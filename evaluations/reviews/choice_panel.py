"""The choice panel: options, scales, the judge's choice for each aspect."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from evaluations.domain.choices import Choice
from evaluations.domain.reviews import DIFFERENCE_REASON_TEXTS, DifferenceReason
from evaluations.domain.rubrics import AspectSpec
from evaluations.reviews.answers import (
    Answer,
    ScaleDisplay,
    ScorePair,
    SingleScore,
    build_scale_display,
    format_number_field,
    get_choice_of_answer,
)
from evaluations.reviews.sheet import JudgeChoice, ReviewSheet, SheetLine

CHOICE_LABELS: Mapping[Choice, str] = {Choice.A: "A", Choice.TIE: "Tie", Choice.BOTH_BAD: "Both bad", Choice.B: "B"}
RESPONSE_SIDES = (("left", "A"), ("right", "B"))
SINGLE_SIDE = (("single", ""),)  # of the only response
FieldValues = Mapping[str, str]  # values by field name


@dataclass(frozen=True)
class PanelOption:
    """One choice, or one value of a scale."""

    value: str
    label: str
    is_chosen: bool
    is_yours: bool
    is_judges: bool

    @property
    def chosen_by(self) -> str:
        return {(True, True): "you + judge", (True, False): "you", (False, True): "judge"}.get(
            (self.is_yours, self.is_judges), ""
        )


@dataclass(frozen=True)
class PanelScale:
    """The scale of one response for one aspect; without options its ``value`` is written into a field.

    ``letter``: empty where there is one response alone.
    """

    side: str
    letter: str
    name: str
    options: list[PanelOption]
    value: str
    yours: str
    judges: str


@dataclass(frozen=True)
class PanelRow:
    """One aspect of the choice panel."""

    line: SheetLine
    options: list[PanelOption]
    scales: list[PanelScale]
    scale: ScaleDisplay | None
    note: str
    reason: str
    reason_in_words: str
    first: str
    final: str
    judge: str
    consistency: str

    @property
    def has_changed(self) -> bool:
        return self.line.first != self.line.final


@dataclass(frozen=True)
class StoredAndEntered:
    """One choice, reason or note: the value stored from another tab, and the value entered here."""

    name: str
    stored: str
    entered: str

    @property
    def differ(self) -> bool:
        return self.stored != self.entered


def build_panel_rows(sheet: ReviewSheet, fields: FieldValues) -> Iterator[PanelRow]:
    for line in sheet.lines:
        key = line.aspect.key
        reason = fields.get(f"reason_{key}", line.reason)
        yield PanelRow(
            line,
            [] if sheet.is_pointwise else build_options(line, fields),
            build_scales(line, fields, is_single=sheet.comparison.is_single) if sheet.is_pointwise else [],
            build_scale_display(line.aspect) if sheet.is_pointwise else None,
            fields.get(f"note_{key}", line.note),
            reason,
            describe_reason(reason),
            describe_answer(line.aspect, line.first),
            describe_answer(line.aspect, line.final),
            describe_judge_choice(line),
            describe_consistency(line.judge) if line.judge else "",
        )


def build_options(line: SheetLine, fields: FieldValues) -> list[PanelOption]:
    chosen = fields.get(f"choice_{line.aspect.key}") or line.final or line.first
    judge = line.judge.choice if line.judge else None
    return [
        PanelOption(choice, label_choice(line.aspect, choice), choice == chosen, choice == line.first, choice == judge)
        for choice in line.aspect.choices
    ]


def build_scales(line: SheetLine, fields: FieldValues, *, is_single: bool) -> list[PanelScale]:
    """Build one scale for each response."""
    scale = build_scale_display(line.aspect)
    judge_scores = line.judge.scores if line.judge else None
    return [
        build_scale(
            scale,
            side,
            letter,
            f"{'score' if is_single else side}_{line.aspect.key}",
            (format_score_at(line.first, index), format_score_at(line.final, index)),
            format_score_at(judge_scores, index),
            fields,
        )
        for index, (side, letter) in enumerate(SINGLE_SIDE if is_single else RESPONSE_SIDES)
    ]


def build_scale(
    scale: ScaleDisplay, side: str, letter: str, name: str, yours: tuple[str, str], judges: str, fields: FieldValues
) -> PanelScale:
    first, final = yours
    value = fields.get(name) or final or first
    options = [
        PanelOption(option, option, option == value, option == first, option == judges) for option in scale.values
    ]
    return PanelScale(side, letter, name, options, value, first, judges)


def format_score_at(answer: Answer | None, index: int) -> str:
    return format_number_field(answer[index]) if isinstance(answer, (ScorePair, SingleScore)) else ""


def describe_answer(aspect: AspectSpec, answer: Answer | None) -> str:
    """The choice in words; for scores both of them with the choice that they make."""
    if answer is None:
        return ""
    if isinstance(answer, SingleScore):
        return format_number_field(answer.value)
    label = label_choice(aspect, get_choice_of_answer(aspect, answer))
    return (
        f"{format_number_field(answer.left)} to {format_number_field(answer.right)}: {label}"
        if isinstance(answer, ScorePair)
        else label
    )


def label_choice(aspect: AspectSpec, choice: Choice | None) -> str:
    """The choice in words. Where “both bad” can be chosen, a tie is two good ones."""
    if choice == Choice.TIE and aspect.offers_both_bad:
        return "Both good"
    return CHOICE_LABELS[choice] if choice else ""


def describe_judge_choice(line: SheetLine) -> str:
    """The judge's choice in words, or its score of the only response."""
    if line.judge is None:
        return ""
    if line.judge.inconsistent:
        return CHOICE_LABELS[Choice.TIE]
    if isinstance(line.judge.scores, SingleScore):
        return format_number_field(line.judge.scores.value)
    return label_choice(line.aspect, line.judge.choice)


def describe_consistency(judge: JudgeChoice) -> str:
    if judge.remark or judge.choice is None:
        return judge.remark
    if judge.inconsistent:
        return "flips with order (counted as tie)"
    return "" if judge.orders > 1 else "one order only"


def compare_with_stored(sheet: ReviewSheet, fields: FieldValues) -> list[StoredAndEntered]:
    """Stored and entered values, aspect by aspect, then notes and reasons."""
    chosen = [
        StoredAndEntered(
            line.aspect.name,
            describe_answer(line.aspect, line.final or line.first),
            describe_entered(line.aspect, fields),
        )
        for line in sheet.lines
    ]
    note = StoredAndEntered("Note", sheet.review.note if sheet.review else "", fields.get("note", ""))
    return [*chosen, *compare_texts_with_stored(sheet, fields), *([note] if note.stored or note.entered else [])]


def compare_texts_with_stored(sheet: ReviewSheet, fields: FieldValues) -> list[StoredAndEntered]:
    """The reasons and notes on single aspects, where there are any."""
    texts = []
    for line in sheet.lines:
        key, name = line.aspect.key, line.aspect.name
        reasons = (describe_reason(line.reason), describe_reason(fields.get(f"reason_{key}", "")))
        texts += [
            StoredAndEntered(f"{name}, reason", *reasons),
            StoredAndEntered(f"{name}, note", line.note, fields.get(f"note_{key}", "")),
        ]
    return [text for text in texts if text.stored or text.entered]


def describe_reason(reason: str) -> str:
    return DIFFERENCE_REASON_TEXTS[DifferenceReason(reason)] if reason in DIFFERENCE_REASON_TEXTS else reason


def describe_entered(aspect: AspectSpec, fields: FieldValues) -> str:
    chosen = fields.get(f"choice_{aspect.key}", "")
    if chosen:
        return label_choice(aspect, Choice(chosen)) if chosen in tuple(Choice) else chosen
    if single := fields.get(f"score_{aspect.key}", ""):
        return single
    left, right = (fields.get(f"{side}_{aspect.key}", "") for side, _ in RESPONSE_SIDES)
    try:
        return describe_answer(aspect, ScorePair(float(left), float(right)))
    except ValueError:
        return f"{left} to {right}" if left or right else ""
