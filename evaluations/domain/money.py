"""Exact amounts of money."""

from decimal import Decimal, InvalidOperation
from typing import Final

from evaluations.domain.errors import InputRefused

NANO_PER_USD: Final = 10**9  # nano-USD in a USD: amounts are whole numbers of them
# Prices and budgets above it have probably lost their decimal point.
MAX_PRICE_USD: Final = 1_000_000


def format_exact_usd(nano: int) -> str:
    """The exact amount in USD, with two decimals or as many as it needs."""
    whole, rest = divmod(abs(nano), NANO_PER_USD)
    places = f"{rest:09}".rstrip("0").ljust(2, "0")
    return f"{'-' if nano < 0 else ''}{whole}.{places}"


def exact_decimal(number: float) -> Decimal:
    """The number rounded to nine decimals."""
    return Decimal(str(number)).quantize(Decimal("0.000000001"))


def parse_budget_usd(amount: str | Decimal, what: str) -> int:
    """Nano-USD from an amount in USD as text; ``what`` names it in the refusal."""
    try:
        nano = Decimal(amount) * NANO_PER_USD
    except InvalidOperation:
        raise InputRefused(f"{what}: an amount in USD, such as 0.15.") from None
    if not (nano.is_finite() and 0 <= nano <= MAX_PRICE_USD * NANO_PER_USD):
        raise InputRefused(f"{what}: from 0 to {MAX_PRICE_USD} USD.")
    if nano != int(nano):
        raise InputRefused(f"{what}: at most nine places after the point.")
    return int(nano)
