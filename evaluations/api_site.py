"""The API of all features with its URLs, error handlers and OpenAPI document."""

import json
from collections.abc import Iterable, Sequence
from copy import deepcopy
from functools import lru_cache
from typing import Final

from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import URLPattern, URLResolver, path
from django.views.decorators.http import require_safe
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError

from evaluations.access import RightRefused
from evaluations.api.authentication import BearerAuth
from evaluations.api.idempotency import KEY_HEADER, MAX_KEY_CHARACTERS
from evaluations.api.operations import BYTES_TYPE, FORM_TYPE, guard_operation
from evaluations.api.parser import StrictParser, UnreadableRequest
from evaluations.api.problems import DEFAULT_DETAILS, PROBLEM_KINDS, PROBLEM_TYPE, FieldError, Problem, problem_response
from evaluations.api.schemas import ProblemOut
from evaluations.audit.security import record_security_event
from evaluations.disagreements.services import ResolvedElsewhere
from evaluations.domain.disk_space import DiskFull
from evaluations.domain.errors import InputRefused
from evaluations.domain.json_values import JsonDict
from evaluations.domain.security import SecurityEventKind
from evaluations.reviews.drafts import DraftChangedElsewhere
from evaluations.reviews.services import ReviewChangedElsewhere
from evaluations.web.requests import ApiRequest

API_DESCRIPTION = """
Everything that a page can do. Send a token with every request (`Authorization: Bearer jw_…`); people make theirs on
their account page. What a person may not see, their tokens may not see either.
"""

# The parameters of operations that hold a whole body or query: they are no part of a field's path.
OPERATION_PARAMETERS: Final = ("body", "paging", "asked", "query")
STALE_VERSION_ERRORS: Final = (ReviewChangedElsewhere, ResolvedElsewhere, DraftChangedElsewhere)

api = NinjaAPI(
    title="judgeweb",
    version="1",
    description=API_DESCRIPTION.strip(),
    openapi_url=None,
    docs_url=None,
    urls_namespace="api-v1",
    auth=BearerAuth(),
    parser=StrictParser(),
)

api.add_decorator(guard_operation, "view")

# In the order of the document: each has a router named `operations`.
API_MODULES: Final = (
    *("overview", "evaluation_settings", "members", "members.invitations"),
    *("members.join_links", "members.account", "members.accounts"),
    *("comparisons", "imports", "imports.columns", "imports.pairs"),
    *("rubrics", "judges.endpoints", "judges", "judges.runs", "judges.calls", "reviews", "reviews.queues"),
    *("disagreements", "reports", "exports", "webhooks", "operations"),
)
for package in API_MODULES:
    api.add_router("", f"evaluations.{package}.api.operations")


@api.exception_handler(Problem)
def handle_problem(request: HttpRequest, error: Problem) -> HttpResponse:
    return problem_response(request, error)


@api.exception_handler(InputRefused)
def handle_refusal(request: HttpRequest, error: InputRefused) -> HttpResponse:
    if error.field:
        fault = FieldError(f"{get_field_source(request)}.{error.field}", str(error))
        return problem_response(request, Problem("invalid", f"{error} Nothing was done.", faults=[fault]))
    if isinstance(error, DiskFull):
        return problem_response(request, Problem("disk_full", str(error)))
    code = "changed_elsewhere" if isinstance(error, STALE_VERSION_ERRORS) else "refused"
    return problem_response(request, Problem(code, str(error)))


@api.exception_handler(Http404)
def handle_not_found(request: HttpRequest, error: Http404) -> HttpResponse:
    return problem_response(request, Problem("not_found", DEFAULT_DETAILS["not_found"]))


@api.exception_handler(PermissionDenied)
def handle_forbidden(request: HttpRequest, error: PermissionDenied) -> HttpResponse:
    return problem_response(request, Problem("forbidden", str(error) or DEFAULT_DETAILS["forbidden"]))


@api.exception_handler(RightRefused)
def handle_right_refused(request: ApiRequest, error: RightRefused) -> HttpResponse:
    record_security_event(SecurityEventKind.RIGHT_REFUSED, request.user, detail=error.right)
    return handle_forbidden(request, error)


@api.exception_handler(ValidationError)
def handle_invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
    faults = [FieldError(build_field_path(fault["loc"]), str(fault["msg"])) for fault in error.errors]
    detail = f"{faults[0].field}: {faults[0].message}. Nothing was done."
    return problem_response(request, Problem("invalid", detail, faults=faults))


@api.exception_handler(HttpError)
def handle_malformed(request: HttpRequest, error: HttpError) -> HttpResponse:
    """A body that is not JSON, the only HttpError that ninja raises here; its cause says why."""
    why = error.__context__
    detail = str(why) if isinstance(why, (UnreadableRequest, Problem)) else DEFAULT_DETAILS["malformed"]
    return problem_response(request, Problem("malformed" if error.status_code == 400 else "server_error", detail))


@api.exception_handler(Exception)
def handle_unexpected(request: HttpRequest, error: Exception) -> HttpResponse:
    raise error


def get_field_source(request: HttpRequest) -> str:
    """Where the values of a request are: in its body, its form or its query."""
    if request.content_type == FORM_TYPE:
        return "form"
    return "query" if request.method == "GET" or request.content_type == BYTES_TYPE else "body"


def build_field_path(location: Sequence[object]) -> str:
    """The position of a value, such as body.name or query.limit."""
    source, *names = map(str, location)
    if source in ("body", "form", "query") and names and names[0] in OPERATION_PARAMETERS:
        del names[0]
    return ".".join([source, *names])


# The errors that every operation may answer with.
COMMON_STATUSES: Final = (400, 401, 403, 404, 413, 422, 429)
WRITE_STATUSES: Final = (409, 415)
HTTP_METHODS: Final = ("get", "post", "put", "patch", "delete")


@login_not_required
@require_safe
def openapi(request: HttpRequest) -> HttpResponse:
    """The OpenAPI document. It needs no token, because it is the same on every site and has no data."""
    return HttpResponse(build_openapi_json(), content_type="application/json")


@require_safe
def api_docs(request: HttpRequest) -> HttpResponse:
    return render(request, "api_docs/api_docs.html", {"page": "api_docs"})


@lru_cache(maxsize=1)
def build_openapi_json() -> str:
    return json.dumps(build_openapi(), ensure_ascii=False)


def build_openapi() -> JsonDict:
    document: JsonDict = deepcopy(dict(api.get_openapi_schema(path_prefix="/api/v1/")))
    components = document["components"]
    components["schemas"]["ProblemAnswer"] = ProblemOut.json_schema()
    components["schemas"].update(components["schemas"]["ProblemAnswer"].pop("$defs", {}))
    for name, schema in components["schemas"].items():
        components["schemas"][name] = lift_definitions(schema)
    components["responses"] = {
        str(status): describe_problem(status) for status in sorted({*COMMON_STATUSES, *WRITE_STATUSES})
    }
    components["securitySchemes"] = {"Bearer": {"type": "http", "scheme": "bearer", "description": "jw_…"}}
    for operations in document["paths"].values():
        for method, operation in operations.items():
            if method in HTTP_METHODS:
                complete_operation(method, operation)
    return document


def lift_definitions(schema: JsonDict) -> JsonDict:
    lifted: JsonDict = json.loads(json.dumps(schema).replace("#/$defs/", "#/components/schemas/"))
    return lifted


def describe_problem(status: int) -> JsonDict:
    codes = [code for code, kind in PROBLEM_KINDS.items() if kind.status == status]
    kinds = "; ".join(f"`{code}`: {PROBLEM_KINDS[code].title.lower()}" for code in codes)
    schema = {"$ref": "#/components/schemas/ProblemAnswer"}
    example = {
        "type": f"urn:judgeweb:problem:{codes[0]}",
        "title": PROBLEM_KINDS[codes[0]].title,
        "status": status,
        "detail": "One sentence: what, where, and what to do.",
        "instance": "/api/v1/…",
        "code": codes[0],
        "errors": [],
    }
    return {"description": kinds, "content": {PROBLEM_TYPE: {"schema": schema, "example": example}}}


def complete_operation(method: str, operation: JsonDict) -> None:
    """Add what all operations have in common: problems, the scope, the idempotency key."""
    scope = operation["x-scope"]
    operation["description"] = f"{operation.get('description', '')}\n\nScope: `{scope}`.".strip()
    operation["security"] = [{"Bearer": []}]
    writes = method != "get"
    for status in (*COMMON_STATUSES, *(WRITE_STATUSES if writes else ())):
        operation["responses"][str(status)] = {"$ref": f"#/components/responses/{status}"}
    if writes:
        operation.setdefault("parameters", []).append(
            {
                "name": KEY_HEADER,
                "in": "header",
                "required": False,
                "description": "Under the same key within a day the write is answered again, and not done again.",
                "schema": {"type": "string", "maxLength": MAX_KEY_CHARACTERS, "pattern": r"^[\x20-\x7e]*$"},
            }
        )


def exempt_from_login(patterns: Iterable[URLPattern | URLResolver]) -> list[URLPattern]:
    """These URLs, except that none of them redirects to the sign-in page."""
    urls = [pattern for pattern in patterns if isinstance(pattern, URLPattern)]
    for url in urls:
        login_not_required(url.callback)
    return urls


operations, namespace, version = api.urls
urlpatterns = [
    path("api/v1/openapi.json", openapi, name="api_openapi"),
    path("api/v1/docs", api_docs, name="api_docs"),
    path("api/v1/", ([url for url in exempt_from_login(operations) if url.name != "api-root"], namespace, version)),
]
