"""English phrases for counts and for lists."""

from collections.abc import Sequence


def count_phrase(number: int, noun: str) -> str:
    """“1 vote”, “1,200 votes”."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def format_ci(low: float, high: float) -> str:
    """“95% CI 36–48” of two shares from 0 to 1."""
    return f"95% CI {low * 100:.0f}–{high * 100:.0f}"


def join_words(words: Sequence[str]) -> str:
    """“a, b and c”."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
