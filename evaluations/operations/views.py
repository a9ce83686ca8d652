"""What monitors ask without signing in, and the status page of site administrators."""

import hmac
import ipaddress

from django.conf import settings
from django.contrib.auth.decorators import login_not_required
from django.db import DatabaseError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from evaluations.access import require_site_administrator
from evaluations.models.jobs import Worker
from evaluations.operations.doctor import has_waiting_migrations
from evaluations.operations.metrics import build_metrics
from evaluations.operations.site_status import build_site_status
from evaluations.operations.status import find_standstill, measure_background
from evaluations.web.requests import AuthenticatedRequest

NO_DATABASE = "the database is not responding"


def answer_monitor(line: str, status: int = 200) -> HttpResponse:
    return HttpResponse(f"{line}\n", status=status, content_type="text/plain")


@login_not_required
@require_safe
def health(request: HttpRequest) -> HttpResponse:
    """Report the site's health in the first line, and missing workers in a second one."""
    try:
        works = Worker.objects.alive().exists()
    except DatabaseError:
        return answer_monitor(NO_DATABASE, 503)
    return answer_monitor("ok" if works else "ok\nno worker is running")


@login_not_required
@never_cache
@require_safe
def ready(request: HttpRequest) -> HttpResponse:
    """503 where this web process cannot serve, so that a proxy asks another one."""
    try:
        if has_waiting_migrations():
            return answer_monitor("migrations are not applied", 503)
    except DatabaseError:
        return answer_monitor(NO_DATABASE, 503)
    return answer_monitor("ok")


@login_not_required
@never_cache
@require_safe
def work(request: HttpRequest) -> HttpResponse:
    """503 with the reasons where background work stands still."""
    try:
        reasons = list(find_standstill(measure_background()))
    except DatabaseError:
        return answer_monitor(NO_DATABASE, 503)
    return answer_monitor("; ".join(reasons), 503) if reasons else answer_monitor("ok")


@login_not_required
@never_cache
@require_safe
def metrics(request: HttpRequest) -> HttpResponse:
    """Metrics for Prometheus. Everyone without the token sees a page that does not exist."""
    if not may_read_metrics(request):
        raise Http404
    try:
        return HttpResponse(build_metrics(), content_type="text/plain; version=0.0.4; charset=utf-8")
    except DatabaseError:
        return answer_monitor(NO_DATABASE, 503)


def may_read_metrics(request: HttpRequest) -> bool:
    """With the token; where none is set, from this machine and not through a proxy."""
    if settings.METRICS_TOKEN:
        given = request.headers.get("Authorization", "").encode()
        return hmac.compare_digest(given, f"Bearer {settings.METRICS_TOKEN}".encode())
    forwarded = {"X-Forwarded-For", "X-Forwarded-Proto", "X-Real-Ip", "Forwarded"}
    if any(name in request.headers for name in forwarded):
        return False
    try:
        return ipaddress.ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False


@never_cache
@require_safe
def status(request: AuthenticatedRequest) -> HttpResponse:
    require_site_administrator(request.user)
    context = {"page": "status", "status": build_site_status()}
    template = "status/_findings.html" if request.htmx else "status/status.html"
    return render(request, template, context)
