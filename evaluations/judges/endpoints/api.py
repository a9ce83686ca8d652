"""The API of endpoints, for site administrators."""

from decimal import Decimal
from typing import Any

from django.db.models import Count
from django.shortcuts import get_object_or_404
from ninja import Query

from evaluations.access import require_site_administrator
from evaluations.api.form_validation import clean_form, dump_sent_fields
from evaluations.api.operations import OperationRouter
from evaluations.api.pagination import PageQuery, paginate_by_cursor
from evaluations.api.schemas import EmptyIn
from evaluations.domain.json_values import JsonDict
from evaluations.domain.roles import Scope
from evaluations.judges.endpoints.forms import ChangedEndpointForm, EndpointForm, PriceForm
from evaluations.judges.endpoints.prices import set_price, use_list_price
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
from evaluations.judges.endpoints.selectors import found_local_servers, latest_handshakes
from evaluations.judges.endpoints.services import (
    REQUEST_OPTION_FIELDS,
    add_found_server,
    begin_handshake,
    change_endpoint,
    create_endpoint,
)
from evaluations.models.judges import Endpoint, LocalServer
from evaluations.web.requests import AuthenticatedRequest

operations = OperationRouter(tags=["endpoints"])
PRICE_STEP = Decimal("0.000000001")


@operations.get_one("/endpoints", Scope.ADMIN, EndpointPage)
def list_endpoints(request: AuthenticatedRequest, paging: Query[PageQuery]) -> EndpointPage:
    require_site_administrator(request.user)
    rows, more = paginate_by_cursor(paging, Endpoint.objects.annotate(judge_count=Count("judges")))
    found = [
        FoundServerOut(id=one.pk, base_url=one.base_url, kind=one.kind, models=list(one.model_names))
        for one in found_local_servers()
    ]
    return EndpointPage(items=[serialize_endpoint(row) for row in rows], next=more, found=found)


@operations.make("/endpoints", Scope.ADMIN, EndpointDetailOut)
def add_endpoint(request: AuthenticatedRequest, body: EndpointIn) -> EndpointDetailOut:
    """Keys never come in here: only the name of the environment variable that holds one, where the worker runs."""
    user = request.user
    require_site_administrator(user)
    return serialize_endpoint_detail(create_endpoint(**clean_form(EndpointForm(dump_sent_fields(body))), user=user))


@operations.make("/endpoints/found/{int:pk}", Scope.ADMIN, EndpointDetailOut)
def add_found_endpoint(request: AuthenticatedRequest, pk: int, body: EmptyIn | None = None) -> EndpointDetailOut:
    """Make an endpoint of a local server that a worker found."""
    user = request.user
    require_site_administrator(user)
    return serialize_endpoint_detail(add_found_server(get_object_or_404(LocalServer, pk=pk), user=user))


@operations.get_one("/endpoints/{int:pk}", Scope.ADMIN, EndpointDetailOut)
def get_endpoint(request: AuthenticatedRequest, pk: int) -> EndpointDetailOut:
    return serialize_endpoint_detail(get_endpoint_for_admin(request, pk))


@operations.change("/endpoints/{int:pk}", Scope.ADMIN, EndpointDetailOut)
def change_one_endpoint(request: AuthenticatedRequest, pk: int, body: EndpointPatch) -> EndpointDetailOut:
    """Where judges are asked already, address and key name stand fast."""
    row = get_endpoint_for_admin(request, pk)
    stands = {name: getattr(row, name) for name in EndpointForm.base_fields}
    # A field that stands fast would leave another value unread on the form; the service refuses it in words.
    form = ChangedEndpointForm(stands | dump_sent_fields(body), endpoint=row, is_used=False)  # type: ignore[arg-type]
    change_endpoint(row, **clean_form(form), user=request.user)
    return serialize_endpoint_detail(get_endpoint_for_admin(request, pk))


@operations.set("/endpoints/{int:pk}/price", Scope.ADMIN, EndpointDetailOut)
def set_model_price(request: AuthenticatedRequest, pk: int, body: PriceIn) -> EndpointDetailOut:
    """What a model costs there, in USD for a million tokens. It counts for requests from now on."""
    row = get_endpoint_for_admin(request, pk)
    given: JsonDict = {
        name: Decimal(str(value)).quantize(PRICE_STEP) if isinstance(value, float) else value
        for name, value in body.model_dump(exclude_none=True).items()
    }
    set_price(row, **clean_form(PriceForm(given)), user=request.user)
    return serialize_endpoint_detail(row)


@operations.do("/endpoints/{int:pk}/price/list", Scope.ADMIN, EndpointDetailOut)
def use_model_list_price(request: AuthenticatedRequest, pk: int, body: ListPriceIn) -> EndpointDetailOut:
    """Set the provider's list price for a model, in place of the price that it has. It counts from now on."""
    row = get_endpoint_for_admin(request, pk)
    use_list_price(row, model=body.model, user=request.user)
    return serialize_endpoint_detail(row)


@operations.do("/endpoints/{int:pk}/check", Scope.ADMIN, EndpointDetailOut)
def test_endpoint(request: AuthenticatedRequest, pk: int, body: EndpointTestIn) -> EndpointDetailOut:
    """Have a worker test the endpoint with one tiny request; the result stands among `tests` once it has answered."""
    row = get_endpoint_for_admin(request, pk)
    begin_handshake(row, body.model)
    return serialize_endpoint_detail(row)


def get_endpoint_for_admin(request: AuthenticatedRequest, pk: int) -> Endpoint:
    require_site_administrator(request.user)
    return get_object_or_404(Endpoint, pk=pk)


def serialize_endpoint(row: Any) -> EndpointOut:
    return EndpointOut(
        id=row.pk,
        name=row.name,
        base_url=row.base_url,
        key_variable=row.key_variable,
        max_in_flight=row.max_in_flight,
        requests_per_minute=row.requests_per_minute,
        tokens_per_minute=row.tokens_per_minute,
        **{name: getattr(row, name) for name in REQUEST_OPTION_FIELDS},
        judges=row.judge_count if hasattr(row, "judge_count") else row.judges.count(),
    )


def serialize_endpoint_detail(row: Endpoint) -> EndpointDetailOut:
    prices = [
        PriceOut(
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
    return EndpointDetailOut(
        **serialize_endpoint(row).model_dump(),
        prices=prices,
        tests=serialize_endpoint_tests(row),
        paused_until=row.paused_until,
        pause_reason=row.pause_reason,
    )


def serialize_endpoint_tests(row: Endpoint) -> list[EndpointTestOut]:
    return [
        EndpointTestOut(
            model=one.model,
            checked_at=one.checked_at,
            is_waiting="waiting_since" in one.result,
            findings=[EndpointFindingOut(**line) for line in one.result.get("findings", [])],
        )
        for one in latest_handshakes(row)
    ]
