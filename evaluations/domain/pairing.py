"""The ways of pairing responses."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from evaluations.domain.errors import InputRefused

MAX_PAIRS_PER_QUERY: Final = 999_999


class PairingWay(StrEnum):
    ALL = "all"
    BASELINE = "baseline"
    RANDOM = "random"
    ADJACENT = "adjacent"  # neighbors by rating


@dataclass(frozen=True)
class Pairing:
    """A way of pairing, with the baseline or the number of pairs per query that it needs. Raises InputRefused."""

    way: PairingWay = PairingWay.ALL
    baseline: str = ""
    number: int = 0

    def __post_init__(self) -> None:
        if self.way == PairingWay.BASELINE and not self.baseline:
            raise InputRefused("Choose the baseline model.", field="baseline")
        if self.way == PairingWay.RANDOM and not 0 < self.number <= MAX_PAIRS_PER_QUERY:
            raise InputRefused("Enter the number of random pairs per prompt.", field="pairs_each")

    def __str__(self) -> str:
        return ":".join(part for part in (self.way, self.baseline, str(self.number or "")) if part)


def make_pairing(way: str, *, baseline: str = "", pairs_each: int | None = None) -> Pairing:
    """A way of pairing, without the values that belong to the other ways."""
    return Pairing(
        PairingWay(way),
        baseline if way == PairingWay.BASELINE else "",
        (pairs_each or 0) if way == PairingWay.RANDOM else 0,
    )


def parse_pairing(text: str) -> Pairing:
    """``all``, ``baseline:NAME``, ``random:N`` or ``adjacent`` as a person writes it."""
    way, colon, rest = text.partition(":")
    number = int(rest) if rest.isascii() and rest.isdecimal() and len(rest) < 9 else 0
    if way in tuple(PairingWay) and bool(colon) == (way in (PairingWay.BASELINE, PairingWay.RANDOM)):
        try:
            return make_pairing(way, baseline=rest, pairs_each=number)
        except InputRefused:
            pass
    raise InputRefused(f"Unknown pairing “{text}”. Use all, baseline:NAME, random:N or adjacent.")
