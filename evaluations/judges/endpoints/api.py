"""The API of endpoints, for site administrators."""

from dataclasses import replace

from django.db.models import Count
from django.shortcuts import get_object_or_404
from ninja import Query

from evaluations.access import require_site_administrator
from evaluations.api.operations import OperationRouter
from evaluations.api.pagination import PageQuery, paginate_by_cursor
from evaluations.api.schemas import EmptyIn
from evaluations.api.serializers import serialize_row
from evaluations.domain.money import exact_decimal
from evaluations.domain.roles import Scope
from evaluations.judges.endpoints.price_settings import PriceSettings, set_price, use_list_price
from evaluations.judges.endpoints.schemas import (
    EndpointDetailOut,
    EndpointFindingOut,
    EndpointIn,
    EndpointOut,
    EndpointPage,
    EndpointPatch,
    EndpointTestIn,
    EndpointTestOut,
    FoundServerOut,
    ListPriceIn,
    PriceIn,
    PriceOut,
)
from evaluations.judges.endpoints.selectors import find_local_servers, list_latest_checks
from evaluations.judges.endpoints.services import (
    EndpointSettings,
    add_found_server,
    change_endpoint,
    create_endpoint,
    read_stored_settings,
    request_check,
)
from evaluations.judges.guards import get_endpoint_or_404
from evaluations.models.judges import Endpoint, EndpointCheck, LocalServer, Price
from evaluations.web.requests import AuthenticatedRequest

operations = OperationRouter(tags=["endpoints"])


@operations.get_one("/endpoints", Scope.ADMIN, EndpointPage)
def list_endpoints(request: AuthenticatedRequest, paging: Query[PageQuery]) -> EndpointPage:
    require_site_administrator(request.user)
    rows, next_cursor = paginate_by_cursor(paging, Endpoint.objects.annotate(judge_count=Count("judges")))
    servers = [
        FoundServerOut(id=server.pk, base_url=server.base_url, kind=server.kind, models=list(server.model_names))
        for server in find_local_servers()
    ]
    return EndpointPage(items=[serialize_endpoint(row) for row in rows], next=next_cursor, found=servers)


@operations.make("/endpoints", Scope.ADMIN, EndpointDetailOut)
def add_endpoint(request: AuthenticatedRequest, body: EndpointIn) -> EndpointDetailOut:
    """Add an endpoint. Name the worker's environment variable that holds its API key; never send the key."""
    require_site_administrator(request.user)
    return serialize_endpoint_detail(create_endpoint(EndpointSettings(**dict(body)), user=request.user))


@operations.make("/endpoints/found/{int:pk}", Scope.ADMIN, EndpointDetailOut)
def add_found_endpoint(request: AuthenticatedRequest, pk: int, body: EmptyIn | None = None) -> EndpointDetailOut:
    """Make an endpoint of a local server that a worker found."""
    require_site_administrator(request.user)
    return serialize_endpoint_detail(add_found_server(get_object_or_404(LocalServer, pk=pk), user=request.user))


@operations.get_one("/endpoints/{int:pk}", Scope.ADMIN, EndpointDetailOut)
def get_endpoint(request: AuthenticatedRequest, pk: int) -> EndpointDetailOut:
    return serialize_endpoint_detail(get_endpoint_or_404(request, pk))


@operations.change("/endpoints/{int:pk}", Scope.ADMIN, EndpointDetailOut)
def change_one_endpoint(request: AuthenticatedRequest, pk: int, body: EndpointPatch) -> EndpointDetailOut:
    """Change an endpoint. If judges use it, its address and the name of its key cannot change."""
    row = get_endpoint_or_404(request, pk)
    empty = EndpointSettings()
    sent = {name: getattr(body, name) for name in body.model_fields_set}
    sent = {name: getattr(empty, name) if value is None else value for name, value in sent.items()}
    change_endpoint(row, replace(read_stored_settings(row), **sent), user=request.user)
    return serialize_endpoint_detail(get_endpoint_or_404(request, pk))


@operations.set("/endpoints/{int:pk}/price", Scope.ADMIN, EndpointDetailOut)
def set_model_price(request: AuthenticatedRequest, pk: int, body: PriceIn) -> EndpointDetailOut:
    """Set the price of a model, in USD for a million tokens. It applies to later requests."""
    row = get_endpoint_or_404(request, pk)
    price = PriceSettings(
        model=body.model,
        tokens_in=exact_decimal(body.tokens_in),
        tokens_cached=None if body.tokens_cached is None else exact_decimal(body.tokens_cached),
        tokens_out=exact_decimal(body.tokens_out),
        batch_percent=body.batch_percent,
        most_tokens_out=body.most_tokens_out,
    )
    set_price(row, price, user=request.user)
    return serialize_endpoint_detail(row)


@operations.do("/endpoints/{int:pk}/price/list", Scope.ADMIN, EndpointDetailOut)
def use_model_list_price(request: AuthenticatedRequest, pk: int, body: ListPriceIn) -> EndpointDetailOut:
    """Set the price of a model to the provider's list price. It applies to later requests."""
    row = get_endpoint_or_404(request, pk)
    use_list_price(row, model=body.model, user=request.user)
    return serialize_endpoint_detail(row)


@operations.do("/endpoints/{int:pk}/check", Scope.ADMIN, EndpointDetailOut)
def test_endpoint(request: AuthenticatedRequest, pk: int, body: EndpointTestIn) -> EndpointDetailOut:
    """Have a worker test the endpoint with one tiny request; the result stands among `tests` once it has answered."""
    row = get_endpoint_or_404(request, pk)
    request_check(row, body.model)
    return serialize_endpoint_detail(row)


def serialize_endpoint(row: Endpoint) -> EndpointOut:
    judges: int | None = getattr(row, "judge_count", None)
    return serialize_row(EndpointOut, row, judges=row.judges.count() if judges is None else judges)


def serialize_endpoint_detail(row: Endpoint) -> EndpointDetailOut:
    return EndpointDetailOut(
        **serialize_endpoint(row).model_dump(),
        prices=[serialize_price(price) for price in row.prices.order_by("model")],
        tests=[serialize_check(check) for check in list_latest_checks(row)],
        paused_until=row.paused_until,
        pause_reason=row.pause_reason,
    )


def serialize_price(row: Price) -> PriceOut:
    usd = {name: getattr(row, name) / 1e9 for name in ("tokens_in", "tokens_cached", "tokens_out")}
    return serialize_row(PriceOut, row, **usd)


def serialize_check(row: EndpointCheck) -> EndpointTestOut:
    findings = [EndpointFindingOut(**line) for line in row.result.get("findings", [])]
    return serialize_row(EndpointTestOut, row, is_waiting="waiting_since" in row.result, findings=findings)
