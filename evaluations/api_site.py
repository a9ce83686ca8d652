"""The API of all features with its error handlers and its OpenAPI document."""

import json
from collections.abc import Sequence
from copy import deepcopy
from functools import lru_cache
from typing import Final

from django.contrib.auth.decorators import login_not_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe
from ninja import NinjaAPI
from ninja.errors import HttpError, ValidationError

from evaluations.api.authentication import BearerAuth
from evaluations.api.idempotency import KEY_HEADER, MAX_KEY_CHARACTERS
from evaluations.api.operations import BYTES_TYPE, FORM_TYPE, guard_operation
from evaluations.api.parser import StrictParser, UnreadableRequest
from evaluations.api.problems import DEFAULT_DETAILS, PROBLEM_KINDS, PROBLEM_TYPE, FieldError, Problem, problem_response
from evaluations.api.schemas import ProblemOut
from evaluations.comparisons import api as comparisons_api
from evaluations.disagreements import api as disagreements_api
from evaluations.disagreements.services import ResolvedElsewhere
from evaluations.domain.errors import InputRefused
from evaluations.domain.json_values import JsonDict
from evaluations.evaluation_settings import api as evaluation_settings_api
from evaluations.exports import api as exports_api
from evaluations.imports import api as imports_api
from evaluations.imports.columns import api as columns_api
from evaluations.imports.pairs import api as pairs_api
from evaluations.judges import api as judges_api
from evaluations.judges.calls import api as calls_api
from evaluations.judges.endpoints import api as endpoints_api
from evaluations.judges.runs import api as runs_api
from evaluations.members import api as members_api
from evaluations.overview import api as overview_api
from evaluations.reports import api as reports_api
from evaluations.reviews import api as reviews_api
from evaluations.reviews.drafts import DraftChangedElsewhere
from evaluations.reviews.queues import api as queues_api
from evaluations.reviews.services import ReviewChangedElsewhere
from evaluations.rubrics import api as rubrics_api
from evaluations.webhooks import api as webhooks_api

API_DESCRIPTION = """
Everything that a page can do. Send a token with every request (`Authorization: Bearer jw_…`); people make theirs on
their account page. What a person may not see, their tokens may not see either.
"""

STALE_VERSION_ERRORS = (ReviewChangedElsewhere, ResolvedElsewhere, DraftChangedElsewhere)

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

API_MODULES = (
    *(
        overview_api,
        evaluation_settings_api,
        members_api,
        comparisons_api,
        imports_api,
        columns_api,
        pairs_api,
        rubrics_api,
        endpoints_api,
        judges_api,
        runs_api,
        calls_api,
    ),
    *(reviews_api, queues_api, disagreements_api, reports_api, exports_api, webhooks_api),
)

for part in API_MODULES:
    api.add_router("", part.operations)


@api.exception_handler(Problem)
def handle_problem(request: HttpRequest, error: Problem) -> HttpResponse:
    return problem_response(request, error)


@api.exception_handler(InputRefused)
def handle_refusal(request: HttpRequest, error: InputRefused) -> HttpResponse:
    if error.field:
        fault = FieldError(f"{source_of_fields(request)}.{error.field}", str(error))
        return problem_response(request, Problem("invalid", f"{error} Nothing was done.", faults=[fault]))
    code = "changed_elsewhere" if isinstance(error, STALE_VERSION_ERRORS) else "refused"
    return problem_response(request, Problem(code, str(error)))


@api.exception_handler(Http404)
def handle_not_found(request: HttpRequest, error: Http404) -> HttpResponse:
    return problem_response(request, Problem("not_found", DEFAULT_DETAILS["not_found"]))


@api.exception_handler(PermissionDenied)
def handle_forbidden(request: HttpRequest, error: PermissionDenied) -> HttpResponse:
    return problem_response(request, Problem("forbidden", str(error) or DEFAULT_DETAILS["forbidden"]))


@api.exception_handler(ValidationError)
def handle_invalid(request: HttpRequest, error: ValidationError) -> HttpResponse:
    faults = [FieldError(field_path(one["loc"]), str(one["msg"])) for one in error.errors]
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


def source_of_fields(request: HttpRequest) -> str:
    """Where the values of a request are: in its body, its form or its query."""
    if request.content_type == FORM_TYPE:
        return "form"
    return "query" if request.method == "GET" or request.content_type == BYTES_TYPE else "body"


def field_path(location: Sequence[object]) -> str:
    """The position of a value, such as body.name or query.limit."""
    source, *rest = map(str, location)
    named = (
        rest[1:] if source in ("body", "form", "query") and rest and rest[0] in ("body", "paging", "asked") else rest
    )
    return ".".join([source, *named])


# What any operation may answer besides what it is for; the rest is common to all of them.
COMMON_STATUSES: Final = (400, 401, 403, 404, 413, 422, 429)

WRITE_STATUSES: Final = (409, 415)

HTTP_METHODS: Final = ("get", "post", "put", "patch", "delete")


@login_not_required
@require_safe
def openapi(request: HttpRequest) -> HttpResponse:
    """The OpenAPI document. It needs no token, because it is the same on every site and has no data."""
    return HttpResponse(openapi_json(), content_type="application/json")


@require_safe
def api_docs(request: HttpRequest) -> HttpResponse:
    return render(request, "api_docs/api_docs.html", {"page": "api_docs"})


@lru_cache(maxsize=1)
def openapi_json() -> str:
    return json.dumps(build_openapi(), ensure_ascii=False)


def build_openapi() -> JsonDict:
    made: JsonDict = deepcopy(dict(api.get_openapi_schema(path_prefix="/api/v1/")))
    components = made["components"]
    components["schemas"]["ProblemAnswer"] = ProblemOut.json_schema()
    components["schemas"].update(components["schemas"]["ProblemAnswer"].pop("$defs", {}))
    for name, schema in components["schemas"].items():
        components["schemas"][name] = lift_definitions(schema)
    components["responses"] = {
        str(status): describe_problem(status) for status in sorted({*COMMON_STATUSES, *WRITE_STATUSES})
    }
    components["securitySchemes"] = {"Bearer": {"type": "http", "scheme": "bearer", "description": "jw_…"}}
    for operations in made["paths"].values():
        for method, operation in operations.items():
            if method in HTTP_METHODS:
                complete_operation(method, operation)
    return made


def lift_definitions(schema: JsonDict) -> JsonDict:
    text = json.dumps(schema).replace("#/$defs/", "#/components/schemas/")
    read: JsonDict = json.loads(text)
    return read


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
    """Add to an operation what all have in common: problems, the scope in words, the idempotency key."""
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
