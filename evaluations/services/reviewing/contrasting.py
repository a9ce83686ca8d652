"""Two responses word by word, turn by turn, as the person sees them."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from django.utils.safestring import mark_safe

from evaluations.domain import InputRefused, Message
from evaluations.rendering.diffing import word_diff
from evaluations.services.reviewing.arranging import Turn, own_turns, speaker_of
from evaluations.services.reviewing.presenting import Sheet


@dataclass(frozen=True)
class Diffed:
    """The turns of A and of B, or the reason why they were not compared."""

    a: tuple[Turn, ...] = ()
    b: tuple[Turn, ...] = ()
    refusal: str = ""


def diffed(sheet: Sheet) -> Diffed:
    left, right = own_turns(sheet.left.messages, sheet.right.messages)
    try:
        pairs = [word_diff(content(one), content(other)) for one, other in zip_longest(left, right)]
    except InputRefused as refusal:
        return Diffed(refusal=str(refusal))
    ones, others = ([pair[side] for pair in pairs] for side in (0, 1))
    return Diffed(turns(left, ones), turns(right, others))


def turns(messages: Sequence[Message], html: Sequence[str]) -> tuple[Turn, ...]:
    """Safe: ``word_diff`` escapes all that it did not write itself."""
    return tuple(
        Turn(number, speaker_of(message, messages), mark_safe(words))
        for number, (message, words) in enumerate(zip(messages, html, strict=False))
    )


def content(message: Message | None) -> str:
    return message["content"] if message else ""
