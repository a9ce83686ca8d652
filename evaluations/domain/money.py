"""Exact amounts of money."""

from typing import Final

NANO_PER_USD: Final = 10**9  # nano-USD in a USD: amounts are whole numbers of them


def format_exact_usd(nano: int) -> str:
    """The amount in USD, every figure of it and no zeros after them."""
    whole, rest = divmod(abs(nano), NANO_PER_USD)
    places = f"{rest:09}".rstrip("0").ljust(2, "0")
    return f"{'-' if nano < 0 else ''}{whole}.{places}"
