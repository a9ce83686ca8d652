"""Win rates as a page lays them out: who beats whom as a matrix, and where a judge errs as sentences."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from django import template

from evaluations.templatetags.intervals import HasInterval
from evaluations.templatetags.report_parts import Rate, mirrored

register = template.Library()


class PairRate(Protocol):
    @property
    def first(self) -> str: ...
    @property
    def second(self) -> str: ...
    @property
    def rate(self) -> Rate: ...


@dataclass(frozen=True)
class Cell:
    """The win rate of a row against a column; ``rate`` is that of the two, for its counts."""

    people: HasInterval
    judge: HasInterval
    corrected: HasInterval
    rate: Rate


@register.filter
def as_matrix(pairs: Sequence[PairRate]) -> list[tuple[str, list[tuple[str, Cell | None]]]]:
    """Each candidate that met another, against each: row, then column; None where they never met."""
    cells: dict[tuple[str, str], Cell] = {}
    for pair in pairs:
        rate = pair.rate
        cells[pair.first, pair.second] = Cell(rate.people, rate.judge, rate.corrected, rate)
        turned = mirrored(rate.people), mirrored(rate.judge), mirrored(rate.corrected)
        cells[pair.second, pair.first] = Cell(*turned, rate)
    names = sorted({name for both in cells for name in both})
    return [(row, [(column, cells.get((row, column))) for column in names]) for row in names]


@dataclass(frozen=True)
class Error:
    """A judge's win rate of a candidate that lies outside the interval that people leave it."""

    candidate: str
    judge: HasInterval
    likely: HasInterval
    is_too_high: bool


@register.filter
def errors(rates: Mapping[str, Rate]) -> list[Error]:
    """Where the judge alone is outside the corrected interval."""
    found = []
    for candidate, rate in rates.items():
        judge, likely = rate.judge, rate.corrected
        if judge.value is not None and likely.ci95 and not likely.ci95[0] <= judge.value <= likely.ci95[1]:
            found.append(Error(candidate, judge, likely, judge.value > likely.ci95[1]))
    return found


@register.filter
def can_err(rates: Mapping[str, Rate]) -> bool:
    """Whether people leave any rate of the judge an interval that it could be outside of."""
    return any(rate.judge.value is not None and rate.corrected.ci95 for rate in rates.values())
