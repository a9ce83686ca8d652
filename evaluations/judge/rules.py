"""Judges that are no LLM: rules with a known bias, to hold judges and the report itself against."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from evaluations.domain import AspectSpec, Choice, PairTexts, Shown, text_of

LONGEST: Final = "longest"
FIRST: Final = "first"
RANDOM: Final = "random"

TIE_WITHIN: Final = 0.05  # of the longer one's characters


@dataclass(frozen=True)
class Question:
    """What a rule may look at: one aspect of one comparison in one order. ``seed`` is the sample's own."""

    comparison_id: int
    pair: PairTexts
    shown: Shown
    aspect: AspectSpec
    seed: int = 0


def longest(question: Question) -> Choice:
    """The response with more characters; a tie where they differ by at most 5 % of the longer."""
    a, b = len(text_of(question.pair.response_a)), len(text_of(question.pair.response_b))
    if abs(a - b) <= TIE_WITHIN * max(a, b):
        return Choice.TIE
    return Choice.A if a > b else Choice.B


def first_shown(question: Question) -> Choice:
    """The response that is shown first: nothing but a preference for a place."""
    return Choice.B if question.shown == Shown.SWAPPED else Choice.A


def drawn(question: Question) -> Choice:
    """A, tie or B, each as likely; A or B where no tie is offered. The same question draws the same every time.

    Each order draws for itself, so that two orders agree as often as chance alone lets them.
    """
    drawn_from = [choice for choice in (Choice.A, Choice.TIE, Choice.B) if choice in question.aspect.choices]
    asked = f"{question.seed}:{question.comparison_id}:{question.shown}:{question.aspect.key}"
    return drawn_from[int.from_bytes(hashlib.sha256(asked.encode()).digest()) % len(drawn_from)]


RULES: Final[Mapping[str, Callable[[Question], Choice]]] = {LONGEST: longest, FIRST: first_shown, RANDOM: drawn}
# These read no text: whoever knows the rule can tell from its choice which response is stored as A.
WITHOUT_READING: Final = frozenset({FIRST, RANDOM})
# These may say tie, so a rubric must offer it.
SAYS_TIE: Final = frozenset({LONGEST})
# These draw: a judge that is given no seed has this one.
DEFAULT_SEEDS: Final[Mapping[str, int]] = {RANDOM: 0}
