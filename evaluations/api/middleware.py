"""Problem documents for errors that arise outside an operation."""

from collections.abc import Callable

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from evaluations.api.problems import CODES_BY_STATUS, DEFAULT_DETAILS, PROBLEM_TYPE, Problem, problem_response
from evaluations.web.requests import is_api_request


class ProblemMiddleware:
    """Turns HTML error pages under /api into problem documents."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        answer = self.get_response(request)
        if not is_api_request(request):
            return answer
        answer["Cache-Control"] = "private, no-store"
        if answer.status_code not in CODES_BY_STATUS or answer["Content-Type"].startswith(PROBLEM_TYPE):
            return answer
        code = CODES_BY_STATUS[answer.status_code]
        kept = {
            name: answer[name] for name in ("Allow", "Cache-Control", "Content-Range", "Retry-After") if name in answer
        }
        return problem_response(request, Problem(code, DEFAULT_DETAILS[code], headers=kept))
