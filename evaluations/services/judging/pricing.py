"""What requests cost, in whole nano-USD: known from tokens afterwards, bounded by bytes beforehand.

A price that is not known makes a cost that is not known: None, never 0.
"""

import json
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from django.db import transaction

from evaluations.domain import NANO, InputRefused, Messages, exact_usd
from evaluations.models import Endpoint, Judge, Price, User
from evaluations.services.recording import record

# No price and no budget is above it; what is has lost its decimal point.
MOST_USD: Final = 1_000_000
PER_TOKENS: Final = 1_000_000  # what a Price is for
WRITTEN_PERCENT: Final = 125  # of the price: what tokens cost that are written to a provider's cache
# A token is at least one byte of its text; each message adds a few that stand for its frame.
TOKENS_AROUND_A_MESSAGE: Final = 16


def price_of(endpoint: Endpoint | None, model: str) -> Price | None:
    """What this model costs there; None where nobody said, and for a judge without an endpoint."""
    return Price.objects.filter(endpoint=endpoint, model=model).first() if endpoint else None


def price_for(judge: Judge) -> Price | None:
    return price_of(judge.endpoint, judge.model)


def cost_of(
    price: Price | None,
    tokens_in: int | None,
    tokens_out: int | None,
    tokens_cached: int | None = None,
    tokens_written: int | None = None,
    *,
    batched: bool = False,
    told: int | None = None,
) -> int | None:
    """What a request cost in nano-USD, rounded up. Of ``tokens_in`` those that were cached have their own price.

    What the server told that it charged counts before the price; told as nothing, only where no price is known.
    """
    if told:
        return told
    if price is None or tokens_in is None or tokens_out is None:
        return told
    cached = min(tokens_cached or 0, tokens_in)
    written = min(tokens_written or 0, tokens_in - cached)
    whole = (tokens_in - cached) * price.tokens_in + cached * price.tokens_cached + tokens_out * price.tokens_out
    whole += written * price.tokens_in * (WRITTEN_PERCENT - 100) // 100
    percent = price.batch_percent if batched else 100
    return rounded_up(whole * percent, PER_TOKENS * 100)


def worst_case(
    price: Price | None,
    messages: Messages,
    schema: Mapping[str, Any] | None,
    max_tokens: int | None,
    *,
    batched: bool = False,
) -> int | None:
    """The most that a request can cost: as many tokens in as it has bytes, and as many out as are allowed.

    None where the price is not known, or nothing bounds the answer.
    """
    if price is None or max_tokens is None:
        return None
    dearest = max(price.tokens_in, price.tokens_cached)
    percent = price.batch_percent if batched else 100
    whole = tokens_at_most(messages, schema) * dearest + max_tokens * price.tokens_out
    return rounded_up(whole * percent, PER_TOKENS * 100)


def tokens_at_most(messages: Messages, schema: Mapping[str, Any] | None) -> int:
    texts = sum(len(message["content"].encode()) + TOKENS_AROUND_A_MESSAGE for message in messages)
    return texts + (len(json.dumps(schema, ensure_ascii=False).encode()) if schema else 0)


def rounded_up(number: int, divisor: int) -> int:
    return -(-number // divisor)


# ---- USD as people write it ------------------------------------------------------------------


def nano_usd(given: str | Decimal, what: str) -> int:
    """Nano-USD from an amount in USD as a person writes it; ``what`` names it in the refusal."""
    try:
        nano = Decimal(given) * NANO
    except InvalidOperation:
        raise InputRefused(f"{what}: an amount in USD, such as 0.15.") from None
    if not (nano.is_finite() and 0 <= nano <= MOST_USD * NANO):
        raise InputRefused(f"{what}: from 0 to {MOST_USD} USD.")
    if nano != int(nano):
        raise InputRefused(f"{what}: at most nine places after the point.")
    return int(nano)


# ---- setting ---------------------------------------------------------------------------------


@transaction.atomic
def set_price(
    endpoint: Endpoint,
    *,
    model: str,
    tokens_in: str | Decimal,
    tokens_out: str | Decimal,
    tokens_cached: str | Decimal | None = None,
    batch_percent: int = 50,
    user: User | None,
) -> Price:
    """What a model costs from now on, in USD for a million tokens; cached ones cost as others unless said."""
    if not model.strip():
        raise InputRefused("A price is for one model: name it as the endpoint does.")
    if not 0 <= batch_percent <= 100:
        raise InputRefused("The Batch API's share of the price: a whole number of percent from 0 to 100.")
    columns = {
        "tokens_in": nano_usd(tokens_in, "Price of tokens in"),
        "tokens_cached": nano_usd(tokens_in if tokens_cached is None else tokens_cached, "Price of cached tokens"),
        "tokens_out": nano_usd(tokens_out, "Price of tokens out"),
        "batch_percent": batch_percent,
    }
    known = Price.objects.select_for_update().filter(endpoint=endpoint, model=model.strip()).first()
    before = told(known) if known else {}
    price, _ = Price.objects.update_or_create(endpoint=endpoint, model=model.strip(), defaults=columns)
    if told(price) != before:
        record("set price", price, user=user, evaluation=None, before=before, after=told(price))
    return price


def told(price: Price) -> dict[str, Any]:
    return {
        "endpoint": price.endpoint.name,
        "model": price.model,
        "in": exact_usd(price.tokens_in),
        "cached": exact_usd(price.tokens_cached),
        "out": exact_usd(price.tokens_out),
        "batch_percent": price.batch_percent,
    }
