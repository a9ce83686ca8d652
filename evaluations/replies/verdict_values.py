"""The choice or score that a value in a reply stands for."""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from string import ascii_letters
from typing import Final

from evaluations.domain.choices import Choice
from evaluations.domain.rubrics import AspectSpec, RubricSpec
from evaluations.domain.texts import PairTexts, ResponseTexts
from evaluations.replies.label_context import choice_by_label
from evaluations.replies.labels import NUMBER, bare_number, match_json_label
from evaluations.replies.reply_format import (
    MAX_SCALE_VALUES,
    format_range,
    format_value,
    is_pointwise,
    reply_key,
    reply_labels,
    scale_values,
    snap_to_scale,
)

# Quotes of any kind, escaped or not, are ignored when quotations are compared.
QUOTE_MARKS: Final = "\"'“”„‘’«»\\`"
OPENING_TAG: Final = re.compile(
    r"\A\s*<(?:answer|output|solution|response|final|final_answer|verdict|result)>", re.IGNORECASE
)

VerdictValue = Choice | float
ParsedVerdicts = tuple[dict[str, VerdictValue], str]  # by aspect, and the rationale
JudgedTexts = Callable[[], PairTexts | ResponseTexts]


class UnreadableReply(Exception):
    """The reply has no valid verdict; the message says why."""


class QuotedVerdict(UnreadableReply):
    """A verdict that is not the judge's own."""


@dataclass(frozen=True)
class ReplyContext:
    """The request that a reply answers.

    ``alone``: with a verdict without reasons; ``is_cut_off``: it ended at the token limit, ``in_line`` amid a line.
    """

    spec: RubricSpec
    judged: JudgedTexts | None = None
    alone: bool = False
    is_cut_off: bool = False
    in_line: bool = False


def parse_verdict_value(spec: RubricSpec, aspect: AspectSpec, value: object) -> VerdictValue:
    return parse_score(aspect, value) if is_pointwise(spec) else parse_choice(aspect, value)


def parse_text_verdict(spec: RubricSpec, aspect: AspectSpec, label: str) -> VerdictValue:
    """The verdict of a label in plain text, where numbers are words."""
    is_number = is_pointwise(spec) and NUMBER.fullmatch(label.strip())
    return parse_verdict_value(spec, aspect, float(label) if is_number else label)


def parse_choice(aspect: AspectSpec, label: object) -> Choice:
    """The choice of this label; UnreadableReply if it was not offered."""
    if isinstance(label, list) and len(label) == 1:
        (label,) = label
    if isinstance(label, int) and not isinstance(label, bool):
        label = str(label) if abs(label) < MAX_SCALE_VALUES else ""
    choice = match_json_label(aspect, label) if isinstance(label, str) else None
    if choice is None:
        raise not_offered_error(aspect, label)
    return choice_by_label(aspect, choice)


def parse_score(aspect: AspectSpec, value: object) -> float:
    """The value on the scale; UnreadableReply if it is off the scale: it is never moved onto it.

    Quoted numbers count on stepped scales only, because the schema offers them as words.
    """
    by_word = {format_value(number): number for number in scale_values(aspect)}
    if isinstance(value, str) and (word := bare_number(aspect, value)) in by_word:
        return by_word[word]
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    score = snap_to_scale(aspect, value) if is_number else None  # type: ignore[arg-type]
    if score is None:
        raise not_offered_error(aspect, value)
    return score


def not_offered_error(aspect: AspectSpec, value: object) -> UnreadableReply:
    labels, excerpt = reply_labels(aspect), json.dumps(value, ensure_ascii=False)[:80]
    expected = f"offered were {', '.join(labels)}" if labels else f"wanted was {format_range(aspect)}"
    return UnreadableReply(f"The reply gives {excerpt} for {reply_key(aspect)}; {expected}.")


def strip_fence(reply: str) -> str:
    """The reply without a code fence or a tag around it."""
    text = OPENING_TAG.sub("", reply.strip(), count=1)
    if text.startswith("```"):
        text = text.removesuffix("```")[3:].lstrip(ascii_letters)
    return text.strip()


def squeeze_quotation(text: str) -> str:
    """The text without white space and quotes, case-folded, for comparison with quotations."""
    text = "".join(text.split()).casefold()
    for quote in QUOTE_MARKS:
        text = text.replace(quote, "")
    return text
