"""Judges that are no LLM: a rule that any study can hold its judges against."""

from collections.abc import Callable, Mapping
from typing import Final

from evaluations.domain import Choice, PairTexts, text_of

LONGEST: Final = "longest"
TIE_WITHIN: Final = 0.05  # of the longer one's characters


def longest(pair: PairTexts) -> Choice:
    """The response with more characters; a tie where they differ by at most 5 % of the longer."""
    a, b = len(text_of(pair.response_a)), len(text_of(pair.response_b))
    if abs(a - b) <= TIE_WITHIN * max(a, b):
        return Choice.TIE
    return Choice.A if a > b else Choice.B


RULES: Final[Mapping[str, Callable[[PairTexts], Choice]]] = {LONGEST: longest}
