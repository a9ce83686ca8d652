"""What tests of an endpoint spend: it counts in the endpoint's day and totals, though no evaluation is charged.

The most that a test can cost counts as spent before anything is sent. A test that is killed has then been charged.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field

from django.db import transaction
from django.db.models import F

from evaluations.domain.errors import InputRefused
from evaluations.domain.money import format_exact_usd
from evaluations.judges.endpoints.grants import find_account_of_today
from evaluations.judges.endpoints.prices import find_price, is_billable, max_request_cost, request_cost
from evaluations.judges.endpoints.sql import SpendingTotals, book_on_day, reserve_on_day, utc_date
from evaluations.llm.exchange import Answer, LLMError, Request, Retry, SendRequest, Usage
from evaluations.models.clock import read_clock
from evaluations.models.endpoint_grants import EndpointAccount, EndpointSpending
from evaluations.models.judges import Endpoint, Price


@dataclass
class CheckMeter:
    """Counts the requests of one test."""

    price: Price | None
    totals: SpendingTotals = field(default_factory=SpendingTotals)

    def count_requests(self, send: SendRequest) -> SendRequest:
        async def send_counted(request: Request) -> Answer:
            try:
                answer = await send(request)
            except LLMError as error:
                unsent = isinstance(error, Retry) and error.unreachable
                self.add(request, error.usage or Usage(), error.http_status, unsent=unsent)
                raise
            self.add(request, answer.usage, answer.http_status)
            return answer

        return send_counted

    def add(self, request: Request, usage: Usage, http_status: int | None, *, unsent: bool = False) -> None:
        counts = (usage.tokens_in, usage.tokens_out, usage.tokens_cached, usage.tokens_written)
        cost = request_cost(self.price, *counts, reported=usage.cost)
        is_unknown = cost is None and is_billable(http_status, unsent=unsent)
        self.totals.add(usage.tokens_in, usage.tokens_out, cost, self.max_cost(request) if is_unknown else None)

    def max_cost(self, request: Request) -> int:
        return max_request_cost(self.price, request.messages, request.schema, request.max_tokens) or 0


@contextmanager
def charge_check(endpoint: Endpoint | None, model: str, requests: Sequence[Request]) -> Iterator[CheckMeter]:
    """Charge the endpoint for these requests; InputRefused if its daily budget does not cover them.

    A server that is no endpoint has no account.
    """
    meter = CheckMeter(find_price(endpoint, model))
    if endpoint is None:
        yield meter
        return
    if meter.price is None and endpoint.daily_budget is not None:
        raise InputRefused(
            f"No price is known for “{model}” at “{endpoint}”, so its daily budget cannot be guaranteed. Set the price."
        )
    most = sum(meter.max_cost(request) for request in requests)
    row = charge_in_advance(endpoint, most)
    yield meter
    correct_charge(row, most, meter.totals)


@transaction.atomic
def charge_in_advance(endpoint: Endpoint, most: int) -> EndpointSpending:
    """Count the most that a test can cost as spent. Returns the endpoint's totals of today's tests."""
    day = utc_date(read_clock())
    EndpointAccount.objects.get_or_create(endpoint=endpoint)
    if not reserve_on_day(endpoint.pk, most, day):
        raise refusal_beyond_day(endpoint)
    # It locks the account, so that two tests do not both begin the day's totals.
    book_on_day(endpoint.pk, day, spent=most, released=most)
    names = {"endpoint_name": endpoint.name}
    row, _ = EndpointSpending.objects.get_or_create(
        endpoint=endpoint, evaluation=None, evaluation_name="", day=day, defaults=names
    )
    add_to_row(row, SpendingTotals(max_cost=most))
    return row


@transaction.atomic
def correct_charge(row: EndpointSpending, most: int, totals: SpendingTotals) -> None:
    """Replace what was charged in advance by what the requests took, on the day when they were sent."""
    if row.endpoint_id is not None and utc_date(read_clock()) == row.day:
        book_on_day(row.endpoint_id, row.day, spent=totals.cost + totals.max_cost - most, released=0)
    add_to_row(row, totals)
    add_to_row(row, SpendingTotals(max_cost=-most))


def add_to_row(row: EndpointSpending, totals: SpendingTotals) -> None:
    added = {name: F(name) + amount for name, amount in asdict(totals).items()}
    EndpointSpending.objects.filter(pk=row.pk).update(**added)


def refuse_check_beyond_day(endpoint: Endpoint) -> None:
    """Refuse a test where nothing is left of the daily budget."""
    account = find_account_of_today(endpoint)
    if endpoint.daily_budget is not None and account.spent + account.reserved >= endpoint.daily_budget:
        raise refusal_beyond_day(endpoint)


def refusal_beyond_day(endpoint: Endpoint) -> InputRefused:
    account = find_account_of_today(endpoint)
    used, budget = format_exact_usd(account.spent + account.reserved), format_exact_usd(endpoint.daily_budget or 0)
    return InputRefused(
        f"The daily budget of “{endpoint}” does not cover a test: USD {used} of {budget} spent or in flight today. "
        "Raise it, or test again after 00:00 UTC."
    )
