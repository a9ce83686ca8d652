"""Win rates as a page lays them out: who beats whom as a matrix, and where a judge errs as sentences."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from django import template

from evaluations.templatetags.intervals import HasInterval
from evaluations.templatetags.report_parts import Rate, mirrored

register = template.Library()

MAX_MATRIX_CANDIDATES = 60


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
def as_matrix(pairs: Sequence[PairRate]) -> list[tuple[str, list[tuple[str, Cell | None]]]] | None:
    """The win rate of each compared candidate (row) against each other (column), None for pairs never compared.

    None if there are more candidates than a page can show.
    """
    if len({name for pair in pairs for name in (pair.first, pair.second)}) > MAX_MATRIX_CANDIDATES:
        return None
    cells: dict[tuple[str, str], Cell] = {}
    for pair in pairs:
        rate = pair.rate
        cells[pair.first, pair.second] = Cell(rate.people, rate.judge, rate.corrected, rate)
        mirrored_rates = mirrored(rate.people), mirrored(rate.judge), mirrored(rate.corrected)
        cells[pair.second, pair.first] = Cell(*mirrored_rates, rate)
    names = sorted({name for pair_of_names in cells for name in pair_of_names})
    return [(row, [(column, cells.get((row, column))) for column in names]) for row in names]


@dataclass(frozen=True)
class Error:
    """A judge's win rate of a candidate that is shown to differ from that of people."""

    candidate: str
    judge: HasInterval
    likely: HasInterval
    is_too_high: bool


@register.filter
def errors(rates: Mapping[str, Rate]) -> list[Error]:
    """Where a difference of judge and people is shown over all candidates, judges and aspects."""
    return [
        Error(candidate, rate.judge, rate.corrected, rate.claim == "above")
        for candidate, rate in rates.items()
        if rate.claim != "not shown"
    ]


@register.filter
def can_err(rates: Mapping[str, Rate]) -> bool:
    """Whether judge and people have a rate of any candidate that could differ."""
    return any(rate.judge.value is not None and rate.corrected.ci95 for rate in rates.values())
