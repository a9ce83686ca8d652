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
    "malformed": ProblemKind(400, "Malformed request"),
    "token_missing": ProblemKind(401, "Token required"),
    "token_unknown": ProblemKind(401, "Invalid token"),
    "token_expired": ProblemKind(401, "Token expired"),
    "scope_missing": ProblemKind(403, "Token scope missing"),
    "forbidden": ProblemKind(403, "Not allowed"),
    "not_found": ProblemKind(404, "Not found"),
    "method_not_allowed": ProblemKind(405, "Method not allowed"),
    "under_way": ProblemKind(409, "First request with this key still in progress"),
    "changed_elsewhere": ProblemKind(409, "Changed in the meantime"),
    "too_large": ProblemKind(413, "Request too large"),
    "unsupported_media_type": ProblemKind(415, "Unsupported content type"),
    "range_not_satisfiable": ProblemKind(416, "Range not satisfiable"),
    "invalid": ProblemKind(422, "Invalid values"),
    "refused": ProblemKind(422, "Refused"),
    "key_reused": ProblemKind(422, "Key used by another request"),
    "rate_limited": ProblemKind(429, "Too many requests"),
    "server_error": ProblemKind(500, "Server error"),
    "unavailable": ProblemKind(503, "Server unavailable"),
    "disk_full": ProblemKind(507, "Server disk almost full"),
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
    "malformed": "The request could not be parsed. Nothing was done.",
    "forbidden": "Your role does not let you do this.",
    "not_found": "Nothing exists at this address, or this token may not see it.",
    "method_not_allowed": "The Allow header lists the methods of this address.",
    "too_large": "The request is larger than this server accepts. Nothing was stored. Send less at once.",
    "range_not_satisfiable": "The file is shorter than the requested range.",
    "server_error": "This is an error of the server, and it was logged. Try again later.",
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
