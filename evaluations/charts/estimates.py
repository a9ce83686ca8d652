"""What charts are made of: estimates with intervals, the quantities that they measure."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Final

from evaluations.stats.estimates import Estimate


@dataclass(frozen=True)
class PlottedEstimate:
    """An estimate in a chart: ``label`` of its row, ``series``, and ``note``: why its value or interval is missing."""

    label: str
    series: str
    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    note: str = ""

    def __post_init__(self) -> None:
        numbers = [number for number in (self.value, self.low, self.high) if number is not None]
        if not all(map(math.isfinite, numbers)):
            raise ValueError(f"{self.label}, {self.series}: what is undefined is None, not {numbers}")

    @property
    def has_interval(self) -> bool:
        return self.low is not None and self.high is not None


@dataclass(frozen=True)
class Dated:
    """An estimate for a period, with the period's first day."""

    day: date
    estimate: PlottedEstimate


@dataclass(frozen=True)
class Ranked:
    """A candidate's score with its rank, 1 for the best, and the ranks that its interval allows."""

    estimate: PlottedEstimate
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
    estimate: PlottedEstimate


def build_estimate(label: str, series: str, number: Estimate) -> PlottedEstimate:
    """An estimate of the report as charts take it."""
    low, high = number.ci95 or (None, None)
    return PlottedEstimate(label, series, number.value, low, high, number.n, number.why or number.ci95_why or "")


def list_labels(estimates: Iterable[PlottedEstimate]) -> list[str]:
    """Distinct labels, in the order of their first occurrence."""
    return list(dict.fromkeys(estimate.label for estimate in estimates))


def list_series(estimates: Iterable[PlottedEstimate]) -> list[str]:
    return list(dict.fromkeys(estimate.series for estimate in estimates))


def filter_with_value(estimates: Sequence[PlottedEstimate]) -> list[PlottedEstimate]:
    return [estimate for estimate in estimates if estimate.value is not None]


STEPS: Final = (1.0, 2.0, 5.0, 10.0)
TARGET_STEPS: Final = 5


@dataclass(frozen=True)
class Quantity:
    """A measured quantity. ``bounds``: its range. Shares are formatted as percentages, their differences in points."""

    name: str
    bounds: tuple[float, float] = (-math.inf, math.inf)
    is_share: bool = False
    is_in_points: bool = False

    def format_value(self, value: float | None) -> str:
        if value is None:
            return "n/a"
        if self.is_in_points:
            return f"{value * 100:+.1f}".replace("-", "−")
        return (f"{value:.1%}" if self.is_share else f"{value:.2f}").replace("-", "−")

    def format_interval(self, estimate: PlottedEstimate) -> str:
        if not estimate.has_interval:
            return "none"
        return f"{self.format_value(estimate.low)} to {self.format_value(estimate.high)}"


def make_share_quantity(name: str) -> Quantity:
    return Quantity(name, (0.0, 1.0), is_share=True)


def compute_axis_domain(
    quantity: Quantity, estimates: Sequence[PlottedEstimate], also: Iterable[float] = ()
) -> list[float]:
    """The two ends of an axis: round numbers around all values and intervals, and around ``also``."""
    numbers = [
        end for estimate in estimates for end in (estimate.value, estimate.low, estimate.high) if end is not None
    ]
    numbers += also
    if not numbers:
        return [0.0, 1.0]
    least, most = min(numbers), max(numbers)
    step = choose_round_step((most - least) or abs(most) or 1.0)
    lowest, highest = quantity.bounds
    low = max(math.floor(least / step) * step, lowest)
    high = min(math.ceil(most / step) * step, highest)
    if low == high:
        low, high = max(low - step, lowest), min(high + step, highest)
    return [round(low, 10), round(high, 10)]


def choose_round_step(length: float) -> float:
    """1, 2 or 5 times a power of ten, so that about five of them cover the length (Heckbert 1990)."""
    rough = length / TARGET_STEPS
    power = 10.0 ** math.floor(math.log10(rough))
    return next(step for step in STEPS if step * power >= rough * (1 - 1e-9)) * power
