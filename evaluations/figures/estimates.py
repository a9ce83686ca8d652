"""What a plot is made of: numbers with their intervals, each in a row and of a series."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date

from evaluations.stats.numbers import Number


@dataclass(frozen=True)
class Estimate:
    """``label`` names the row, ``series`` whose number it is, ``note`` why the value or the interval is missing."""

    label: str
    series: str
    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    note: str = ""

    def __post_init__(self) -> None:
        given = [number for number in (self.value, self.low, self.high) if number is not None]
        if not all(map(math.isfinite, given)):
            raise ValueError(f"{self.label}, {self.series}: what is undefined is None, not {given}")

    @property
    def has_interval(self) -> bool:
        return self.low is not None and self.high is not None


@dataclass(frozen=True)
class Dated:
    """A number of the time that begins on that day; its label says that time in words."""

    day: date
    estimate: Estimate


@dataclass(frozen=True)
class Ranked:
    """A candidate's score with its rank, 1 for the best, and the ranks that its interval allows."""

    estimate: Estimate
    rank: int | None = None
    rank_low: int | None = None
    rank_high: int | None = None

    @property
    def ranks(self) -> str:
        """``2 (1–3)``; the rank alone where no other one is possible."""
        if self.rank is None or self.rank_low is None or self.rank_high is None:
            return "" if self.rank is None else str(self.rank)
        if self.rank_low == self.rank_high == self.rank:
            return str(self.rank)
        return f"{self.rank} ({self.rank_low}–{self.rank_high})"


@dataclass(frozen=True)
class Binned:
    """The share that is right among verdicts whose mean confidence is ``confidence``."""

    confidence: float
    estimate: Estimate


def estimate_of(label: str, series: str, number: Number) -> Estimate:
    """A number of the report as a plot takes it."""
    low, high = number.ci95 or (None, None)
    return Estimate(label, series, number.value, low, high, number.n, number.why or number.ci95_why or "")


def labels_of(estimates: Iterable[Estimate]) -> list[str]:
    """Rows in the order in which they are given first."""
    return list(dict.fromkeys(estimate.label for estimate in estimates))


def series_of(estimates: Iterable[Estimate]) -> list[str]:
    return list(dict.fromkeys(estimate.series for estimate in estimates))


def with_value(estimates: Sequence[Estimate]) -> list[Estimate]:
    return [estimate for estimate in estimates if estimate.value is not None]
