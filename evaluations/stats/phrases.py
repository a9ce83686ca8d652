"""English phrases for counts and for lists."""

from collections.abc import Sequence


def count_phrase(number: int, noun: str) -> str:
    """“1 vote”, “1,200 votes”."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def join_words(words: Sequence[str]) -> str:
    """“a, b and c”."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
