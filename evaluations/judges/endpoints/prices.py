"""The price of a request in whole nano-USD: known from tokens afterwards, bounded by bytes beforehand.

An unknown price makes an unknown cost: None, never 0."""

import json
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Final

from django.db import transaction

from evaluations.audit.events import record_event
from evaluations.domain.errors import InputRefused
from evaluations.domain.judges import ACTIVE_RUN_STATES, RequestShape, RunState
from evaluations.domain.money import NANO_PER_USD, format_exact_usd
from evaluations.domain.texts import Messages
from evaluations.llm.list_prices import FULL_PERCENT, ListPrice, find_list_price
from evaluations.llm.request_extras import SEPARATELY_PRICED_FIELDS
from evaluations.models.judges import Endpoint, Judge, Price
from evaluations.models.runs import Run
from evaluations.models.users import User

# No price and no budget is above it; what is has lost its decimal point.
MAX_PRICE_USD: Final = 1_000_000
TOKENS_PER_PRICE: Final = 1_000_000  # what a Price is for
CACHE_WRITE_PERCENT: Final = 125  # of the price: what tokens cost that are written to a provider's cache
# A token is at least one byte of its text; each message adds a few that stand for its frame.
MESSAGE_OVERHEAD_BOUND: Final = 16
MAX_OUTPUT_TOKENS: Final = 10_000_000
PRICE_COLUMNS: Final = ("tokens_in", "tokens_cached", "tokens_out", "batch_percent", "most_tokens_out", "source")


def find_price(endpoint: Endpoint | None, model: str) -> Price | None:
    """What this model costs there: as it was set, else by its provider's price list, not stored. None where unknown."""
    if endpoint is None:
        return None
    price = Price.objects.filter(endpoint=endpoint, model=model).first() or unsaved_list_price(endpoint, model)
    if price is not None:
        price.endpoint = endpoint
    return price


def find_judge_price(judge: Judge) -> Price | None:
    return find_price(judge.endpoint, judge.model)


def unsaved_list_price(endpoint: Endpoint, model: str) -> Price | None:
    """The provider's list price as a row that is not stored; None where it has none, or none for these settings."""
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
    """The prices that are set there by model, each with the list price where that says something else."""
    pairs = [(price, unsaved_list_price(endpoint, price.model)) for price in endpoint.prices.order_by("model")]
    return [(price, line if line and not is_same_price(price, line) else None) for price, line in pairs]


def is_same_price(one: Price, other: Price) -> bool:
    return all(getattr(one, name) == getattr(other, name) for name in PRICE_COLUMNS)


def list_price_source(price: Price) -> ListPrice | None:
    """The line of the list that this price came from; None for a price that a person set."""
    return find_list_price(price.endpoint.base_url, price.model) if price.source else None


def request_cost(
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
    line = list_price_source(price)
    in_percent, out_percent = line.percents(tokens_in) if line else (FULL_PERCENT, FULL_PERCENT)
    cached = min(tokens_cached or 0, tokens_in)
    written = min(tokens_written or 0, tokens_in - cached)
    surcharge = written * price.tokens_in * ((line.written_percent if line else CACHE_WRITE_PERCENT) - FULL_PERCENT)
    prompt = FULL_PERCENT * ((tokens_in - cached) * price.tokens_in + cached * price.tokens_cached) + surcharge
    whole = prompt * in_percent + FULL_PERCENT * tokens_out * price.tokens_out * out_percent
    percent = price.batch_percent if batched else FULL_PERCENT
    return divide_rounding_up(whole * percent, TOKENS_PER_PRICE * FULL_PERCENT**3)


def max_reply_tokens(judge: Judge, price: Price | None) -> int | None:
    """The most tokens of a reply: the judge's limit, else the model's maximum; None where neither is known.

    A limit that the model was found to refuse is not sent, and bounds nothing.
    """
    if judge.max_tokens is not None and "max_tokens" not in RequestShape.from_json(judge.sent_as).left_out:
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

    None where the price is not known, or nothing bounds the reply.
    """
    if price is None or most_tokens_out is None:
        return None
    tokens_in, line = max_prompt_tokens(messages, schema), list_price_source(price)
    in_percent, out_percent = line.percents(tokens_in) if line else (FULL_PERCENT, FULL_PERCENT)
    dearest = max(
        price.tokens_in * (line.written_percent if line else FULL_PERCENT), price.tokens_cached * FULL_PERCENT
    )
    whole = tokens_in * dearest * in_percent + FULL_PERCENT * most_tokens_out * price.tokens_out * out_percent
    percent = price.batch_percent if batched else FULL_PERCENT
    return divide_rounding_up(whole * percent, TOKENS_PER_PRICE * FULL_PERCENT**3)


def max_prompt_tokens(messages: Messages, schema: Mapping[str, object] | None) -> int:
    texts = sum(len(message["content"].encode()) + MESSAGE_OVERHEAD_BOUND for message in messages)
    return texts + (len(json.dumps(schema, ensure_ascii=False).encode()) if schema else 0)


def divide_rounding_up(number: int, divisor: int) -> int:
    return -(-number // divisor)


# ---- USD as people write it ------------------------------------------------------------------


def parse_budget_usd(given: str | Decimal, what: str) -> int:
    """Nano-USD from an amount in USD as a person writes it; ``what`` names it in the refusal."""
    try:
        nano = Decimal(given) * NANO_PER_USD
    except InvalidOperation:
        raise InputRefused(f"{what}: an amount in USD, such as 0.15.") from None
    if not (nano.is_finite() and 0 <= nano <= MAX_PRICE_USD * NANO_PER_USD):
        raise InputRefused(f"{what}: from 0 to {MAX_PRICE_USD} USD.")
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
    most_tokens_out: int | None = None,
    user: User | None,
) -> Price:
    """Set what a model costs from now on, in USD for a million tokens; cached tokens cost the same unless given.

    ``most_tokens_out``: what one reply can have, reasoning included; None where that is not known.
    """
    if not model.strip():
        raise InputRefused("A price is for one model: name it as the endpoint does.")
    if not 0 <= batch_percent <= 100:
        raise InputRefused("The Batch API's share of the price: a whole number of percent from 0 to 100.")
    if most_tokens_out is not None and not 1 <= most_tokens_out <= MAX_OUTPUT_TOKENS:
        raise InputRefused(f"Longest reply: a whole number of tokens from 1 to {MAX_OUTPUT_TOKENS:,}.")
    columns = {
        "tokens_in": parse_budget_usd(tokens_in, "Price of tokens in"),
        "tokens_cached": parse_budget_usd(
            tokens_in if tokens_cached is None else tokens_cached, "Price of cached tokens"
        ),
        "tokens_out": parse_budget_usd(tokens_out, "Price of tokens out"),
        "batch_percent": batch_percent,
        "most_tokens_out": most_tokens_out,
        "source": "",
    }
    return save_price(endpoint, model.strip(), columns, user)


@transaction.atomic
def use_list_price(endpoint: Endpoint, *, model: str, user: User | None) -> Price:
    """Replace the price by the provider's list price, for requests from now on."""
    price = unsaved_list_price(endpoint, model.strip())
    if price is None:
        raise InputRefused(
            f"There is no list price for “{model.strip()}” at {endpoint.base_url}: set its price from the provider's "
            "price list."
        )
    return save_price(endpoint, price.model, {name: getattr(price, name) for name in PRICE_COLUMNS}, user)


@transaction.atomic
def keep_list_price(endpoint: Endpoint | None, model: str, *, user: User | None) -> None:
    """Store the list price where no price is set, so that what requests cost stays the same in later versions."""
    price = unsaved_list_price(endpoint, model) if endpoint else None
    if price is None or Price.objects.filter(endpoint=endpoint, model=model).exists():
        return
    columns = {name: getattr(price, name) for name in PRICE_COLUMNS}
    kept, is_new = Price.objects.get_or_create(endpoint=endpoint, model=model, defaults=columns)
    if is_new:
        record_event("set price", kept, user=user, evaluation=None, after=price_event_fields(kept))


def save_price(endpoint: Endpoint, model: str, columns: Mapping[str, object], user: User | None) -> Price:
    if columns["most_tokens_out"] is None:
        refuse_unbounded_budget(endpoint, model)
    known = Price.objects.select_for_update().filter(endpoint=endpoint, model=model).first()
    before = price_event_fields(known) if known else {}
    price, _ = Price.objects.update_or_create(endpoint=endpoint, model=model, defaults=columns)
    if price_event_fields(price) != before:
        record_event("set price", price, user=user, evaluation=None, before=before, after=price_event_fields(price))
    return price


def refuse_unbounded_budget(endpoint: Endpoint, model: str) -> None:
    """Refuse a change that leaves a run's budget without a bound on reply length."""
    runs = Run.objects.filter(judge__endpoint=endpoint, judge__model=model, budget__isnull=False)
    open_runs = runs.filter(state__in=(*ACTIVE_RUN_STATES, RunState.STOPPED)).select_related("judge").order_by("pk")
    resting = next((run for run in open_runs if max_reply_tokens(run.judge, None) is None), None)
    if resting is not None:
        raise InputRefused(
            f"Run {resting.pk} has a budget that needs the longest reply of “{model}”: enter it, or take the run's "
            "budget away first."
        )


def price_event_fields(price: Price) -> dict[str, object]:
    said = {
        "endpoint": price.endpoint.name,
        "model": price.model,
        "in": format_exact_usd(price.tokens_in),
        "cached": format_exact_usd(price.tokens_cached),
        "out": format_exact_usd(price.tokens_out),
        "batch_percent": price.batch_percent,
    }
    later = {"most_tokens_out": price.most_tokens_out, "source": price.source}
    return said | {name: value for name, value in later.items() if value}
