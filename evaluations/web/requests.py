"""Requests of people who are known: every page but the sign-in pages, and every API operation."""

from django.http import HttpRequest
from django_htmx.middleware import HtmxDetails

from evaluations.models.users import ApiToken, User


class HtmxRequest(HttpRequest):
    """A request as django_htmx's middleware passes it on."""

    htmx: HtmxDetails


class AuthenticatedRequest(HtmxRequest):
    """A request that the middleware, or the token of a program, let in."""

    user: User


class ApiRequest(AuthenticatedRequest):
    """The request of a program."""

    auth: ApiToken
