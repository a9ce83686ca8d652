"""Rule-based judges with a known bias, as baselines for LLM judges."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from evaluations.domain.choices import Choice, ShownOrder
from evaluations.domain.rubrics import AspectSpec
from evaluations.domain.texts import PairTexts, messages_to_text

LONGEST_RULE: Final = "longest"
FIRST_RULE: Final = "first"
RANDOM_RULE: Final = "random"
TIE_LENGTH_SHARE: Final = 0.05  # of the longer one's characters


@dataclass(frozen=True)
class RuleQuestion:
    """The input of a rule: one aspect of one comparison in one order. ``seed``: of the sample."""

    comparison_id: int
    pair: PairTexts
    shown: ShownOrder
    aspect: AspectSpec
    seed: int = 0


def choose_longest(question: RuleQuestion) -> Choice:
    """The response with more characters; a tie if they differ by at most 5% of the longer."""
    a, b = len(messages_to_text(question.pair.response_a)), len(messages_to_text(question.pair.response_b))
    if abs(a - b) <= TIE_LENGTH_SHARE * max(a, b):
        return Choice.TIE
    return Choice.A if a > b else Choice.B


def choose_first_shown(question: RuleQuestion) -> Choice:
    """The response shown first: pure position bias."""
    return Choice.B if question.shown == ShownOrder.SWAPPED else Choice.A


def choose_at_random(question: RuleQuestion) -> Choice:
    """A, tie or B with equal probability; A or B if no tie is offered. Equal questions draw equally.

    Each order draws separately, so that two orders agree as often as chance lets them.
    """
    choices = [choice for choice in (Choice.A, Choice.TIE, Choice.B) if choice in question.aspect.choices]
    text = f"{question.seed}:{question.comparison_id}:{question.shown}:{question.aspect.key}"
    return choices[int.from_bytes(hashlib.sha256(text.encode()).digest()) % len(choices)]


BASELINE_RULES: Final[Mapping[str, Callable[[RuleQuestion], Choice]]] = {
    LONGEST_RULE: choose_longest,
    FIRST_RULE: choose_first_shown,
    RANDOM_RULE: choose_at_random,
}
# These read no text: their choice reveals which response is stored as A.
TEXT_BLIND_RULES: Final = frozenset({FIRST_RULE, RANDOM_RULE})
# These may say tie, so a rubric must offer it.
TIE_RULES: Final = frozenset({LONGEST_RULE})
# The default seeds of rules that draw.
DEFAULT_RULE_SEEDS: Final[Mapping[str, int]] = {RANDOM_RULE: 0}
