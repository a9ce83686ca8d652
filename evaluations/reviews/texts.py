"""The layout of prompt, responses and their word diff on the review page."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile, zip_longest
from typing import Final

from django.utils.safestring import SafeString, mark_safe

from evaluations.domain.errors import InputRefused
from evaluations.domain.texts import Message
from evaluations.models.comparisons import Response
from evaluations.models.verdicts import Span
from evaluations.rendered_texts import RenderedTexts, Turn, build_turns, get_rendered_text, name_speaker
from evaluations.rendering.text_length import TextLength, measure_text
from evaluations.rendering.word_diff import diff_turns
from evaluations.reviews.sheet import ReviewSheet

# Longer responses open collapsed. Enough that what is shown then is always full.
LONG_RESPONSE_CHARACTERS: Final = 4_000

LONG_RESPONSE_LINES: Final = 80

# What is far from sight in longer ones is laid out when it comes near: the page opens at once.
HUGE_RESPONSE_CHARACTERS: Final = 20_000

# Turns before the last question: longer than this together, they open collapsed.
LONG_HISTORY_CHARACTERS: Final = 1_500


@dataclass(frozen=True)
class ResponseTexts:
    """One response as shown. ``turns`` omits those that both responses begin with.

    ``letter``: empty where there is one response alone.
    """

    letter: str
    turns: tuple[Turn, ...]
    measure: TextLength
    is_long: bool
    spans: tuple[Span, ...]

    @property
    def key(self) -> str:
        return self.letter.lower() or "a"

    @property
    def name(self) -> str:
        return self.letter or "the response"

    @property
    def is_huge(self) -> bool:
        return self.measure.characters > HUGE_RESPONSE_CHARACTERS


@dataclass(frozen=True)
class ReviewTexts:
    """``earlier``: the turns before the last question, which both responses share. ``sides``: one or two."""

    earlier: tuple[Turn, ...]
    last_question: tuple[Turn, ...]
    earlier_characters: int
    sides: tuple[ResponseTexts, ...]
    context: SafeString
    reference: SafeString
    guidelines: SafeString

    @property
    def has_long_side(self) -> bool:
        return any(side.is_long for side in self.sides)

    @property
    def has_conversation(self) -> bool:
        return bool(self.earlier) or any(len(side.turns) > 1 for side in self.sides)

    @property
    def has_long_history(self) -> bool:
        return self.earlier_characters > LONG_HISTORY_CHARACTERS


def build_review_texts(sheet: ReviewSheet, html: RenderedTexts, spans: Sequence[Span]) -> ReviewTexts:
    """All texts of the page. ``html`` has every text of the comparison, and the guidelines."""
    query = sheet.comparison.query
    # A single response keeps its own turns: what the prompt ends with is the last question.
    shared = 0 if sheet.comparison.is_single else count_shared_turns(sheet.left.messages, sheet.right.messages)
    history = [*query.messages, *sheet.left.messages[:shared]]
    last = max((index for index, turn in enumerate(history) if turn["role"] == "user"), default=0)
    other_texts = (query.context or "", query.reference or "", sheet.comparison.evaluation.guidelines)
    context, reference, guidelines = (get_rendered_text(html, text) for text in other_texts)
    turns = build_turns(history, html)
    return ReviewTexts(
        earlier=turns[:last],
        last_question=turns[last:],
        earlier_characters=sum(map(len, get_contents(history[:last]))),
        sides=tuple(build_response_texts(letter, side, shared, html, spans) for letter, side in sheet.sides),
        context=context,
        reference=reference,
        guidelines=guidelines,
    )


def count_shared_turns(left: Sequence[Message], right: Sequence[Message]) -> int:
    """How many turns both begin with; the last turn of each is always its own."""
    pairs = zip(left[:-1], right[:-1], strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def build_response_texts(
    letter: str, response: Response, shared: int, html: RenderedTexts, spans: Sequence[Span]
) -> ResponseTexts:
    messages = response.messages[shared:]
    contents = get_contents(messages)
    return ResponseTexts(
        letter,
        build_turns(messages, html, first=shared),
        measure=measure_text("".join(contents)),
        is_long=is_long_response(contents),
        spans=tuple(span for span in spans if span.response_id == response.pk),
    )


def is_long_response(texts: Sequence[str]) -> bool:
    return (
        sum(map(len, texts)) > LONG_RESPONSE_CHARACTERS or sum(text.count("\n") for text in texts) > LONG_RESPONSE_LINES
    )


def get_contents(messages: Sequence[Message]) -> list[str]:
    return [message["content"] for message in messages]


@dataclass(frozen=True)
class ResponseDiff:
    """The marked turns of A and B, or the reason why they were not compared."""

    a: tuple[Turn, ...] = ()
    b: tuple[Turn, ...] = ()
    refusal: str = ""


def diff_responses(sheet: ReviewSheet) -> ResponseDiff:
    if sheet.comparison.is_single:
        return ResponseDiff(refusal="There is only one response here.")
    shared = count_shared_turns(sheet.left.messages, sheet.right.messages)
    left, right = sheet.left.messages[shared:], sheet.right.messages[shared:]
    try:
        pairs = diff_turns([(get_content(a), get_content(b)) for a, b in zip_longest(left, right)])
    except InputRefused as refusal:
        return ResponseDiff(refusal=str(refusal))
    left_html, right_html = ([pair[side] for pair in pairs] for side in (0, 1))
    return ResponseDiff(build_diff_turns(left, left_html), build_diff_turns(right, right_html))


def build_diff_turns(messages: Sequence[Message], html: Sequence[str]) -> tuple[Turn, ...]:
    """Turns from marked HTML, which is safe: ``word_diff`` escapes the text."""
    return tuple(
        Turn(number, name_speaker(message, messages), mark_safe(turn_html))
        for number, (message, turn_html) in enumerate(zip(messages, html, strict=False))
    )


def get_content(message: Message | None) -> str:
    return message["content"] if message else ""
