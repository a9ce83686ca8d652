"""A number with what belongs to it: how many it rests on, and why it is missing where it is."""

from dataclasses import dataclass
from typing import Final

NO_INTERVAL: Final = "Intervals are not computed in this version."
NO_VALUE: Final = "There is no value to put an interval around."


@dataclass(frozen=True)
class Number:
    """``value`` is None where it is undefined, and ``why`` says why; the same for the interval."""

    value: float | None
    n: int
    why: str | None = None
    ci95: tuple[float, float] | None = None
    ci95_why: str | None = NO_INTERVAL


def undefined(why: str, n: int = 0) -> Number:
    return Number(None, n, why=why, ci95_why=NO_VALUE)


def share(part: int, whole: int, empty: str) -> Number:
    """part ÷ whole; where the whole is nothing, ``empty`` is the reason."""
    return Number(part / whole, whole) if whole else undefined(empty)
