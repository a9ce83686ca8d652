"""The price of a model at an endpoint, as people set it or as the provider lists it."""

from dataclasses import dataclass
from decimal import Decimal

from django.db import transaction

from evaluations.audit.events import record_event
from evaluations.domain.errors import InputRefused
from evaluations.domain.json_values import JsonDict, JsonMapping
from evaluations.domain.judges import ACTIVE_RUN_STATES, RunState
from evaluations.domain.money import format_exact_usd, parse_budget_usd
from evaluations.judges.endpoints.prices import MAX_OUTPUT_TOKENS, PRICE_COLUMNS, make_list_price, max_reply_tokens
from evaluations.models.judges import Endpoint, Price
from evaluations.models.runs import Run
from evaluations.models.users import User


@dataclass(frozen=True)
class PriceSettings:
    """What a model costs, in USD for a million tokens; cached tokens cost the same by default.

    ``most_tokens_out``: the longest reply, reasoning included; None if unknown.
    """

    model: str
    tokens_in: str | Decimal
    tokens_out: str | Decimal
    tokens_cached: str | Decimal | None = None
    batch_percent: int = 50
    most_tokens_out: int | None = None


@transaction.atomic
def set_price(endpoint: Endpoint, price: PriceSettings, *, user: User | None) -> Price:
    """Set what a model costs from now on."""
    longest, cached = price.most_tokens_out, price.tokens_in if price.tokens_cached is None else price.tokens_cached
    if not price.model.strip():
        raise InputRefused("Enter the model ID as at the endpoint.", field="model")
    if not 0 <= price.batch_percent <= 100:
        raise InputRefused(
            "The Batch API's share of the price: a whole number of percent from 0 to 100.", field="batch_percent"
        )
    if longest is not None and not 1 <= longest <= MAX_OUTPUT_TOKENS:
        raise InputRefused(
            f"Longest reply: a whole number of tokens from 1 to {MAX_OUTPUT_TOKENS:,}.", field="most_tokens_out"
        )
    columns = {
        "tokens_in": parse_budget_usd(price.tokens_in, "Price of tokens in"),
        "tokens_cached": parse_budget_usd(cached, "Price of cached tokens"),
        "tokens_out": parse_budget_usd(price.tokens_out, "Price of tokens out"),
        "batch_percent": price.batch_percent,
        "most_tokens_out": longest,
        "source": "",
    }
    return save_price(endpoint, price.model.strip(), columns, user)


@transaction.atomic
def use_list_price(endpoint: Endpoint, *, model: str, user: User | None) -> Price:
    """Replace the price by the provider's list price, for requests from now on."""
    price = make_list_price(endpoint, model.strip())
    if price is None:
        raise InputRefused(
            f"There is no list price for “{model.strip()}” at {endpoint.base_url}: set its price from the provider's "
            "price list."
        )
    return save_price(endpoint, price.model, {name: getattr(price, name) for name in PRICE_COLUMNS}, user)


@transaction.atomic
def keep_list_price(endpoint: Endpoint | None, model: str, *, user: User | None) -> None:
    """Store the list price if no price is set, so that later versions of the list change no costs."""
    price = make_list_price(endpoint, model) if endpoint else None
    if price is None or Price.objects.filter(endpoint=endpoint, model=model).exists():
        return
    columns = {name: getattr(price, name) for name in PRICE_COLUMNS}
    kept, is_new = Price.objects.get_or_create(endpoint=endpoint, model=model, defaults=columns)
    if is_new:
        record_event("set price", kept, user=user, evaluation=None, after=price_event_fields(kept))


def save_price(endpoint: Endpoint, model: str, columns: JsonMapping, user: User | None) -> Price:
    if columns["most_tokens_out"] is None:
        refuse_unbounded_budget(endpoint, model)
    stored = Price.objects.select_for_update().filter(endpoint=endpoint, model=model).first()
    before = price_event_fields(stored) if stored else {}
    price, _ = Price.objects.update_or_create(endpoint=endpoint, model=model, defaults=columns)
    if price_event_fields(price) != before:
        record_event("set price", price, user=user, evaluation=None, before=before, after=price_event_fields(price))
    return price


def refuse_unbounded_budget(endpoint: Endpoint, model: str) -> None:
    """Refuse a change that leaves a run's budget without a bound on reply length."""
    runs = Run.objects.filter(judge__endpoint=endpoint, judge__model=model, budget__isnull=False)
    open_runs = runs.filter(state__in=(*ACTIVE_RUN_STATES, RunState.STOPPED)).select_related("judge").order_by("pk")
    unbounded = next((run for run in open_runs if max_reply_tokens(run.judge, None) is None), None)
    if unbounded is not None:
        raise InputRefused(
            f"Run {unbounded.pk} has a budget that needs the longest reply of “{model}”: enter it, or take the run's "
            "budget away first."
        )


def price_event_fields(price: Price) -> JsonDict:
    fields = {
        "endpoint": price.endpoint.name,
        "model": price.model,
        "in": format_exact_usd(price.tokens_in),
        "cached": format_exact_usd(price.tokens_cached),
        "out": format_exact_usd(price.tokens_out),
        "batch_percent": price.batch_percent,
    }
    optional = {"most_tokens_out": price.most_tokens_out, "source": price.source}
    return fields | {name: value for name, value in optional.items() if value}
