"""Error pages that need neither a session nor a database."""

import sys
from typing import Final

from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent, TooManyFilesSent
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string

from evaluations.domain.disk_space import DISK_FULL_SENTENCE
from evaluations.web.failures import is_database_away, is_disk_full

RETRY_SECONDS: Final = "5"
UNAVAILABLE_SENTENCE: Final = "The database is not responding. What you saved before is safe. Try again soon."


def render_error_page(word: str, status: int, reason: str = "") -> HttpResponse:
    return HttpResponse(render_to_string(f"errors/{word}.html", {"reason": reason}), status=status)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    if isinstance(exception, RequestDataTooBig | TooManyFieldsSent | TooManyFilesSent):
        return render_too_large("The request is larger than this page accepts. Nothing was stored. Send less at once.")
    return render_error_page("400", 400)


def render_too_large(reason: str) -> HttpResponse:
    return render_error_page("413", 413, reason)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    return render_error_page("403", 403, str(exception))


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return render_error_page("404", 404)


def server_error(request: HttpRequest) -> HttpResponse:
    """The page for an error that nothing caught, which Django is handling."""
    error = sys.exc_info()[1]
    if is_disk_full(error):
        return render_disk_full(request)
    if is_database_away(error):
        return render_unavailable(request)
    return render_error_page("500", 500)


def render_unavailable(request: HttpRequest) -> HttpResponse:
    response = render_part_or_page(request, "503", 503, UNAVAILABLE_SENTENCE)
    response["Retry-After"] = RETRY_SECONDS
    return response


def render_disk_full(request: HttpRequest) -> HttpResponse:
    return render_part_or_page(request, "507", 507, DISK_FULL_SENTENCE)


def render_part_or_page(request: HttpRequest, word: str, status: int, reason: str) -> HttpResponse:
    """For htmx the sentence alone, which takes the place of a part of a page."""
    if request.headers.get("HX-Request"):
        return HttpResponse(f'<p class="error" role="alert">{reason}</p>', status=status)
    return render_error_page(word, status, reason)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    return render_error_page("csrf", 403)
