"""Answers to requests that went wrong, in house style.

Rendered without the request: no session, no user and so no database stands behind these pages.
"""

from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent, TooManyFilesSent
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string


def page(word: str, status: int, reason: str = "") -> HttpResponse:
    return HttpResponse(render_to_string(f"errors/{word}.html", {"reason": reason}), status=status)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    if isinstance(exception, RequestDataTooBig | TooManyFieldsSent | TooManyFilesSent):
        return too_large("What was sent is larger than this page takes. Nothing was stored: send less at once.")
    return page("400", 400)


def too_large(reason: str) -> HttpResponse:
    return page("413", 413, reason)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    return page("403", 403, str(exception))


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return page("404", 404)


def server_error(request: HttpRequest) -> HttpResponse:
    return page("500", 500)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    return page("csrf", 403)
