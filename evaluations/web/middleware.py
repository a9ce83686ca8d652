"""Middleware of page requests."""

from collections.abc import Callable
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import resolve_url
from django.utils import timezone
from django_htmx.http import HttpResponseClientRedirect

from evaluations.access import RightRefused
from evaluations.audit.security import record_security_event
from evaluations.domain.security import SecurityEventKind
from evaluations.models.users import User
from evaluations.web.error_views import render_disk_full, render_too_large, render_unavailable
from evaluations.web.request_bodies import BodyRefusal, get_body_refusal
from evaluations.web.requests import HtmxRequest, is_api_request

GetResponse = Callable[[HttpRequest], HttpResponse]

FORM_BYTES: Final = 1024 * 1024
DRAIN_BLOCK_BYTES: Final = 1024 * 1024


class UploadLimitMiddleware:
    """Refuses a file that is too large, or for which there is no room, before a byte of it is stored anywhere."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        header = request.headers.get("Content-Length", "")
        size = int(header) if header.isdecimal() else 0
        refusal = get_body_refusal(request)
        if refusal == BodyRefusal.NO_ROOM:
            return render_disk_full(request)
        if refusal == BodyRefusal.NO_DATABASE:
            return render_unavailable(request)
        if refusal == BodyRefusal.SIGNED_OUT and not is_api_request(request):
            return redirect_to_login(request.get_full_path())
        if size <= settings.MAX_UPLOAD_BYTES + FORM_BYTES:
            return self.get_response(request)
        drain_body(request)
        return render_too_large(
            f"This server takes files of up to {format_megabytes(settings.MAX_UPLOAD_BYTES)}, and this one has "
            f"{format_megabytes(size)}. Nothing was stored. Split the file, or ask the administrator of the "
            "server for more room."
        )


class PrivateResponseMiddleware:
    """Lets no cache, of a browser or in between, keep what a person sees. Static files never come this far."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if "no-store" not in response.get("Cache-Control", ""):
            response["Cache-Control"] = "private, no-store"
        return response


def drain_body(request: HttpRequest) -> None:
    """Read the body first: a browser that is still sending shows a broken connection instead of the response."""
    remaining = settings.MAX_UPLOAD_BYTES
    while remaining > 0 and (chunk := request.read(DRAIN_BLOCK_BYTES)):
        remaining -= len(chunk)


def format_megabytes(size: int) -> str:
    return f"{size / 1024 / 1024:,.0f} MB"


class HtmxRedirectMiddleware:
    """Makes the browser follow a redirect, instead of htmx pasting the target into the fragment."""

    def __init__(self, get_response: Callable[[HtmxRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HtmxRequest) -> HttpResponse:
        response = self.get_response(request)
        if request.htmx and response.status_code in (301, 302, 303):
            return HttpResponseClientRedirect(return_address(request, response["Location"]))
        return response


def return_address(request: HtmxRequest, address: str) -> str:
    """Return to the page after signing in, and not to the fragment that it requested."""
    page = request.htmx.current_url_abs_path
    if page and address.partition("?")[0] == resolve_url(settings.LOGIN_URL):
        return redirect_to_login(page).url
    return address


class RightRefusalMiddleware:
    """Records that site policy refused something on a page."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_exception(self, request: HttpRequest, exception: Exception) -> None:
        if isinstance(exception, RightRefused) and isinstance(request.user, User):
            record_security_event(SecurityEventKind.RIGHT_REFUSED, request.user, detail=exception.right)


class TimezoneMiddleware:
    """Activates the time zone of the signed-in user."""

    def __init__(self, get_response: GetResponse) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        name = request.user.timezone if request.user.is_authenticated else ""
        try:
            timezone.activate(ZoneInfo(name))
        except (ZoneInfoNotFoundError, ValueError):
            timezone.deactivate()
        return self.get_response(request)
