"""Add a server."""

from typing import cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from evaluations import access
from evaluations.domain import InputRefused
from evaluations.forms.endpoint_new import EndpointForm
from evaluations.models import Endpoint, User
from evaluations.services.judging.judging import create_endpoint


@require_http_methods(["GET", "HEAD", "POST"])
def endpoint_new(request: HttpRequest) -> HttpResponse:
    user = cast(User, request.user)
    access.require_site_administrator(user)
    form = EndpointForm(request.POST if request.method == "POST" else None)
    if form.is_valid() and (endpoint := created(form, user)):
        messages.success(request, f"Endpoint “{endpoint.name}” added. Test it before judges use it.")
        return redirect("endpoint", endpoint.pk)
    status = 422 if form.is_bound else 200
    return render(request, "endpoint_new/endpoint_new.html", {"page": "endpoints", "form": form}, status=status)


def created(form: EndpointForm, user: User) -> Endpoint | None:
    try:
        return create_endpoint(**form.cleaned_data, user=user)
    except InputRefused as refused:
        form.add_error(None, str(refused))
        return None
