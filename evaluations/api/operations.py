"""The router of API operations, which checks token, scope and idempotency key."""

import os
from collections.abc import Callable
from functools import wraps
from tempfile import SpooledTemporaryFile
from typing import BinaryIO, Final, TypedDict, TypeVar, Unpack, cast

from django.conf import settings
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from ninja import Router
from ninja.operation import Operation

from evaluations.access import Action, require_evaluation
from evaluations.api.authentication import (
    authenticate_request,
    rate_limit_headers,
    refuse_other_evaluation,
    require_scope,
)
from evaluations.api.idempotency import KEY_HEADER, run_once
from evaluations.api.parser import refuse_unstorable_address
from evaluations.api.problems import Problem
from evaluations.audit.events import act_with_token
from evaluations.domain.json_values import JsonDict, JsonMapping
from evaluations.domain.roles import Scope
from evaluations.web.request_bodies import take_body_file
from evaluations.web.requests import ApiRequest

JSON_TYPE: Final = "application/json"
FORM_TYPE: Final = "multipart/form-data"
BYTES_TYPE: Final = "application/octet-stream"
SAFE_METHODS: Final = frozenset({"GET", "HEAD"})
SPOOL_BLOCK_BYTES: Final = 1024 * 1024
SPOOL_MEMORY_BYTES: Final = 1024 * 1024

ApiView = TypeVar("ApiView", bound=Callable[..., object])


class OperationOptions(TypedDict, total=False):
    """The options of an API operation.

    ``takes``: the media types of its body. ``keeps``: whether its answer, which has no secret, may be stored for its
    idempotency key. ``needs``: the action that must be allowed before a long body is read. ``site_wide``: whether
    tokens for one evaluation may use it though its URL names none. ``extra``: additions to the OpenAPI document.
    """

    takes: str
    site_wide: bool
    keeps: bool
    needs: Action
    extra: JsonDict


class OperationRouter(Router):
    """A router whose operations say their scope. The name of the function is the stable id of the operation."""

    def get_one(
        self, path: str, scope: Scope, answer: object, **options: Unpack[OperationOptions]
    ) -> Callable[[ApiView], ApiView]:
        return self.operation("GET", path, scope, {200: answer}, **options)

    def make(
        self, path: str, scope: Scope, answer: object, **options: Unpack[OperationOptions]
    ) -> Callable[[ApiView], ApiView]:
        return self.operation("POST", path, scope, {201: answer}, **options)

    def do(
        self, path: str, scope: Scope, answer: object, **options: Unpack[OperationOptions]
    ) -> Callable[[ApiView], ApiView]:
        return self.operation("POST", path, scope, {200: answer}, **options)

    def change(
        self, path: str, scope: Scope, answer: object, **options: Unpack[OperationOptions]
    ) -> Callable[[ApiView], ApiView]:
        return self.operation("PATCH", path, scope, {200: answer}, **options)

    def set(
        self, path: str, scope: Scope, answer: object, **options: Unpack[OperationOptions]
    ) -> Callable[[ApiView], ApiView]:
        return self.operation("PUT", path, scope, {200: answer}, **options)

    def remove(self, path: str, scope: Scope, **options: Unpack[OperationOptions]) -> Callable[[ApiView], ApiView]:
        return self.operation("DELETE", path, scope, {204: None}, **options)

    def operation(
        self,
        method: str,
        path: str,
        scope: Scope,
        answers: dict[int, object],
        *,
        takes: str = JSON_TYPE,
        site_wide: bool = False,
        keeps: bool = True,
        needs: Action = Action.LOOK,
        extra: JsonDict | None = None,
    ) -> Callable[[ApiView], ApiView]:

        def add_view(view: ApiView) -> ApiView:
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

        return add_view


def guard_operation(run: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Wrap an operation with authentication, scope, idempotency and error handling."""
    operation: Operation = run.__self__  # type: ignore[attr-defined]
    view = operation.view_func.__dict__

    @wraps(run)
    def run_guarded(request: ApiRequest, **path: str) -> HttpResponseBase:
        allowance = None
        try:
            refuse_unstorable_address(request)
            token, allowance = authenticate_request(request)
            require_scope(token, view["scope"])
            if not (view["site_wide"] and "slug" not in path):
                refuse_other_evaluation(token, path.get("slug"))
            request.auth, request.user = token, token.user
            with act_with_token(token):
                answer = run_write(request, lambda: run(request, **path), view, path.get("slug"))
        except Exception as error:  # noqa: BLE001 - ninja's own way: what is no problem is raised again there
            answer = operation.api.on_exception(request, error)
        for name, value in (rate_limit_headers(allowance) if allowance else {}).items():
            answer[name] = value
        return answer

    return run_guarded


def run_write(
    request: ApiRequest, run: Callable[[], HttpResponseBase], view: JsonMapping, slug: str | None
) -> HttpResponseBase:
    """Run a write after checking permission and media type, once per idempotency key."""
    if request.method in SAFE_METHODS:
        return run()
    refuse_media_type(request, view["takes"])
    if slug is not None and (BYTES_TYPE in view["takes"] or KEY_HEADER in request.headers):
        require_evaluation(request.user, slug, view["needs"])
    if BYTES_TYPE in view["takes"] and request.content_type == BYTES_TYPE:
        request.spooled = spool_body(request)  # type: ignore[attr-defined]
    return run_once(request, request.auth, run) if view["keeps"] else run()


def refuse_media_type(request: HttpRequest, takes: str) -> None:
    has_body = request.headers.get("Content-Length", "0") not in ("", "0") or "Transfer-Encoding" in request.headers
    if has_body and request.content_type not in takes.split(", "):
        raise Problem(
            "unsupported_media_type", f"The body must be {takes}, not “{request.content_type}”. Nothing was done."
        )


def spool_body(request: HttpRequest) -> BinaryIO:
    """The body as a file: the web server's, or else in memory or on disk. Refuses more than an upload may have."""
    if (received := take_body_file(request)) is not None:
        if os.fstat(received.fileno()).st_size > settings.MAX_UPLOAD_BYTES:
            raise body_too_large()
        return received
    scratch = str(settings.SCRATCH_DIR)
    file = SpooledTemporaryFile(max_size=SPOOL_MEMORY_BYTES, dir=scratch)  # noqa: SIM115 - closed with the request
    request._files_to_close = [file]  # type: ignore[attr-defined]
    size = 0
    while block := request.read(SPOOL_BLOCK_BYTES):
        size += len(block)
        if size > settings.MAX_UPLOAD_BYTES:
            raise body_too_large()
        file.write(block)
    file.seek(0)
    return cast(BinaryIO, file)


def body_too_large() -> Problem:
    megabytes = settings.MAX_UPLOAD_BYTES // 1024 // 1024
    return Problem("too_large", f"This server takes files of up to {megabytes:,} MB. Nothing was stored.")
