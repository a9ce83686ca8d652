"""Error pages that need neither a session nor a database."""

from django.core.exceptions import RequestDataTooBig, TooManyFieldsSent, TooManyFilesSent
from django.http import HttpRequest, HttpResponse
from django.template.loader import render_to_string


def render_error_page(word: str, status: int, reason: str = "") -> HttpResponse:
    return HttpResponse(render_to_string(f"errors/{word}.html", {"reason": reason}), status=status)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    if isinstance(exception, RequestDataTooBig | TooManyFieldsSent | TooManyFilesSent):
        return render_too_large("What was sent is larger than this page takes. Nothing was stored: send less at once.")
    return render_error_page("400", 400)


def render_too_large(reason: str) -> HttpResponse:
    return render_error_page("413", 413, reason)


def forbidden(request: HttpRequest, exception: Exception) -> HttpResponse:
    return render_error_page("403", 403, str(exception))


def not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    return render_error_page("404", 404)


def server_error(request: HttpRequest) -> HttpResponse:
    return render_error_page("500", 500)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    return render_error_page("csrf", 403)
