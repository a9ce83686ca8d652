"""Intervals inside tables: a row of a forest plot in a cell, without a script. All cells of a column share a scale."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, Protocol

from django import template

from evaluations.domain.json_values import JsonDict
from evaluations.templatetags.numbers import decimal, percent

register = template.Library()

WIDTH: Final = 160
MARGIN: Final = 8  # for half a mark at either end
LANE: Final = 14
AXIS_HEIGHT: Final = 14
TICKS: Final = 3
ANCHORS: Final = ("start", "middle", "end")


class HasInterval(Protocol):
    @property
    def value(self) -> float | None: ...
    @property
    def ci95(self) -> tuple[float, float] | None: ...


@dataclass(frozen=True)
class Scale:
    """The range of a column, and its neutral value if there is one."""

    low: float
    high: float
    as_percent: bool
    neutral: float | None

    def at(self, value: float) -> float:
        """The position of a value in pixels; values beyond the scale are at its end."""
        share = min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)
        return round(MARGIN + share * (WIDTH - 2 * MARGIN), 1)

    def format(self, value: float) -> str:
        return percent(value) if self.as_percent else decimal(value)


@dataclass(frozen=True)
class Mark:
    """One number in its lane, as paths. It is hollow, and has no whisker, where it has no interval."""

    name: str
    point: str
    whisker: str | None


def circle(x: float, y: float) -> str:
    return f"M{x - 3.5} {y}a3.5 3.5 0 1 0 7 0a3.5 3.5 0 1 0 -7 0z"


def diamond(x: float, y: float) -> str:
    return f"M{x} {y - 4.5}l4 4.5l-4 4.5l-4 -4.5z"


def square(x: float, y: float) -> str:
    return f"M{x - 3} {y - 3}h6v6h-6z"


# The shapes that plots have: people are always the diamond.
SHAPES: Final[Mapping[str, Callable[[float, float], str]]] = {
    "people": diamond,
    "judge": circle,
    "ceiling": square,
    "corrected": square,
}


@register.simple_tag
def scale(low: float, high: float, as_percent: bool = True, neutral: float | None = None) -> Scale:
    """``{% scale 0 1 as agreement %}``: for all cells of a column and for its head."""
    if not low < high:
        raise ValueError(f"a scale from {low} to {high} has no length")
    return Scale(low, high, as_percent, neutral)


@register.inclusion_tag("_interval.html")
def interval(scale: Scale, **numbers: HasInterval | None) -> JsonDict:
    """``{% interval agreement judge=… people=… %}``: numbers with their intervals, one lane each.

    The names are those of SHAPES. A number without a value leaves its lane empty.
    """
    lanes = [(name, number) for name, number in numbers.items() if number is not None]
    return {
        "marks": [
            mark(scale, name, number.value, number.ci95, LANE * (index + 0.5))
            for index, (name, number) in enumerate(lanes)
            if number.value is not None
        ],
        "said": "; ".join(f"{name} {format_interval(scale, number)}" for name, number in lanes) or "n/a",
        "width": WIDTH,
        "height": LANE * max(len(lanes), 1),
        "frame": [scale.at(scale.low), scale.at(scale.high)],
        "neutral": None if scale.neutral is None else scale.at(scale.neutral),
    }


@register.inclusion_tag("_interval_axis.html")
def interval_axis(scale: Scale) -> dict[str, object]:
    """The head of a column of intervals: both ends of its scale, and the middle."""
    step = (scale.high - scale.low) / (TICKS - 1)
    values = [scale.low + step * number for number in range(TICKS)]
    labels = [f"{value:.0%}" if scale.as_percent else decimal(value) for value in values]
    positions = [scale.at(value) for value in values]
    return {"ticks": list(zip(positions, labels, ANCHORS, strict=True)), "width": WIDTH, "height": AXIS_HEIGHT}


def mark(scale: Scale, name: str, value: float, ends: tuple[float, float] | None, y: float) -> Mark:
    point = SHAPES[name](scale.at(value), y)
    return Mark(name, point, None if ends is None else whisker(scale, *ends, y))


def whisker(scale: Scale, low: float, high: float, y: float) -> str:
    """A line from end to end, with an arrow where the end is beyond the scale."""
    left, right = scale.at(low), scale.at(high)
    line = f"M{left} {y}H{right}"
    if low < scale.low:
        line += f"M{left + 4} {y - 3}L{left} {y}L{left + 4} {y + 3}"
    if high > scale.high:
        line += f"M{right - 4} {y - 3}L{right} {y}L{right - 4} {y + 3}"
    return line


def format_interval(scale: Scale, number: HasInterval) -> str:
    if number.value is None:
        return "n/a"
    text = scale.format(number.value)
    return f"{text}, {scale.format(number.ci95[0])} to {scale.format(number.ci95[1])}" if number.ci95 else text
