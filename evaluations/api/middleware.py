"""What happens around every request under /api: whatever goes wrong is told as a problem."""

from collections.abc import Callable
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from evaluations.api.problems import BY_STATUS, CONTENT_TYPE, IN_GENERAL, Problem, told

HERE: Final = "/api/"


class ProblemMiddleware:
    """A program is told in its own terms what pages say in HTML: no such address, too large, our fault."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        answer = self.get_response(request)
        if not f"{request.path}/".startswith(HERE):
            return answer
        answer["Cache-Control"] = "no-store"
        if answer.status_code not in BY_STATUS or answer["Content-Type"].startswith(CONTENT_TYPE):
            return answer
        code = BY_STATUS[answer.status_code]
        kept = {name: answer[name] for name in ("Allow", "Cache-Control", "Content-Range") if name in answer}
        return told(request, Problem(code, IN_GENERAL[code], headers=kept))
