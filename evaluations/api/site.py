"""All operations together, and what becomes of what goes wrong in them."""

from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError

from evaluations.api import (
    columns,
    comparisons,
    disagreements,
    endpoints,
    evaluations,
    exports,
    imports,
    judges,
    pairs,
    people,
    reports,
    reviews,
    rounds,
    rubrics,
    runs,
    webhooks,
)
from evaluations.api.admission import Bearer
from evaluations.api.operations import guarded
from evaluations.api.problems import IN_GENERAL, Fault, Problem, told
from evaluations.api.reading import StrictParser, Unreadable
from evaluations.domain import InputRefused
from evaluations.services.adjudicating.adjudicating import SettledElsewhere
from evaluations.services.reviewing.keeping import DraftedElsewhere
from evaluations.services.reviewing.stepping import ChangedElsewhere

DESCRIPTION = """
Everything that a page can do. Send a token with every request (`Authorization: Bearer jw_…`); people make theirs on
their account page. What a person may not see, their tokens may not see either.
"""
# What functions call the whole of a body or a query.
ARGUMENTS = ("body", "paging", "asked")
MOVED_ON = (ChangedElsewhere, SettledElsewhere, DraftedElsewhere)

api = NinjaAPI(
    title="judgeweb",
    version="1",
    description=DESCRIPTION.strip(),
    openapi_url=None,
    docs_url=None,
    urls_namespace="api-v1",
    auth=Bearer(),
    parser=StrictParser(),
)
api.add_decorator(guarded, "view")
PARTS = (
    *(evaluations, people, comparisons, imports, columns, pairs, rubrics, endpoints, judges, runs),
    *(reviews, rounds, disagreements, reports, exports, webhooks),
)
for part in PARTS:
    api.add_router("", part.operations)


@api.exception_handler(Problem)
def problem(request: HttpRequest, error: Any) -> HttpResponse:
    return told(request, error)


@api.exception_handler(InputRefused)
def refused(request: HttpRequest, error: Any) -> HttpResponse:
    code = "changed_elsewhere" if isinstance(error, MOVED_ON) else "refused"
    return told(request, Problem(code, str(error)))


@api.exception_handler(Http404)
def not_found(request: HttpRequest, error: Any) -> HttpResponse:
    return told(request, Problem("not_found", IN_GENERAL["not_found"]))


@api.exception_handler(PermissionDenied)
def forbidden(request: HttpRequest, error: Any) -> HttpResponse:
    return told(request, Problem("forbidden", str(error) or IN_GENERAL["forbidden"]))


@api.exception_handler(ValidationError)
def invalid(request: HttpRequest, error: Any) -> HttpResponse:
    faults = [Fault(place(one["loc"]), str(one["msg"])) for one in error.errors]
    detail = f"{faults[0].field}: {faults[0].message}. Nothing was done."
    return told(request, Problem("invalid", detail, faults=faults))


@api.exception_handler(HttpError)
def malformed(request: HttpRequest, error: Any) -> HttpResponse:
    """The only one that is raised here by itself is about a body that is not JSON; its cause says why."""
    why = error.__context__
    detail = str(why) if isinstance(why, (Unreadable, Problem)) else IN_GENERAL["malformed"]
    return told(request, Problem("malformed" if error.status_code == 400 else "server_error", detail))


@api.exception_handler(Exception)
def broken(request: HttpRequest, error: Any) -> HttpResponse:
    raise error


def place(location: tuple[Any, ...]) -> str:
    """Where a value stands, without the name that the function has for the whole body: body.name, query.limit."""
    source, *rest = map(str, location)
    named = (
        rest[1:] if source in ("body", "form", "query") and rest and rest[0] in ("body", "paging", "asked") else rest
    )
    return ".".join([source, *named])
