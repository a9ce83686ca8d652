"""The values that a pointwise aspect may be given."""

import re
from math import inf, isclose
from typing import Final

from evaluations.domain import AspectSpec

# A scale with more values than this is asked for as a number between its ends.
MOST_VALUES: Final = 101
# How far a number may lie from a step: 0.1 + 0.2 is a value of a scale in tenths.
NEAR: Final = 1e-9
# A number in the name of a band, such as both of "0.1 - 0.3".
IN_BAND: Final = re.compile(r"(?<![\d.])-?\d+(?:\.\d+)?")


def ends_of(aspect: AspectSpec) -> tuple[float, float]:
    """The lowest and the highest value; both are there for every aspect of a rubric that was checked."""
    assert aspect.scale_min is not None
    assert aspect.scale_max is not None
    return aspect.scale_min, aspect.scale_max


def values_of(aspect: AspectSpec) -> tuple[float, ...]:
    """Every value of a scale in steps, lowest first; empty where any number between the ends may be given."""
    low, high = ends_of(aspect)
    if not aspect.scale_step:
        return ()
    count = round((high - low) / aspect.scale_step) + 1
    if count > MOST_VALUES:
        return ()
    return tuple(round(float(low + place * aspect.scale_step), 10) for place in range(count))


def placed(aspect: AspectSpec, number: float) -> float | None:
    """The number as a value of the scale; None outside its ends, off its steps, and for what is no number."""
    low, high = ends_of(aspect)
    if not low <= number <= high:  # NaN is never between
        return None
    if not aspect.scale_step:
        return float(number)
    steps = (number - low) / aspect.scale_step
    if not isclose(steps, round(steps), abs_tol=NEAR):
        return None
    return round(float(low + round(steps) * aspect.scale_step), 10)


def spelled(value: float) -> str:
    """A value as prompts and replies write it: 4, not 4.0."""
    return str(int(value)) if value == int(value) else repr(value)


def range_shown(aspect: AspectSpec) -> str:
    low, high = map(spelled, ends_of(aspect))
    in_steps = f" in steps of {spelled(aspect.scale_step)}" if aspect.scale_step else ""
    return f"a number from {low} to {high}{in_steps}"


def numbers_in(band: str) -> list[float]:
    return [float(number) for number in IN_BAND.findall(band)]


def meanings_of(aspect: AspectSpec) -> list[tuple[str, str]]:
    """What values and bands of the scale mean, lowest first: a database need not keep the order they came in."""
    return sorted(aspect.scale_labels.items(), key=lambda one: (next(iter(numbers_in(one[0])), inf), one[0]))
