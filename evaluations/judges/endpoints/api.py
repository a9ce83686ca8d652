"""The API of endpoints, for site administrators."""

from dataclasses import replace
from typing import Any

from django.db.models import Count
from django.shortcuts import get_object_or_404
from ninja import Query

from evaluations.access import Action, require_evaluation, require_site_administrator
from evaluations.api.operations import OperationRouter
from evaluations.api.pagination import PageQuery, paginate_by_cursor
from evaluations.api.schemas import EmptyIn
from evaluations.api.serializers import nano_to_usd, serialize_row
from evaluations.domain.errors import InputRefused
from evaluations.domain.json_values import JsonDict, JsonMapping
from evaluations.domain.money import exact_decimal, parse_budget_usd
from evaluations.domain.roles import Scope
from evaluations.judges.endpoints.grants import (
    grant_endpoint,
    list_grants,
    list_grants_of_evaluation,
    list_spending,
    withdraw_grant,
)
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
    GrantedEndpointList,
    GrantedEndpointOut,
    GrantIn,
    GrantList,
    GrantOut,
    ListPriceIn,
    PriceIn,
    PriceOut,
    SpendingOut,
    SpendingPage,
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
from evaluations.models.endpoint_grants import EndpointGrant, EndpointSpending
from evaluations.models.evaluations import Evaluation
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
    """Add an endpoint. Its API key is stored encrypted, or read from an environment variable of the worker."""
    require_site_administrator(request.user)
    settings = EndpointSettings(**read_sent_settings(dict(body)))
    return serialize_endpoint_detail(create_endpoint(settings, user=request.user))


@operations.make("/endpoints/found/{int:pk}", Scope.ADMIN, EndpointDetailOut)
def add_found_endpoint(request: AuthenticatedRequest, pk: int, body: EmptyIn | None = None) -> EndpointDetailOut:
    """Add an endpoint for a local server that a worker found."""
    require_site_administrator(request.user)
    return serialize_endpoint_detail(add_found_server(get_object_or_404(LocalServer, pk=pk), user=request.user))


@operations.get_one("/endpoints/{int:pk}", Scope.ADMIN, EndpointDetailOut)
def get_endpoint(request: AuthenticatedRequest, pk: int) -> EndpointDetailOut:
    return serialize_endpoint_detail(get_endpoint_or_404(request, pk))


@operations.change("/endpoints/{int:pk}", Scope.ADMIN, EndpointDetailOut)
def change_one_endpoint(request: AuthenticatedRequest, pk: int, body: EndpointPatch) -> EndpointDetailOut:
    """Change an endpoint. If judges use it, its address cannot change, nor the name of its key once it has one."""
    row = get_endpoint_or_404(request, pk)
    empty = EndpointSettings()
    sent = read_sent_settings({name: getattr(body, name) for name in body.model_fields_set})
    sent = {name: getattr(empty, name) if value is None else value for name, value in sent.items()}
    change_endpoint(row, replace(read_stored_settings(row), **sent), user=request.user)
    return serialize_endpoint_detail(get_endpoint_or_404(request, pk))


@operations.set("/endpoints/{int:pk}/price", Scope.ADMIN, EndpointDetailOut)
def set_model_price(request: AuthenticatedRequest, pk: int, body: PriceIn) -> EndpointDetailOut:
    """Set the price of a model, in USD per million tokens. It applies to new requests."""
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
    """Set the price of a model to the provider's list price. It applies to new requests."""
    row = get_endpoint_or_404(request, pk)
    use_list_price(row, model=body.model, user=request.user)
    return serialize_endpoint_detail(row)


@operations.do("/endpoints/{int:pk}/check", Scope.ADMIN, EndpointDetailOut)
def test_endpoint(request: AuthenticatedRequest, pk: int, body: EndpointTestIn) -> EndpointDetailOut:
    """Test the endpoint with one tiny request. The result appears in `tests`."""
    row = get_endpoint_or_404(request, pk)
    request_check(row, body.model)
    return serialize_endpoint_detail(row)


@operations.get_one("/endpoints/{int:pk}/grants", Scope.ADMIN, GrantList)
def get_grants(request: AuthenticatedRequest, pk: int) -> GrantList:
    """List the evaluations that may use the endpoint, and those that spent something there."""
    row = get_endpoint_or_404(request, pk)
    return GrantList(items=[serialize_grant(grant) for grant in list_grants(row)])


@operations.set("/endpoints/{int:pk}/grants", Scope.ADMIN, GrantOut)
def set_grant(request: AuthenticatedRequest, pk: int, body: GrantIn) -> GrantOut:
    """Grant the endpoint to an evaluation, or change the budget of the grant."""
    row = get_endpoint_or_404(request, pk)
    evaluation = Evaluation.objects.filter(slug=body.evaluation).first()
    if evaluation is None:
        raise InputRefused(f"There is no evaluation “{body.evaluation}”.", field="evaluation")
    return serialize_grant(grant_endpoint(row, evaluation, budget=usd_to_nano(body.budget_usd), user=request.user))


@operations.remove("/endpoints/{int:pk}/grants/{int:grant}", Scope.ADMIN)
def remove_grant(request: AuthenticatedRequest, pk: int, grant: int) -> None:
    """Withdraw a grant. Runs of the evaluation at this endpoint stop."""
    row = get_endpoint_or_404(request, pk)
    grants = row.grants.select_related("endpoint", "evaluation")
    withdraw_grant(get_object_or_404(grants, pk=grant), user=request.user)


@operations.get_one("/endpoints/{int:pk}/spending", Scope.ADMIN, SpendingPage)
def get_spending(request: AuthenticatedRequest, pk: int, paging: Query[PageQuery]) -> SpendingPage:
    """List what was spent at the endpoint by day and evaluation."""
    rows, next_cursor = paginate_by_cursor(paging, list_spending(get_endpoint_or_404(request, pk)), newest_first=True)
    return SpendingPage(items=[serialize_spending(row) for row in rows], next=next_cursor)


@operations.get_one("/evaluations/{slug:slug}/endpoints", Scope.READ, GrantedEndpointList)
def list_evaluation_endpoints(request: AuthenticatedRequest, slug: str) -> GrantedEndpointList:
    """List the endpoints that judges of this evaluation can use, with its budgets there. For its managers."""
    evaluation = require_evaluation(request.user, slug, Action.MANAGE)
    return GrantedEndpointList(
        items=[
            GrantedEndpointOut(
                id=grant.endpoint.pk, name=grant.endpoint.name, is_granted=grant.is_active, **grant_amounts(grant)
            )
            for grant in list_grants_of_evaluation(evaluation)
        ]
    )


def read_sent_settings(sent: JsonMapping) -> JsonDict:
    """The settings as the service takes them, with the budget in nano-USD."""
    settings = dict(sent)
    if "daily_budget_usd" in settings:
        settings["daily_budget"] = usd_to_nano(settings.pop("daily_budget_usd"))
    if "api_key" in settings and settings["api_key"] is None:
        settings["removes_key"] = True
    return settings


def usd_to_nano(amount: float | None) -> int | None:
    return None if amount is None else parse_budget_usd(exact_decimal(amount), "Budget")


def grant_amounts(grant: EndpointGrant) -> dict[str, Any]:
    return {f"{name}_usd": nano_to_usd(getattr(grant, name)) for name in ("budget", "spent", "reserved")}


def serialize_grant(grant: EndpointGrant) -> GrantOut:
    return GrantOut(id=grant.pk, evaluation=grant.evaluation.slug, is_active=grant.is_active, **grant_amounts(grant))


def serialize_spending(row: EndpointSpending) -> SpendingOut:
    usd = {"cost_usd": row.cost / 1e9, "max_cost_usd": row.max_cost / 1e9}
    return serialize_row(SpendingOut, row, evaluation=row.evaluation_name, **usd)


def endpoint_facts(row: Endpoint) -> dict[str, Any]:
    return {"daily_budget_usd": nano_to_usd(row.daily_budget), "has_stored_key": bool(row.encrypted_key)}


def serialize_endpoint(row: Endpoint) -> EndpointOut:
    judges: int | None = getattr(row, "judge_count", None)
    count = row.judges.count() if judges is None else judges
    return serialize_row(EndpointOut, row, judges=count, **endpoint_facts(row))


def serialize_endpoint_detail(row: Endpoint) -> EndpointDetailOut:
    return EndpointDetailOut(
        **serialize_endpoint(row).model_dump(),
        prices=[serialize_price(price) for price in row.prices.order_by("model")],
        tests=[serialize_check(check) for check in list_latest_checks(row)],
        paused_until=row.paused_until,
        pause_reason=row.pause_reason,
        down_since=row.down_since,
        down_reason=row.down_reason,
        next_probe_at=row.next_probe_at,
    )


def serialize_price(row: Price) -> PriceOut:
    usd = {name: getattr(row, name) / 1e9 for name in ("tokens_in", "tokens_cached", "tokens_out")}
    return serialize_row(PriceOut, row, **usd)


def serialize_check(row: EndpointCheck) -> EndpointTestOut:
    findings = [EndpointFindingOut(**line) for line in row.result.get("findings", [])]
    return serialize_row(EndpointTestOut, row, is_waiting="waiting_since" in row.result, findings=findings)
