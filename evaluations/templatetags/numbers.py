"""How numbers of a report look."""

from collections.abc import Mapping, Sequence
from typing import TypeVar

from django import template

register = template.Library()
Counts = Sequence[Sequence[int]]
Anything = TypeVar("Anything")

SHADES = 8


@register.filter
def percent(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.1%}"


@register.filter
def decimal(value: float | None) -> str:
    """Two places, with a minus sign that is as wide as a digit."""
    return "n/a" if value is None else f"{value:z.2f}".replace("-", "−")


@register.filter
def shade(count: int, largest: int) -> int:
    """How dark a cell of a matrix is, by the largest one: 0 for an empty cell, else 1 to 8."""
    return max(1, round(count / largest * SHADES)) if count else 0


@register.filter
def largest_of(counts: Counts) -> int:
    return max(max(row) for row in counts)


@register.filter
def total_of(counts: Counts) -> int:
    return sum(sum(row) for row in counts)


@register.filter
def with_labels(counts: Sequence[Anything], labels: Sequence[str]) -> list[tuple[str, Anything]]:
    """Pair rows or cells of a matrix with their choices."""
    return list(zip(labels, counts, strict=True))


@register.filter
def thousands(value: int) -> str:
    return f"{value:,}"


@register.filter
def plain(value: float | None) -> str:
    """A number as short as it can be written: 5, 0.25."""
    return "" if value is None else f"{value:.10g}"


@register.filter
def spaced(word: str) -> str:
    """A word of the database as people write it: both_bad is “both bad”."""
    return word.replace("_", " ")


@register.filter
def of(by_name: Mapping[str, Anything], name: str) -> Anything | None:
    """``aspect.judges|of:name``: what belongs to that name."""
    return by_name.get(name)
