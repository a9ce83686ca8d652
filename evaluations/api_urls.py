"""The addresses of the API, none of which a session opens."""

from collections.abc import Iterable

from django.contrib.auth.decorators import login_not_required
from django.urls import URLPattern, URLResolver, path

from evaluations.api_site import api, api_docs, openapi


def without_session(patterns: Iterable[URLPattern | URLResolver]) -> list[URLPattern]:
    """The same addresses, of which none sends anybody to the page for signing in."""
    found = [one for one in patterns if isinstance(one, URLPattern)]
    for pattern in found:
        login_not_required(pattern.callback)
    return found


operations, ninja, version = api.urls
api_patterns = [one for one in without_session(operations) if one.name != "api-root"]
urlpatterns = [
    path("api/v1/openapi.json", openapi, name="api_openapi"),
    path("api/v1/docs", api_docs, name="api_docs"),
    path("api/v1/", (api_patterns, ninja, version)),
]
