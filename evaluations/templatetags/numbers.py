"""How numbers look, also amounts of money, lengths of time and ranges."""

from collections.abc import Callable, Mapping, Sequence
from math import floor, log10
from typing import Final, Protocol, TypeVar

from django import template

from evaluations.domain.money import NANO_PER_USD, format_exact_usd
from evaluations.stats.estimates import Estimate

register = template.Library()
Counts = Sequence[Sequence[int]]
Anything = TypeVar("Anything")

SHADES: Final = 8
DIME: Final = NANO_PER_USD // 10
UNITS: Final = ((86400, "day"), (3600, "hour"), (60, "minute"), (1, "second"))


class HasEnds(Protocol):
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...


@register.filter
def percent(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.1%}"


@register.filter
def whole_percent(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.0%}"


@register.filter
def share_with_ci(share: Estimate) -> str:
    """``57% (44–68)``: a share with its 95% interval, where it has one."""
    if share.value is None or share.ci95 is None:
        return whole_percent(share.value)
    return f"{share.value:.0%} ({share.ci95[0] * 100:.0f}–{share.ci95[1] * 100:.0f})"


@register.filter
def share_with_named_ci(share: Estimate) -> str:
    """``57% (95% CI 44–68)``: outside of tables, whose notes name the interval."""
    return share_with_ci(share).replace("(", "(95% CI ")


@register.filter
def call_rate(per_minute: float) -> str:
    """``4.2 calls/s``; below one a second ``12 calls/min``."""
    return f"{per_minute / 60:.1f} calls/s" if per_minute >= 60 else f"{per_minute:.0f} calls/min"


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


@register.filter
def usd(nano: int | None) -> str:
    """``$12.30``; below ten cents the first two figures that say something. What is not known is unknown."""
    if nano is None:
        return "unknown"
    if nano == 0 or abs(nano) >= DIME:
        return f"${nano / NANO_PER_USD:,.2f}"
    places = 1 - floor(log10(abs(nano) / NANO_PER_USD))
    return f"${nano / NANO_PER_USD:.{places}f}"


@register.filter
def in_usd(nano: int | None) -> str:
    """The exact amount for a field: every figure of it, no sign of dollars; empty where there is none."""
    return "" if nano is None else format_exact_usd(nano)


@register.filter
def chance(probability: float | None) -> str:
    """A probability as people read it: ``25.0%``; a dash if there is none."""
    if probability is None:
        return "–"
    return f"{probability:.3g}" if probability < 0.001 else f"{probability:.1%}"


@register.filter
def duration(seconds: float) -> str:
    """The one or two largest units: ``2 hours 5 minutes``, ``40 seconds``."""
    left = max(round(seconds), 1)
    parts = []
    for size, name in UNITS:
        count, left = divmod(left, size)
        if count:
            parts.append(f"{count} {name}{'s' if count > 1 else ''}")
        elif parts:
            break
    return " ".join(parts[:2])


@register.filter
def span(ends: HasEnds) -> str:
    """``1,200 to 3,400``: two figures each, since no estimate knows more."""
    return between(ends, lambda number: f"{rough(number):,}")


@register.filter
def usd_span(ends: HasEnds) -> str:
    return between(ends, lambda nano: usd(rough(nano)))


@register.filter
def minutes_span(ends: HasEnds) -> str:
    return between(ends, lambda minutes: duration(rough(minutes * 60)))


def between(ends: HasEnds, spell: Callable[[float], str]) -> str:
    """Both ends in words, or the one that they share."""
    low, high = spell(ends.low), spell(ends.high)
    return low if low == high else f"{low} to {high}"


def rough(number: float) -> int:
    return round(float(f"{number:.2g}"))
