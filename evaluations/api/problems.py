"""What went wrong, as RFC 9457 has it: the same shape everywhere, with a code that stays."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from django.http import HttpRequest, JsonResponse

CONTENT_TYPE: Final = "application/problem+json"


@dataclass(frozen=True)
class Kind:
    status: int
    title: str


KINDS: Final[Mapping[str, Kind]] = {
    "malformed": Kind(400, "The request cannot be read"),
    "token_missing": Kind(401, "A token is needed"),
    "token_unknown": Kind(401, "The token opens nothing"),
    "token_expired": Kind(401, "The token has expired"),
    "scope_missing": Kind(403, "The token may not be used for this"),
    "forbidden": Kind(403, "Your role does not let you do this"),
    "not_found": Kind(404, "There is nothing here for you"),
    "method_not_allowed": Kind(405, "This cannot be done here"),
    "under_way": Kind(409, "The first request under this key is not answered yet"),
    "changed_elsewhere": Kind(409, "It was changed meanwhile"),
    "too_large": Kind(413, "This is more than the server takes"),
    "unsupported_media_type": Kind(415, "The body is of a kind that is not taken here"),
    "range_not_satisfiable": Kind(416, "The file has no such part"),
    "invalid": Kind(422, "Some values cannot be"),
    "refused": Kind(422, "This cannot be done"),
    "key_reused": Kind(422, "The key belongs to another request"),
    "rate_limited": Kind(429, "Too many requests"),
    "server_error": Kind(500, "Something went wrong here"),
}
# What an answer that was made elsewhere means, by its status alone.
BY_STATUS: Final[Mapping[int, str]] = {
    400: "malformed",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    413: "too_large",
    416: "range_not_satisfiable",
    500: "server_error",
}
IN_GENERAL: Final[Mapping[str, str]] = {
    "malformed": "The request is not of a form that can be read. Nothing was done.",
    "forbidden": "Your role does not let you do this.",
    "not_found": "There is nothing at this address, or nothing that this token may see.",
    "method_not_allowed": "See the header Allow for what can be done at this address.",
    "too_large": "What was sent is larger than this server takes. Nothing was stored: send less at once.",
    "range_not_satisfiable": "The file is shorter than the part that was asked for.",
    "server_error": "The fault is on this side, and it was logged. Try again later.",
}


@dataclass(frozen=True)
class Fault:
    """One value that cannot be: where it stands, as body.name or query.limit, and why."""

    field: str
    message: str


class Problem(Exception):
    """An answer to a request that cannot be met; raised anywhere below a door of the API."""

    def __init__(
        self, code: str, detail: str, *, faults: Sequence[Fault] = (), headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.code, self.detail, self.faults, self.headers = code, detail, faults, headers or {}


def told(request: HttpRequest, problem: Problem) -> JsonResponse:
    kind = KINDS[problem.code]
    body: dict[str, Any] = {
        "type": f"urn:judgeweb:problem:{problem.code}",
        "title": kind.title,
        "status": kind.status,
        "detail": problem.detail,
        "instance": request.path,
        "code": problem.code,
        "errors": [{"field": fault.field, "message": fault.message} for fault in problem.faults],
    }
    answer = JsonResponse(body, status=kind.status, content_type=CONTENT_TYPE, json_dumps_params={"allow_nan": False})
    for name, value in problem.headers.items():
        answer[name] = value
    return answer
