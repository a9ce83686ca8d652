"""What stands on the choice panel: for every aspect its choices or scales, whose they are, and the judge's."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from evaluations.domain import REASONS_IN_WORDS, AspectSpec, Choice, Reason
from evaluations.services.reviewing.presenting import Line, Sheet
from evaluations.services.reviewing.revealing import JudgeChoice
from evaluations.services.reviewing.saying import Given, ScaleShown, Scores, choice_in, number, scale_shown

LABELS: Mapping[Choice, str] = {Choice.A: "A", Choice.TIE: "Tie", Choice.BOTH_BAD: "Both bad", Choice.B: "B"}
SIDES = (("left", "A"), ("right", "B"))
Fields = Mapping[str, str]  # names of fields of the page → what stands in them


@dataclass(frozen=True)
class Option:
    """One choice, or one value of a scale."""

    value: str
    label: str
    is_chosen: bool
    is_yours: bool
    is_judges: bool


@dataclass(frozen=True)
class Scale:
    """The scale of one response for one aspect; without options its ``value`` is written into a field."""

    side: str
    letter: str
    name: str
    options: list[Option]
    value: str
    yours: str
    judges: str


@dataclass(frozen=True)
class Row:
    """One aspect of the choice panel."""

    line: Line
    options: list[Option]
    scales: list[Scale]
    scale: ScaleShown | None
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
class Versions:
    """One choice, reason or note: what another tab stored of it, and what was entered here."""

    name: str
    stored: str
    entered: str

    @property
    def differ(self) -> bool:
        return self.stored != self.entered


def rows(sheet: Sheet, fields: Fields) -> Iterator[Row]:
    for line in sheet.lines:
        key = line.asked.key
        torn = line.judge is not None and line.judge.inconsistent
        reason = fields.get(f"reason_{key}", line.reason)
        yield Row(
            line,
            [] if sheet.is_pointwise else options(line, fields),
            scales(line, fields) if sheet.is_pointwise else [],
            scale_shown(line.asked) if sheet.is_pointwise else None,
            fields.get(f"note_{key}", line.note),
            reason,
            reason_in_words(reason),
            in_words(line.asked, line.first),
            in_words(line.asked, line.final),
            LABELS[Choice.TIE] if torn else label_of(line.asked, line.judge.choice if line.judge else None),
            consistency(line.judge) if line.judge else "",
        )


def options(line: Line, fields: Fields) -> list[Option]:
    chosen = fields.get(f"choice_{line.asked.key}") or line.final or line.first
    judge = line.judge.choice if line.judge else None
    return [
        Option(choice, label_of(line.asked, choice), choice == chosen, choice == line.first, choice == judge)
        for choice in line.asked.choices
    ]


def scales(line: Line, fields: Fields) -> list[Scale]:
    """One for either response."""
    scale = scale_shown(line.asked)
    told = line.judge.scores if line.judge else None
    return [
        scale_of(scale, side, letter, f"{side}_{line.asked.key}", numbers(line, place), number_at(told, place), fields)
        for place, (side, letter) in enumerate(SIDES)
    ]


def scale_of(
    scale: ScaleShown, side: str, letter: str, name: str, yours: tuple[str, str], judges: str, fields: Fields
) -> Scale:
    first, final = yours
    value = fields.get(name) or final or first
    options = [Option(one, one, one == value, one == first, one == judges) for one in scale.values]
    return Scale(side, letter, name, options, value, first, judges)


def numbers(line: Line, place: int) -> tuple[str, str]:
    return number_at(line.first, place), number_at(line.final, place)


def number_at(given: Given | None, place: int) -> str:
    return number(given[place]) if isinstance(given, Scores) else ""


def in_words(asked: AspectSpec, given: Given | None) -> str:
    """What was chosen; of scores both, and the choice that they make."""
    if given is None:
        return ""
    label = label_of(asked, choice_in(asked, given))
    return f"{number(given.left)} to {number(given.right)}: {label}" if isinstance(given, Scores) else label


def label_of(asked: AspectSpec, choice: Choice | None) -> str:
    """The choice in words. Where “both bad” can be chosen, a tie is two good ones."""
    if choice == Choice.TIE and asked.offers_both_bad:
        return "Both good"
    return LABELS[choice] if choice else ""


def consistency(judge: JudgeChoice) -> str:
    if judge.remark:
        return judge.remark
    if judge.inconsistent:
        return "inconsistent → tie"
    return "both orders agree" if judge.orders > 1 else "asked in one order"


def versions(sheet: Sheet, fields: Fields) -> list[Versions]:
    """What is stored beside what was entered, aspect by aspect, and then what was written."""
    chosen = [
        Versions(line.asked.name, in_words(line.asked, line.final or line.first), entered_in_words(line.asked, fields))
        for line in sheet.lines
    ]
    note = Versions("Note", sheet.review.note if sheet.review else "", fields.get("note", ""))
    return [*chosen, *written(sheet, fields), *([note] if note.stored or note.entered else [])]


def written(sheet: Sheet, fields: Fields) -> list[Versions]:
    """The reasons and notes on single aspects, where there are any."""
    all_of_them = []
    for line in sheet.lines:
        key, name = line.asked.key, line.asked.name
        reasons = (reason_in_words(line.reason), reason_in_words(fields.get(f"reason_{key}", "")))
        all_of_them += [
            Versions(f"{name}, reason", *reasons),
            Versions(f"{name}, note", line.note, fields.get(f"note_{key}", "")),
        ]
    return [one for one in all_of_them if one.stored or one.entered]


def reason_in_words(reason: str) -> str:
    return REASONS_IN_WORDS[Reason(reason)] if reason in REASONS_IN_WORDS else reason


def entered_in_words(asked: AspectSpec, fields: Fields) -> str:
    chosen = fields.get(f"choice_{asked.key}", "")
    if chosen:
        return label_of(asked, Choice(chosen)) if chosen in tuple(Choice) else chosen
    left, right = (fields.get(f"{side}_{asked.key}", "") for side, _ in SIDES)
    try:
        return in_words(asked, Scores(float(left), float(right)))
    except ValueError:
        return f"{left} to {right}" if left or right else ""
