"""Endpoints: where judges are asked, and what that costs. For site administrators; to all others nothing is here."""

from decimal import Decimal
from typing import Any

from django.db.models import Count
from django.http import HttpRequest
from django.shortcuts import get_object_or_404
from ninja import Query

from evaluations import access
from evaluations.api.admission import person
from evaluations.api.forms import checked, sent
from evaluations.api.operations import Operations
from evaluations.api.paging import Paging, page_of
from evaluations.api.schemas.judging import (
    EndpointChange,
    EndpointCheck,
    EndpointFinding,
    EndpointNew,
    EndpointPage,
    EndpointTest,
    EndpointTold,
    EndpointWhole,
    FoundServer,
    ListPriceUse,
    PriceSet,
    PriceTold,
)
from evaluations.api.schemas.shared import NothingSent
from evaluations.domain import Scope
from evaluations.forms.endpoint import ChangedEndpointForm, PriceForm
from evaluations.forms.endpoint_new import EndpointForm
from evaluations.models import Endpoint, LocalServer
from evaluations.services.judging.connecting import (
    add_found_server,
    begin_handshake,
    change_endpoint,
    found_servers,
    latest_handshakes,
)
from evaluations.services.judging.judging import WAYS_OF_ASKING, create_endpoint
from evaluations.services.judging.pricing import set_price, use_list_price
from evaluations.tasks import check_endpoint, nudge

operations = Operations(tags=["endpoints"])
MILLIONTHS = Decimal("0.000000001")


@operations.get_one("/endpoints", Scope.ADMIN, EndpointPage)
def list_endpoints(request: HttpRequest, paging: Query[Paging]) -> EndpointPage:
    access.require_site_administrator(person(request))
    rows, more = page_of(paging, Endpoint.objects.annotate(judge_count=Count("judges")))
    found = [
        FoundServer(id=one.pk, base_url=one.base_url, kind=one.kind, models=list(one.model_names))
        for one in found_servers()
    ]
    return EndpointPage(items=[told(row) for row in rows], next=more, found=found)


@operations.make("/endpoints", Scope.ADMIN, EndpointWhole)
def add_endpoint(request: HttpRequest, body: EndpointNew) -> EndpointWhole:
    """Keys never come in here: only the name of the environment variable that holds one, where the worker runs."""
    user = person(request)
    access.require_site_administrator(user)
    return whole(create_endpoint(**checked(EndpointForm(sent(body))), user=user))


@operations.make("/endpoints/found/{int:pk}", Scope.ADMIN, EndpointWhole)
def add_found_endpoint(request: HttpRequest, pk: int, body: NothingSent | None = None) -> EndpointWhole:
    """Make an endpoint of a local server that a worker found."""
    user = person(request)
    access.require_site_administrator(user)
    return whole(add_found_server(get_object_or_404(LocalServer, pk=pk), user=user))


@operations.get_one("/endpoints/{int:pk}", Scope.ADMIN, EndpointWhole)
def get_endpoint(request: HttpRequest, pk: int) -> EndpointWhole:
    return whole(endpoint_for(request, pk))


@operations.change("/endpoints/{int:pk}", Scope.ADMIN, EndpointWhole)
def change_one_endpoint(request: HttpRequest, pk: int, body: EndpointChange) -> EndpointWhole:
    """Where judges are asked already, address and key name stand fast."""
    row = endpoint_for(request, pk)
    stands = {name: getattr(row, name) for name in EndpointForm.base_fields}
    # A field that stands fast would leave another value unread on the form; the service refuses it in words.
    form = ChangedEndpointForm(stands | sent(body), endpoint=row, is_used=False)  # type: ignore[arg-type]
    change_endpoint(row, **checked(form), user=person(request))
    return whole(endpoint_for(request, pk))


@operations.set("/endpoints/{int:pk}/price", Scope.ADMIN, EndpointWhole)
def set_model_price(request: HttpRequest, pk: int, body: PriceSet) -> EndpointWhole:
    """What a model costs there, in USD for a million tokens. It counts for requests from now on."""
    row = endpoint_for(request, pk)
    given: dict[str, Any] = {
        name: Decimal(str(value)).quantize(MILLIONTHS) if isinstance(value, float) else value
        for name, value in body.model_dump(exclude_none=True).items()
    }
    set_price(row, **checked(PriceForm(given)), user=person(request))
    return whole(row)


@operations.do("/endpoints/{int:pk}/price/list", Scope.ADMIN, EndpointWhole)
def use_model_list_price(request: HttpRequest, pk: int, body: ListPriceUse) -> EndpointWhole:
    """Set the provider's list price for a model, in place of the price that it has. It counts from now on."""
    row = endpoint_for(request, pk)
    use_list_price(row, model=body.model, user=person(request))
    return whole(row)


@operations.do("/endpoints/{int:pk}/check", Scope.ADMIN, EndpointWhole)
def test_endpoint(request: HttpRequest, pk: int, body: EndpointCheck) -> EndpointWhole:
    """Have a worker test the endpoint with one tiny request; the result stands among `tests` once it has answered."""
    row = endpoint_for(request, pk)
    nudge(check_endpoint, begin_handshake(row, body.model).pk)
    return whole(row)


def endpoint_for(request: HttpRequest, pk: int) -> Endpoint:
    access.require_site_administrator(person(request))
    return get_object_or_404(Endpoint, pk=pk)


def told(row: Any) -> EndpointTold:
    return EndpointTold(
        id=row.pk,
        name=row.name,
        base_url=row.base_url,
        key_variable=row.key_variable,
        max_in_flight=row.max_in_flight,
        requests_per_minute=row.requests_per_minute,
        tokens_per_minute=row.tokens_per_minute,
        **{name: getattr(row, name) for name in WAYS_OF_ASKING},
        judges=row.judge_count if hasattr(row, "judge_count") else row.judges.count(),
    )


def whole(row: Endpoint) -> EndpointWhole:
    prices = [
        PriceTold(
            model=one.model,
            tokens_in=one.tokens_in / 1e9,
            tokens_cached=one.tokens_cached / 1e9,
            tokens_out=one.tokens_out / 1e9,
            batch_percent=one.batch_percent,
            most_tokens_out=one.most_tokens_out,
            source=one.source,
        )
        for one in row.prices.order_by("model")
    ]
    return EndpointWhole(
        **told(row).model_dump(),
        prices=prices,
        tests=tests_of(row),
        paused_until=row.paused_until,
        pause_reason=row.pause_reason,
    )


def tests_of(row: Endpoint) -> list[EndpointTest]:
    return [
        EndpointTest(
            model=one.model,
            checked_at=one.checked_at,
            is_waiting="waiting_since" in one.result,
            findings=[EndpointFinding(**line) for line in one.result.get("findings", [])],
        )
        for one in latest_handshakes(row)
    ]
