"""The pages of LLM endpoints, for site administrators."""

from typing import Final

from django.contrib import messages
from django.db.models import Count
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from evaluations.access import require_site_administrator
from evaluations.domain.errors import InputRefused
from evaluations.judges.endpoints.forms import (
    ChangedEndpointForm,
    EndpointForm,
    GrantForm,
    PriceForm,
    price_initial_values,
)
from evaluations.judges.endpoints.grants import (
    find_account_of_today,
    grant_endpoint,
    list_grants,
    list_spending,
    sum_spending,
    withdraw_grant,
)
from evaluations.judges.endpoints.outages import describe_outage
from evaluations.judges.endpoints.price_settings import PriceSettings, set_price, use_list_price
from evaluations.judges.endpoints.prices import find_price, pair_with_list_prices
from evaluations.judges.endpoints.selectors import (
    find_local_servers,
    latest_model,
    list_fixed_settings,
    summarize_checks,
)
from evaluations.judges.endpoints.services import (
    EndpointSettings,
    add_found_server,
    change_endpoint,
    create_endpoint,
    request_check,
)
from evaluations.judges.guards import get_endpoint_or_404
from evaluations.judges.runs.selectors import list_open_runs_of_site
from evaluations.judges.runs.services import cancel_run
from evaluations.models.judges import Endpoint, LocalServer
from evaluations.web.forms import submit_form
from evaluations.web.pagination import paginate
from evaluations.web.requests import AuthenticatedRequest
from evaluations.web.sorting import SortColumn, parse_sorting

SPENDING_ROWS_SHOWN: Final = 60


@require_http_methods(["GET", "HEAD", "POST"])
def endpoint(request: AuthenticatedRequest, pk: int) -> HttpResponse:
    """The page; a POST changes the endpoint. ``?model=…`` fills in the price form for that model."""
    row = get_endpoint_or_404(request, pk)
    sent = request.POST if request.method == "POST" else None
    form = ChangedEndpointForm(sent, endpoint=row, fixed=list_fixed_settings(row))
    if form.is_valid():
        changed = submit_form(form, change_endpoint, row, EndpointSettings(**form.cleaned_data), user=request.user)
        if changed:
            messages.success(request, "Saved. New requests use these settings.")
        if changed is not None:
            return redirect("endpoint", pk)
    price = find_price(row, request.GET.get("model", ""))
    price_form = PriceForm(initial=price_initial_values(price) if price else None)
    return render_endpoint(request, row, form, price_form, status=422 if form.is_bound else 200)


@require_POST
def endpoint_price(request: AuthenticatedRequest, pk: int) -> HttpResponse:
    """Set the price, or the provider's list price for the model that the button names."""
    row = get_endpoint_or_404(request, pk)
    if "list_price" in request.POST:
        return apply_list_price(request, row)
    form, user = PriceForm(request.POST), request.user
    if form.is_valid() and (price := submit_form(form, set_price, row, PriceSettings(**form.cleaned_data), user=user)):
        messages.success(request, f"Price of “{price.model}” saved. It applies to new requests.")
        return redirect("endpoint", pk)
    unchanged = ChangedEndpointForm(endpoint=row, fixed=list_fixed_settings(row))
    return render_endpoint(request, row, unchanged, form, status=422)


def apply_list_price(request: AuthenticatedRequest, row: Endpoint) -> HttpResponse:
    try:
        price = use_list_price(row, model=request.POST["list_price"], user=request.user)
        messages.success(request, f"“{price.model}” now has its list price. It applies to new requests.")
    except InputRefused as refused:
        messages.error(request, str(refused))
    return redirect("endpoint", row.pk)


def render_endpoint(
    request: AuthenticatedRequest,
    row: Endpoint,
    form: ChangedEndpointForm,
    price: PriceForm,
    grant: GrantForm | None = None,
    status: int = 200,
) -> HttpResponse:
    context: dict[str, object] = {
        "page": "endpoints",
        "endpoint": row,
        "form": form,
        "price_form": price,
        "prices": pair_with_list_prices(row),
        "judges": row.judges.count(),
        "outage": describe_outage(row),
        "grants": list_grants(row),
        "grant_form": grant or GrantForm(),
        "account": find_account_of_today(row),
        "spending": list_spending(row)[:SPENDING_ROWS_SHOWN],
        "spending_total": sum_spending(list_spending(row)),
        "usual_model": latest_model(row),
        "is_paused": row.paused_until is not None and row.paused_until > timezone.now(),
        **vars(summarize_checks(row)),
    }
    return render(request, "endpoint/endpoint.html", context, status=status)


@require_POST
def endpoint_grant(request: AuthenticatedRequest, pk: int) -> HttpResponse:
    """Grant the endpoint to an evaluation, or change the budget of its grant."""
    row = get_endpoint_or_404(request, pk)
    form = GrantForm(request.POST)
    if form.is_valid():
        evaluation, budget = form.cleaned_data["evaluation"], form.cleaned_data["budget"]
        if submit_form(form, grant_endpoint, row, evaluation, budget=budget, user=request.user):
            messages.success(request, f"“{evaluation.name}” can now use “{row.name}”.")
            return redirect(f"{reverse('endpoint', args=[pk])}#grants")
    unchanged = ChangedEndpointForm(endpoint=row, fixed=list_fixed_settings(row))
    return render_endpoint(request, row, unchanged, PriceForm(), form, status=422)


@require_POST
def endpoint_withdraw(request: AuthenticatedRequest, pk: int) -> HttpResponse:
    """Withdraw a grant; runs of its evaluation stop."""
    row = get_endpoint_or_404(request, pk)
    grant_id = request.POST.get("grant", "")
    grants = row.grants.select_related("endpoint", "evaluation")
    grant = get_object_or_404(grants, pk=grant_id if grant_id.isdecimal() and len(grant_id) < 19 else -1)
    if withdraw_grant(grant, user=request.user):
        messages.success(request, f"“{grant.evaluation.name}” can no longer use “{row.name}”. Its runs have stopped.")
    return redirect(f"{reverse('endpoint', args=[pk])}#grants")


@require_POST
def endpoint_check(request: AuthenticatedRequest, pk: int) -> HttpResponse:
    row = get_endpoint_or_404(request, pk)
    try:
        request_check(row, request.POST.get("model", ""))
    except InputRefused as refused:
        messages.error(request, str(refused))
    return redirect("endpoint", pk)


@never_cache
@require_safe
def endpoint_checks(request: AuthenticatedRequest, pk: int) -> HttpResponse:
    row = get_endpoint_or_404(request, pk)
    return render(request, "endpoint/_checks.html", {"endpoint": row, **vars(summarize_checks(row))})


@require_http_methods(["GET", "HEAD", "POST"])
def endpoint_new(request: AuthenticatedRequest) -> HttpResponse:
    require_site_administrator(request.user)
    form = EndpointForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        settings = EndpointSettings(**form.cleaned_data)
        if endpoint := submit_form(form, create_endpoint, settings, user=request.user):
            messages.success(request, f"LLM endpoint “{endpoint.name}” added.")
            return redirect(read_next_url(request) or reverse("endpoint", args=[endpoint.pk]))
    context = {"page": "endpoints", "form": form, "next": read_next_url(request)}
    return render(request, "endpoint_new/endpoint_new.html", context, status=422 if form.is_bound else 200)


def read_next_url(request: AuthenticatedRequest) -> str:
    """The page of this site that led here; "" for none."""
    url = request.POST.get("next", "") or request.GET.get("next", "")
    is_own = url_has_allowed_host_and_scheme(url, {request.get_host()}, require_https=request.is_secure())
    return url if is_own else ""


MAX_RUNS_SHOWN: Final = 50


@require_safe
def endpoints(request: AuthenticatedRequest) -> HttpResponse:
    require_site_administrator(request.user)
    counted = Endpoint.objects.annotate(
        judge_count=Count("judges", distinct=True), price_count=Count("prices", distinct=True)
    )
    sorting = parse_sorting(request, SortColumn("created"), SortColumn("name", "name"))
    context = {
        "page": "endpoints",
        "endpoints": paginate(request, counted, sorting=sorting),
        "sorting": sorting,
        "found": find_local_servers(),
        "runs": list_open_runs_of_site().order_by("pk")[:MAX_RUNS_SHOWN],
        "run_count": list_open_runs_of_site().count(),
    }
    return render(request, "endpoints/endpoints.html", context)


@require_POST
def endpoints_run_cancel(request: AuthenticatedRequest, pk: int) -> HttpResponse:
    """Cancel any run of the site: a run that occupies the workers concerns more than its evaluation."""
    require_site_administrator(request.user)
    run = get_object_or_404(list_open_runs_of_site(), pk=pk)
    try:
        cancel_run(run, user=request.user)
    except InputRefused as refused:
        messages.error(request, str(refused))
    else:
        messages.success(request, f"Run {run.pk} of “{run.judge.name}” cancelled.")
    return redirect("endpoints")


@require_POST
def endpoint_found(request: AuthenticatedRequest, pk: int) -> HttpResponse:
    """Add an endpoint for a local server that a worker found."""
    require_site_administrator(request.user)
    endpoint = add_found_server(get_object_or_404(LocalServer, pk=pk), user=request.user)
    messages.success(request, f"LLM endpoint “{endpoint.name}” added.")
    return redirect("endpoint", endpoint.pk)
