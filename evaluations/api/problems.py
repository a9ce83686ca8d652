"""RFC 9457 problem documents with stable codes."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest, JsonResponse

from evaluations.domain.disk_space import DISK_FULL_SENTENCE
from evaluations.domain.json_values import JsonDict
from evaluations.web.error_views import UNAVAILABLE_SENTENCE

PROBLEM_TYPE: Final = "application/problem+json"


@dataclass(frozen=True)
class ProblemKind:
    status: int
    title: str


PROBLEM_KINDS: Final[Mapping[str, ProblemKind]] = {
    "malformed": ProblemKind(400, "The request cannot be read"),
    "token_missing": ProblemKind(401, "A token is needed"),
    "token_unknown": ProblemKind(401, "The token opens nothing"),
    "token_expired": ProblemKind(401, "The token has expired"),
    "scope_missing": ProblemKind(403, "The token may not be used for this"),
    "forbidden": ProblemKind(403, "Your role does not let you do this"),
    "not_found": ProblemKind(404, "There is nothing here for you"),
    "method_not_allowed": ProblemKind(405, "This cannot be done here"),
    "under_way": ProblemKind(409, "The first request under this key is not answered yet"),
    "changed_elsewhere": ProblemKind(409, "It was changed meanwhile"),
    "too_large": ProblemKind(413, "This is more than the server takes"),
    "unsupported_media_type": ProblemKind(415, "The body is of a kind that is not taken here"),
    "range_not_satisfiable": ProblemKind(416, "The file has no such part"),
    "invalid": ProblemKind(422, "Some values cannot be"),
    "refused": ProblemKind(422, "This cannot be done"),
    "key_reused": ProblemKind(422, "The key belongs to another request"),
    "rate_limited": ProblemKind(429, "Too many requests"),
    "server_error": ProblemKind(500, "Something went wrong here"),
    "unavailable": ProblemKind(503, "The server cannot answer now"),
    "disk_full": ProblemKind(507, "The server’s disk is almost full"),
}
# What an answer that was made elsewhere means, by its status alone.
CODES_BY_STATUS: Final[Mapping[int, str]] = {
    400: "malformed",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    413: "too_large",
    416: "range_not_satisfiable",
    500: "server_error",
    503: "unavailable",
    507: "disk_full",
}
DEFAULT_DETAILS: Final[Mapping[str, str]] = {
    "malformed": "The request is not of a form that can be read. Nothing was done.",
    "forbidden": "Your role does not let you do this.",
    "not_found": "There is nothing at this address, or nothing that this token may see.",
    "method_not_allowed": "See the header Allow for what can be done at this address.",
    "too_large": "What was sent is larger than this server takes. Nothing was stored: send less at once.",
    "range_not_satisfiable": "The file is shorter than the part that was asked for.",
    "server_error": "The fault is on this side, and it was logged. Try again later.",
    "unavailable": UNAVAILABLE_SENTENCE,
    "disk_full": DISK_FULL_SENTENCE,
}


@dataclass(frozen=True)
class FieldError:
    """One invalid value: where it is, as body.name or query.limit, and why."""

    field: str
    message: str


class Problem(Exception):
    """The answer to an API request that cannot be met."""

    def __init__(
        self, code: str, detail: str, *, faults: Sequence[FieldError] = (), headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(detail)
        self.code, self.detail, self.faults, self.headers = code, detail, faults, headers or {}


def problem_response(request: HttpRequest, problem: Problem) -> JsonResponse:
    kind = PROBLEM_KINDS[problem.code]
    body: JsonDict = {
        "type": f"urn:judgeweb:problem:{problem.code}",
        "title": kind.title,
        "status": kind.status,
        "detail": problem.detail,
        "instance": request.path,
        "code": problem.code,
        "errors": [{"field": fault.field, "message": fault.message} for fault in problem.faults],
    }
    answer = JsonResponse(body, status=kind.status, content_type=PROBLEM_TYPE, json_dumps_params={"allow_nan": False})
    for name, value in problem.headers.items():
        answer[name] = value
    return answer
