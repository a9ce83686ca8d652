"""What is measured along an axis: its name, how it is said, and how far the axis reaches."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from evaluations.figures.estimates import Estimate

STEPS: Final = (1.0, 2.0, 5.0, 10.0)
ABOUT_STEPS: Final = 5


@dataclass(frozen=True)
class Quantity:
    """``bounds``: what no value can be beyond. Shares are said as percentages, what lies between two in points."""

    name: str
    bounds: tuple[float, float] = (-math.inf, math.inf)
    is_share: bool = False
    is_in_points: bool = False

    @property
    def format(self) -> str:
        """The same for d3, along an axis."""
        return ".0%" if self.is_share else "~g"

    @property
    def labels(self) -> dict[str, str]:
        """How an axis names its values, where a format cannot: a hundred times the value, with its sign."""
        said = "datum.value === 0 ? '0' : format(datum.value * 100, '+~g')"
        return {"labelExpr": said} if self.is_in_points else {}

    def said(self, value: float | None) -> str:
        if value is None:
            return "n/a"
        if self.is_in_points:
            return f"{value * 100:+.1f}".replace("-", "−")
        return (f"{value:.1%}" if self.is_share else f"{value:.2f}").replace("-", "−")

    def interval_said(self, estimate: Estimate) -> str:
        if not estimate.has_interval:
            return "none"
        return f"{self.said(estimate.low)} to {self.said(estimate.high)}"


def share(name: str) -> Quantity:
    return Quantity(name, (0.0, 1.0), is_share=True)


def points(name: str) -> Quantity:
    """Between two shares. A percentage would be read as of one of them."""
    return Quantity(f"{name}, points", (-1.0, 1.0), is_in_points=True)


def coefficient(name: str) -> Quantity:
    """Kappa and its like."""
    return Quantity(name, (-1.0, 1.0))


def reach(quantity: Quantity, estimates: Sequence[Estimate], also: Iterable[float] = ()) -> list[float]:
    """The two ends of an axis: round numbers around all values and intervals, and around ``also``."""
    given = [end for one in estimates for end in (one.value, one.low, one.high) if end is not None]
    given += also
    if not given:
        return [0.0, 1.0]
    least, most = min(given), max(given)
    step = round_step((most - least) or abs(most) or 1.0)
    lowest, highest = quantity.bounds
    low = max(math.floor(least / step) * step, lowest)
    high = min(math.ceil(most / step) * step, highest)
    if low == high:
        low, high = max(low - step, lowest), min(high + step, highest)
    return [round(low, 10), round(high, 10)]


def round_step(length: float) -> float:
    """1, 2 or 5 times a power of ten, so that about five of them cover the length (Heckbert 1990)."""
    rough = length / ABOUT_STEPS
    power = 10.0 ** math.floor(math.log10(rough))
    return next(step for step in STEPS if step * power >= rough * (1 - 1e-9)) * power
