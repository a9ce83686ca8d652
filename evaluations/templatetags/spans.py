"""Numbers that are known from one end to the other, as people say them."""

from collections.abc import Callable
from typing import Protocol

from django import template

from evaluations.templatetags.durations import duration
from evaluations.templatetags.money import usd

register = template.Library()


class HasEnds(Protocol):
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...


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
