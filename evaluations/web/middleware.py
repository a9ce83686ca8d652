"""What happens around every page."""

from collections.abc import Callable
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.http import HttpRequest, HttpResponse
from django.shortcuts import resolve_url
from django.utils import timezone
from django_htmx.http import HttpResponseClientRedirect

from evaluations.web import errors

Answer = Callable[[HttpRequest], HttpResponse]

ROOM_FOR_THE_FORM: Final = 1024 * 1024
READ_AT_ONCE: Final = 1024 * 1024


class UploadLimitMiddleware:
    """Refuses a file that is too large before a byte of it is stored anywhere."""

    def __init__(self, get_response: Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        given = request.headers.get("Content-Length", "")
        size = int(given) if given.isdecimal() else 0
        if size <= settings.MAX_UPLOAD_BYTES + ROOM_FOR_THE_FORM:
            return self.get_response(request)
        read_away(request)
        return errors.too_large(
            f"This server takes files of up to {in_megabytes(settings.MAX_UPLOAD_BYTES)}, and this one has "
            f"{in_megabytes(size)}. Nothing was stored. Split the file, or ask whoever runs the server for more room."
        )


def read_away(request: HttpRequest) -> None:
    """Answered while it still sends, a browser shows a broken connection instead of the answer."""
    left = settings.MAX_UPLOAD_BYTES
    while left > 0 and (chunk := request.read(READ_AT_ONCE)):
        left -= len(chunk)


def in_megabytes(size: int) -> str:
    return f"{size / 1024 / 1024:,.0f} MB"


class HtmxRedirectMiddleware:
    """A redirect would be followed and pasted into the fragment: the browser goes there instead."""

    def __init__(self, get_response: Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        response = self.get_response(request)
        if request.htmx and response.status_code in (301, 302, 303):  # type: ignore[attr-defined]
            return HttpResponseClientRedirect(way_back(request, response["Location"]))
        return response


def way_back(request: HttpRequest, address: str) -> str:
    """Whoever is asked to sign in first comes back to the page, not to the fragment that it asked for."""
    page = request.htmx.current_url_abs_path  # type: ignore[attr-defined]
    if page and address.partition("?")[0] == resolve_url(settings.LOGIN_URL):
        return redirect_to_login(page).url
    return address


class TimezoneMiddleware:
    """Times stand in the zone of the person who reads them."""

    def __init__(self, get_response: Answer) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        name = request.user.timezone if request.user.is_authenticated else ""
        try:
            timezone.activate(ZoneInfo(name))
        except (ZoneInfoNotFoundError, ValueError):
            timezone.deactivate()
        return self.get_response(request)
