"""How long a text is, for people who compare lengths."""

from dataclasses import dataclass

from evaluations.domain import tokens_by_rule
from evaluations.rendering.wording import WORD


@dataclass(frozen=True)
class Measure:
    """``tokens`` is an estimate (``domain.tokens_by_rule``): pages say “about”.

    In writing without spaces each character counts as a word, as word processors count.
    """

    characters: int
    words: int
    tokens: int


def measure(text: str) -> Measure:
    return Measure(len(text), sum(1 for _ in WORD.finditer(text)), round(tokens_by_rule(text)))
