"""One endpoint: what may change of it, and what its models cost."""

from typing import Any, cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from evaluations import access
from evaluations.domain import InputRefused
from evaluations.forms.endpoint import ChangedEndpointForm, PriceForm, price_values
from evaluations.models import Endpoint, User
from evaluations.services.judging.connecting import change_endpoint, handshakes_of, is_used, usual_model
from evaluations.services.judging.pricing import price_of, set_price, use_list_price, with_list_prices


@require_http_methods(["GET", "HEAD", "POST"])
def endpoint(request: HttpRequest, pk: int) -> HttpResponse:
    """The page; a POST changes the endpoint's own columns. ``?model=…`` brings that model's price into its form."""
    user = cast(User, request.user)
    row = endpoint_for(user, pk)
    sent = request.POST if request.method == "POST" else None
    form = ChangedEndpointForm(sent, endpoint=row, is_used=is_used(row))
    if form.is_valid() and changed(request, form, row, user):
        return redirect("endpoint", pk)
    known = price_of(row, request.GET.get("model", ""))
    prices = PriceForm(initial=price_values(known) if known else None)
    return shown(request, row, form, prices, status=422 if form.is_bound else 200)


@require_POST
def endpoint_price(request: HttpRequest, pk: int) -> HttpResponse:
    user = cast(User, request.user)
    row = endpoint_for(user, pk)
    if "list_price" in request.POST:
        return listed(request, row, user)
    form = PriceForm(request.POST)
    if form.is_valid() and priced(request, form, row, user):
        return redirect("endpoint", pk)
    unchanged = ChangedEndpointForm(endpoint=row, is_used=is_used(row))
    return shown(request, row, unchanged, form, status=422)


def listed(request: HttpRequest, row: Endpoint, user: User) -> HttpResponse:
    """Set the provider's list price for the model that the button names."""
    try:
        price = use_list_price(row, model=request.POST["list_price"], user=user)
        messages.success(request, f"“{price.model}” has its list price. It counts for requests from now on.")
    except InputRefused as refused:
        messages.error(request, str(refused))
    return redirect("endpoint", row.pk)


def endpoint_for(user: User, pk: int) -> Endpoint:
    access.require_site_administrator(user)
    return get_object_or_404(Endpoint, pk=pk)


def changed(request: HttpRequest, form: ChangedEndpointForm, row: Endpoint, user: User) -> bool:
    try:
        if change_endpoint(row, **form.cleaned_data, user=user):
            messages.success(request, "Changed. Requests from now on keep to it.")
    except InputRefused as refused:
        form.add_error(None, str(refused))
        return False
    return True


def priced(request: HttpRequest, form: PriceForm, row: Endpoint, user: User) -> bool:
    try:
        price = set_price(row, **form.cleaned_data, user=user)
    except InputRefused as refused:
        form.add_error(None, str(refused))
        return False
    messages.success(request, f"The price of “{price.model}” is set. It counts for requests from now on.")
    return True


def shown(
    request: HttpRequest, row: Endpoint, form: ChangedEndpointForm, price: PriceForm, status: int = 200
) -> HttpResponse:
    context: dict[str, Any] = {
        "page": "endpoints",
        "endpoint": row,
        "form": form,
        "price_form": price,
        "prices": with_list_prices(row),
        "judges": row.judges.count(),
        "usual_model": usual_model(row),
        "is_paused": row.paused_until is not None and row.paused_until > timezone.now(),
        **handshake_context(row),
    }
    return render(request, "endpoint/endpoint.html", context, status=status)


def handshake_context(row: Endpoint) -> dict[str, Any]:
    told = handshakes_of(row)
    return {"handshakes": told.done, "is_testing": told.is_testing, "is_late": told.is_late}
