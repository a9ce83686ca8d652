"""What every operation begins and ends with: the token, its scope, the limit, a key to repeat by."""

import tempfile
from collections.abc import Callable
from functools import wraps
from typing import Any, Final, TypeVar

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import Router
from ninja.operation import Operation

from evaluations.access import Action, evaluation_for
from evaluations.api.admission import admit, limits, person, refuse_elsewhere, refuse_scope
from evaluations.api.problems import Problem
from evaluations.api.reading import refuse_address
from evaluations.api.repeats import HEADER, once
from evaluations.domain import Scope
from evaluations.services.recording import through

JSON: Final = "application/json"
FORM: Final = "multipart/form-data"
BYTES: Final = "application/octet-stream"
SAFE: Final = frozenset({"GET", "HEAD"})
READ_AT_ONCE: Final = 1024 * 1024
IN_MEMORY: Final = 1024 * 1024

View = TypeVar("View", bound=Callable[..., Any])


class Operations(Router):
    """A router whose operations say their scope. The name of the function is the stable id of the operation."""

    def get_one(self, path: str, scope: Scope, answer: Any, **more: Any) -> Callable[[View], View]:
        return self.operation("GET", path, scope, {200: answer}, **more)

    def make(self, path: str, scope: Scope, answer: Any, status: int = 201, **more: Any) -> Callable[[View], View]:
        return self.operation("POST", path, scope, {status: answer}, **more)

    def do(self, path: str, scope: Scope, answer: Any, **more: Any) -> Callable[[View], View]:
        """A step on something that is there already."""
        return self.operation("POST", path, scope, {200: answer}, **more)

    def change(self, path: str, scope: Scope, answer: Any, **more: Any) -> Callable[[View], View]:
        return self.operation("PATCH", path, scope, {200: answer}, **more)

    def set(self, path: str, scope: Scope, answer: Any, **more: Any) -> Callable[[View], View]:
        return self.operation("PUT", path, scope, {200: answer}, **more)

    def remove(self, path: str, scope: Scope, **more: Any) -> Callable[[View], View]:
        return self.operation("DELETE", path, scope, {204: None}, **more)

    def operation(
        self,
        method: str,
        path: str,
        scope: Scope,
        answers: dict[int, Any],
        *,
        takes: str = JSON,
        site_wide: bool = False,
        keeps: bool = True,
        needs: Action = Action.LOOK,
        extra: dict[str, Any] | None = None,
    ) -> Callable[[View], View]:
        """``takes``: the kind of its body. ``keeps``: whether its answer may be kept, holding no secret.

        ``needs``: what the person must be allowed to in the evaluation before a long body is so much as read.
        ``site_wide``: open to tokens that are tied to one evaluation, though its address names none.
        """

        def added(view: View) -> View:
            view.__dict__.update(scope=scope, takes=takes, site_wide=site_wide, keeps=keeps, needs=needs)
            self.add_api_operation(
                path,
                [method],
                view,
                response=answers,
                operation_id=view.__name__,
                summary=view.__name__.replace("_", " ").capitalize(),
                openapi_extra={**(extra or {}), "x-scope": scope.value},
            )
            return view

        return added


def guarded(run: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Round the whole of an operation, what it reads and how it answers included."""
    operation: Operation = run.__self__  # type: ignore[attr-defined]
    view = operation.view_func.__dict__

    @wraps(run)
    def answered(request: HttpRequest, **path: Any) -> HttpResponseBase:
        allowance = None
        try:
            refuse_address(request)
            token, allowance = admit(request)
            refuse_scope(token, view["scope"])
            if not (view["site_wide"] and "slug" not in path):
                refuse_elsewhere(token, path.get("slug"))
            request.auth = token  # type: ignore[attr-defined]
            request.user = token.user
            with through(token):
                answer = done(request, lambda: run(request, **path), view, path.get("slug"))
        except Exception as error:  # noqa: BLE001 - ninja's own way: what is no problem is raised again there
            answer = operation.api.on_exception(request, error)
        for name, value in (limits(allowance) if allowance else {}).items():
            answer[name] = value
        return answer

    return answered


def done(
    request: HttpRequest, run: Callable[[], HttpResponseBase], view: dict[str, Any], slug: str | None
) -> HttpResponseBase:
    """A write. Whoever may not do it is told so before a file is read, and before an answer is given again."""
    if request.method in SAFE:
        return run()
    refuse_other_kind(request, view["takes"])
    if slug is not None and (BYTES in view["takes"] or HEADER in request.headers):
        evaluation_for(person(request), slug, view["needs"])
    if BYTES in view["takes"] and request.content_type == BYTES:
        request.spooled = spooled(request)  # type: ignore[attr-defined]
    return once(request, request.auth, run) if view["keeps"] else run()  # type: ignore[attr-defined]


def refuse_other_kind(request: HttpRequest, takes: str) -> None:
    has_body = request.headers.get("Content-Length", "0") not in ("", "0") or "Transfer-Encoding" in request.headers
    if has_body and request.content_type not in takes.split(", "):
        raise Problem(
            "unsupported_media_type", f"The body must be {takes}, not “{request.content_type}”. Nothing was done."
        )


def spooled(request: HttpRequest) -> Any:
    """A body that is a file: in memory while it is short, on disk when it is not, and never larger than an upload."""
    file = tempfile.SpooledTemporaryFile(max_size=IN_MEMORY)  # noqa: SIM115 - closed with the request
    request._files_to_close = [file]  # type: ignore[attr-defined]
    size = 0
    while block := request.read(READ_AT_ONCE):
        size += len(block)
        if size > settings.MAX_UPLOAD_BYTES:
            most = settings.MAX_UPLOAD_BYTES // 1024 // 1024
            raise Problem("too_large", f"This server takes files of up to {most:,} MB. Nothing was stored.")
        file.write(block)
    file.seek(0)
    return file
