"""The price of a request in whole nano-USD: from token counts after it, bounded by bytes before it.

An unknown price makes an unknown cost: None, never 0.
"""

import json
from collections.abc import Mapping
from typing import Final

from evaluations.domain.judges import RequestShape
from evaluations.domain.texts import Messages
from evaluations.llm.list_prices import FULL_PERCENT, ListPrice, find_list_price
from evaluations.llm.request_extras import SEPARATELY_PRICED_FIELDS
from evaluations.models.judges import Endpoint, Judge, Price

TOKENS_PER_PRICE: Final = 1_000_000  # the unit of a Price
CACHE_WRITE_PERCENT: Final = 125  # of the price, for tokens written to a provider's cache
# A token is at least one byte of text; each message adds a few tokens for its frame.
MESSAGE_OVERHEAD_BOUND: Final = 16
FIRST_UNBILLED_STATUS: Final = 400  # a server that answers with an error sends no bill
MAX_OUTPUT_TOKENS: Final = 10_000_000
PRICE_COLUMNS: Final = ("tokens_in", "tokens_cached", "tokens_out", "batch_percent", "most_tokens_out", "source")


def find_price(endpoint: Endpoint | None, model: str) -> Price | None:
    """The price that was set for this model, else the provider's list price, not stored; None if unknown."""
    if endpoint is None or "\x00" in model:  # PostgreSQL refuses to look for it
        return None
    price = Price.objects.filter(endpoint=endpoint, model=model).first() or make_list_price(endpoint, model)
    if price is not None:
        price.endpoint = endpoint
    return price


def find_judge_price(judge: Judge) -> Price | None:
    return find_price(judge.endpoint, judge.model)


def make_list_price(endpoint: Endpoint, model: str) -> Price | None:
    """The provider's list price as an unsaved row; None if it has none, or none for these settings."""
    line = find_list_price(endpoint.base_url, model)
    if line is None or not set(SEPARATELY_PRICED_FIELDS).isdisjoint(endpoint.extra_body):
        return None
    return Price(
        endpoint=endpoint,
        model=model,
        tokens_in=line.tokens_in,
        tokens_cached=line.tokens_cached,
        tokens_out=line.tokens_out,
        batch_percent=FULL_PERCENT if line.batch_percent is None else line.batch_percent,
        most_tokens_out=line.most_tokens_out,
        source=f"as of {line.read_on} ({line.source})",
    )


def pair_with_list_prices(endpoint: Endpoint) -> list[tuple[Price, Price | None]]:
    """The stored prices by model, each with the list price if that differs."""
    pairs = [(price, make_list_price(endpoint, price.model)) for price in endpoint.prices.order_by("model")]
    return [(price, line if line and not is_same_price(price, line) else None) for price, line in pairs]


def is_same_price(price: Price, other: Price) -> bool:
    return all(getattr(price, name) == getattr(other, name) for name in PRICE_COLUMNS)


def list_price_source(price: Price) -> ListPrice | None:
    """The list's line that this price came from; None for a price that a person set."""
    return find_list_price(price.endpoint.base_url, price.model) if price.source else None


def request_cost(
    price: Price | None,
    tokens_in: int | None,
    tokens_out: int | None,
    tokens_cached: int | None = None,
    tokens_written: int | None = None,
    *,
    batched: bool = False,
    reported: int | None = None,
) -> int | None:
    """The cost of a request in nano-USD, rounded up. Cached tokens of ``tokens_in`` have their own price.

    A cost ``reported`` by the server counts before the price; a reported 0 only if no price is known.
    """
    if reported:
        return reported
    if price is None or tokens_in is None or tokens_out is None:
        return reported
    line = list_price_source(price)
    in_percent, out_percent = line.percents(tokens_in) if line else (FULL_PERCENT, FULL_PERCENT)
    cached = min(tokens_cached or 0, tokens_in)
    written = min(tokens_written or 0, tokens_in - cached)
    surcharge = written * price.tokens_in * ((line.written_percent if line else CACHE_WRITE_PERCENT) - FULL_PERCENT)
    prompt = FULL_PERCENT * ((tokens_in - cached) * price.tokens_in + cached * price.tokens_cached) + surcharge
    whole = prompt * in_percent + FULL_PERCENT * tokens_out * price.tokens_out * out_percent
    return round_up_to_nano_usd(whole, price, batched=batched)


def is_billable(http_status: int | None, *, unsent: bool) -> bool:
    """Whether a request can have cost something: a server took it, and no error came back."""
    return not unsent and (http_status or 0) < FIRST_UNBILLED_STATUS


def max_reply_tokens(judge: Judge, price: Price | None) -> int | None:
    """The most tokens of a reply: the judge's limit, else the model's maximum; None if neither is known.

    A limit that the model refuses is not sent, and bounds nothing.
    """
    if judge.max_tokens is not None and "max_tokens" not in RequestShape.from_json(judge.request_shape).left_out:
        return judge.max_tokens
    return price.most_tokens_out if price else None


def max_request_cost(
    price: Price | None,
    messages: Messages,
    schema: Mapping[str, object] | None,
    most_tokens_out: int | None,
    *,
    batched: bool = False,
) -> int | None:
    """The most that a request can cost: as many tokens in as it has bytes, and ``most_tokens_out`` out.

    None if the price is unknown, or nothing bounds the reply.
    """
    if price is None or most_tokens_out is None:
        return None
    tokens_in, line = max_prompt_tokens(messages, schema), list_price_source(price)
    in_percent, out_percent = line.percents(tokens_in) if line else (FULL_PERCENT, FULL_PERCENT)
    written_percent = line.written_percent if line else FULL_PERCENT
    dearest = max(price.tokens_in * written_percent, price.tokens_cached * FULL_PERCENT)
    whole = tokens_in * dearest * in_percent + FULL_PERCENT * most_tokens_out * price.tokens_out * out_percent
    return round_up_to_nano_usd(whole, price, batched=batched)


def max_prompt_tokens(messages: Messages, schema: Mapping[str, object] | None) -> int:
    texts = sum(len(message["content"].encode()) + MESSAGE_OVERHEAD_BOUND for message in messages)
    return texts + (len(json.dumps(schema, ensure_ascii=False).encode()) if schema else 0)


def round_up_to_nano_usd(whole: int, price: Price, *, batched: bool) -> int:
    """The cost in nano-USD; ``whole`` is its product with two percentages and the unit of the price."""
    percent = price.batch_percent if batched else FULL_PERCENT
    return -(-whole * percent // (TOKENS_PER_PRICE * FULL_PERCENT**3))
