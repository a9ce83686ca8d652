"""What requests cost, in whole nano-USD: known from tokens afterwards, bounded by bytes beforehand.

A price that is not known makes a cost that is not known: None, never 0.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from evaluations.domain import Messages
from evaluations.models import Endpoint, Judge, Price

PER_TOKENS: Final = 1_000_000  # what a Price is for
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
    *,
    batched: bool = False,
) -> int | None:
    """What a request cost, rounded up. Of ``tokens_in`` those that were cached have their own price."""
    if price is None or tokens_in is None or tokens_out is None:
        return None
    cached = min(tokens_cached or 0, tokens_in)
    whole = (tokens_in - cached) * price.tokens_in + cached * price.tokens_cached + tokens_out * price.tokens_out
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
