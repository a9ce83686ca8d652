"""The servers that judges may be asked on: site-wide, for site administrators."""

from typing import Final, cast

from django.contrib import messages
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.http import require_POST, require_safe

from evaluations import access
from evaluations.domain import InputRefused
from evaluations.models import Endpoint, LocalServer, User
from evaluations.services.judging.connecting import add_found_server, found_servers
from evaluations.services.judging.running import cancel, open_runs
from evaluations.web.paging import page_of

MOST_RUNS: Final = 50


@require_safe
def endpoints(request: HttpRequest) -> HttpResponse:
    access.require_site_administrator(cast(User, request.user))
    counted = Endpoint.objects.annotate(
        judge_count=Count("judges", distinct=True), price_count=Count("prices", distinct=True)
    )
    context = {
        "page": "endpoints",
        "endpoints": page_of(request, counted),
        "found": found_servers(),
        "runs": open_runs().order_by("pk")[:MOST_RUNS],
        "run_count": open_runs().count(),
    }
    return render(request, "endpoints/endpoints.html", context)


@require_POST
def endpoints_run_cancel(request: HttpRequest, pk: int) -> HttpResponse:
    """Cancel any run of the site: one that occupies the workers is not for its evaluation's members alone."""
    user = cast(User, request.user)
    access.require_site_administrator(user)
    run = get_object_or_404(open_runs(), pk=pk)
    try:
        cancel(run, user=user)
    except InputRefused as refused:
        messages.error(request, str(refused))
    else:
        messages.success(request, f"Run {run.pk} of “{run.judge.name}” is cancelled.")
    return redirect("endpoints")


@require_POST
def endpoint_found(request: HttpRequest, pk: int) -> HttpResponse:
    """Make an endpoint of a local server that a worker found."""
    user = cast(User, request.user)
    access.require_site_administrator(user)
    endpoint = add_found_server(get_object_or_404(LocalServer, pk=pk), user=user)
    messages.success(request, f"Endpoint “{endpoint.name}” added. Test it before judges use it.")
    return redirect("endpoint", endpoint.pk)
