"""Requests of people who are known: every page but the sign-in pages, and every API operation."""

from typing import Final

from django.http import HttpRequest
from django_htmx.middleware import HtmxDetails

from evaluations.models.users import ApiToken, User

API_PREFIX: Final = "/api/"


def is_api_request(request: HttpRequest) -> bool:
    return f"{request.path}/".startswith(API_PREFIX)


class HtmxRequest(HttpRequest):
    """A request as django_htmx's middleware passes it on."""

    htmx: HtmxDetails


class AuthenticatedRequest(HtmxRequest):
    """A request that the middleware, or the token of a program, let in."""

    user: User


class ApiRequest(AuthenticatedRequest):
    """The request of a program."""

    auth: ApiToken
