"""Redirects from the addresses that pages had before they were sorted into six places."""

import re
from typing import Final

from django.http import Http404, HttpRequest, HttpResponse, HttpResponsePermanentRedirect
from django.views.decorators.http import require_http_methods

NEW_PATHS: Final = {
    "adjudications": "review/resolutions",
    "archive": "settings/archive",
    "bring-back": "settings/restore",
    "calls": "judges/calls",
    "comments": "review/comments",
    "comparisons": "data/comparisons",
    "disagreements": "review/disagreements",
    "duplicates": "data/duplicates",
    "events": "settings/activity",
    "exports": "export",
    "families": "data/models",
    "guidelines": "settings/guidelines",
    "imports": "data/imports",
    "pairs": "data/pairs",
    "people": "settings/members",
    "report": "results",
    "rounds": "review/queues",
    "rubrics": "judges/rubrics",
    "runs": "judges/runs",
    "slices": "data/filters",
    "spans": "review/spans",
    "tags": "data/tags",
    "webhooks": "settings/webhooks",
}
EXACT_PATHS: Final = {"imports": "data"}
SAVED_FILTER: Final = re.compile(r"(?<![^&])slice=")  # the parameter had another name, too


@require_http_methods(["GET", "HEAD", "POST"])
def moved_page(request: HttpRequest, slug: str, old_path: str) -> HttpResponse:
    """Redirect to where a page is now, with its query; a form that is sent keeps its method (308)."""
    first, separator, rest = old_path.partition("/")
    if first not in NEW_PATHS:
        raise Http404
    new_path = EXACT_PATHS.get(old_path) or f"{NEW_PATHS[first]}{separator}{rest}"
    query = SAVED_FILTER.sub("saved_filter=", request.META.get("QUERY_STRING", ""))
    address = f"/e/{slug}/{new_path}" + (f"?{query}" if query else "")
    return HttpResponsePermanentRedirect(address, preserve_request=True)
