"""The OpenAPI document, and the page on which people read and try it."""

import json
from copy import deepcopy
from functools import lru_cache
from typing import Any, Final

from django.contrib.auth.decorators import login_not_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from evaluations.api.problems import CONTENT_TYPE, KINDS
from evaluations.api.repeats import HEADER, LONGEST
from evaluations.api.schemas.shared import ProblemAnswer
from evaluations.api.site import api

# What any operation may answer besides what it is for; the rest is common to all of them.
ALWAYS: Final = (400, 401, 403, 404, 413, 422, 429)
ON_WRITES: Final = (409, 415)
METHODS: Final = ("get", "post", "put", "patch", "delete")


@login_not_required
@require_safe
def openapi(request: HttpRequest) -> HttpResponse:
    """The same at every installation, and of none of its evaluations: so it is open to all."""
    return HttpResponse(written(), content_type="application/json")


@require_safe
def docs(request: HttpRequest) -> HttpResponse:
    return render(request, "api_docs/api_docs.html", {"page": "api_docs"})


@lru_cache(maxsize=1)
def written() -> str:
    return json.dumps(document(), ensure_ascii=False)


def document() -> dict[str, Any]:
    made: dict[str, Any] = deepcopy(dict(api.get_openapi_schema(path_prefix="/api/v1/")))
    components = made["components"]
    components["schemas"]["ProblemAnswer"] = ProblemAnswer.json_schema()
    components["schemas"].update(components["schemas"]["ProblemAnswer"].pop("$defs", {}))
    for name, schema in components["schemas"].items():
        components["schemas"][name] = lifted(schema)
    components["responses"] = {str(status): problem(status) for status in sorted({*ALWAYS, *ON_WRITES})}
    components["securitySchemes"] = {"Bearer": {"type": "http", "scheme": "bearer", "description": "jw_…"}}
    for operations in made["paths"].values():
        for method, operation in operations.items():
            if method in METHODS:
                complete(method, operation)
    return made


def lifted(schema: dict[str, Any]) -> dict[str, Any]:
    text = json.dumps(schema).replace("#/$defs/", "#/components/schemas/")
    read: dict[str, Any] = json.loads(text)
    return read


def problem(status: int) -> dict[str, Any]:
    codes = [code for code, kind in KINDS.items() if kind.status == status]
    kinds = "; ".join(f"`{code}`: {KINDS[code].title.lower()}" for code in codes)
    schema = {"$ref": "#/components/schemas/ProblemAnswer"}
    example = {
        "type": f"urn:judgeweb:problem:{codes[0]}",
        "title": KINDS[codes[0]].title,
        "status": status,
        "detail": "One sentence: what, where, and what to do.",
        "instance": "/api/v1/…",
        "code": codes[0],
        "errors": [],
    }
    return {"description": kinds, "content": {CONTENT_TYPE: {"schema": schema, "example": example}}}


def complete(method: str, operation: dict[str, Any]) -> None:
    """What all operations have in common: problems, the scope in words, the key to repeat a write by."""
    scope = operation["x-scope"]
    operation["description"] = f"{operation.get('description', '')}\n\nScope: `{scope}`.".strip()
    operation["security"] = [{"Bearer": []}]
    writes = method != "get"
    for status in (*ALWAYS, *(ON_WRITES if writes else ())):
        operation["responses"][str(status)] = {"$ref": f"#/components/responses/{status}"}
    if writes:
        operation.setdefault("parameters", []).append(
            {
                "name": HEADER,
                "in": "header",
                "required": False,
                "description": "Under the same key within a day the write is answered again, and not done again.",
                "schema": {"type": "string", "maxLength": LONGEST, "pattern": r"^[\x20-\x7e]*$"},
            }
        )
