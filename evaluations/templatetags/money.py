"""Money as people read it: stored as whole nano-USD, shown as dollars."""

from math import floor, log10
from typing import Final

from django import template

from evaluations.domain.money import NANO_PER_USD, format_exact_usd

register = template.Library()

DIME: Final = NANO_PER_USD // 10


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
