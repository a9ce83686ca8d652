"""What there is to read on the review page: the query, both responses, and what stands beside them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Final

from django.utils.safestring import SafeString

from evaluations.domain import Message
from evaluations.models import Response, Span
from evaluations.rendering.measuring import Measure, measure
from evaluations.services.reviewing.presenting import Sheet

Html = Mapping[str, SafeString]  # what typesetting made of each text

# Longer responses open collapsed. Enough that what is shown then is always full.
LONG_CHARACTERS: Final = 4_000
LONG_LINES: Final = 80
# What is far from sight in longer ones is laid out when it comes near: the page opens at once.
HUGE_CHARACTERS: Final = 20_000
# Turns before the last question: longer than this together, they open collapsed.
LONG_HISTORY: Final = 1_500


@dataclass(frozen=True)
class Turn:
    """``number``: its place among the turns of its response, or of the query."""

    number: int
    speaker: str
    html: SafeString


@dataclass(frozen=True)
class Side:
    """One response as the person sees it. ``turns`` leaves out those that both responses begin with."""

    letter: str
    turns: tuple[Turn, ...]
    measure: Measure
    is_long: bool
    spans: tuple[Span, ...]

    @property
    def key(self) -> str:
        return self.letter.lower()

    @property
    def is_huge(self) -> bool:
        return self.measure.characters > HUGE_CHARACTERS


@dataclass(frozen=True)
class Texts:
    """``earlier``: the turns before the last question, which both responses share."""

    earlier: tuple[Turn, ...]
    asked: tuple[Turn, ...]
    earlier_characters: int
    sides: tuple[Side, Side]
    context: SafeString
    reference: SafeString
    guidelines: SafeString

    @property
    def has_long_side(self) -> bool:
        return any(side.is_long for side in self.sides)

    @property
    def has_long_history(self) -> bool:
        return self.earlier_characters > LONG_HISTORY


def texts_for(sheet: Sheet, html: Html, spans: Sequence[Span]) -> Texts:
    """Everything that is read. ``html`` holds all texts of the comparison, and the guidelines."""
    query = sheet.comparison.query
    shared = shared_turns(sheet.left.messages, sheet.right.messages)
    history = [*query.messages, *sheet.left.messages[:shared]]
    last = max((place for place, turn in enumerate(history) if turn["role"] == "user"), default=0)
    beside = (query.context or "", query.reference or "", sheet.comparison.evaluation.guidelines)
    context, reference, guidelines = (safe(html, text) for text in beside)
    turns = turns_of(history, html)
    return Texts(
        earlier=turns[:last],
        asked=turns[last:],
        earlier_characters=sum(map(len, contents(history[:last]))),
        sides=(
            side_of("A", sheet.left, shared, html, spans),
            side_of("B", sheet.right, shared, html, spans),
        ),
        context=context,
        reference=reference,
        guidelines=guidelines,
    )


def shared_turns(one: Sequence[Message], other: Sequence[Message]) -> int:
    """How many turns both begin with; the last turn of each is always its own."""
    pairs = zip(one[:-1], other[:-1], strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def side_of(letter: str, response: Response, shared: int, html: Html, spans: Sequence[Span]) -> Side:
    own = response.messages[shared:]
    words = contents(own)
    return Side(
        letter,
        turns_of(own, html, first=shared),
        measure=measure("".join(words)),
        is_long=is_long(words),
        spans=tuple(span for span in spans if span.response_id == response.pk),
    )


def is_long(texts: Sequence[str]) -> bool:
    return sum(map(len, texts)) > LONG_CHARACTERS or sum(text.count("\n") for text in texts) > LONG_LINES


def turns_of(messages: Sequence[Message], html: Html, first: int = 0) -> tuple[Turn, ...]:
    return tuple(
        Turn(number, speaker_of(message, messages), safe(html, message["content"]))
        for number, message in enumerate(messages, first)
    )


def speaker_of(message: Message, among: Sequence[Message]) -> str:
    """One turn stands alone; of several each says who speaks."""
    return message["role"].capitalize() if len(among) > 1 or message["role"] == "system" else ""


def own_turns(left: Sequence[Message], right: Sequence[Message]) -> tuple[Sequence[Message], Sequence[Message]]:
    """What each response says that the other does not begin with too."""
    shared = shared_turns(left, right)
    return left[shared:], right[shared:]


def contents(messages: Sequence[Message]) -> list[str]:
    return [message["content"] for message in messages]


def safe(html: Html, text: str) -> SafeString:
    """The rendering of a text; empty where nothing was written."""
    return html[text] if text.strip() else SafeString("")
