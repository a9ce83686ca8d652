"""One judge: what it is, for good, and what exactly it is sent."""

import json
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import urlencode

from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from evaluations import access
from evaluations.access import Action
from evaluations.domain import FAILURE_STATES, JudgeKind, Shown
from evaluations.models import Comparison, Evaluation, Judge, Response, Run, User
from evaluations.services.judging.drafting import preview_of_made_up
from evaluations.services.judging.estimating import estimate
from evaluations.services.judging.judging import preview, sent_as_in_words
from evaluations.services.judging.pricing import price_for
from evaluations.services.judging.trying import Subject, Trial, call_about, neighbours, only_this, subject_of

RELATED = ("endpoint", "rubric_version__rubric")
ORDERS = ((Shown.AS_STORED, "A first"), (Shown.SWAPPED, "B first"))
RUNS_SHOWN = 5


@require_safe
def judge(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The page; ``subject`` and ``shown`` say what its prompt is about."""
    evaluation = access.evaluation_for(cast(User, request.user), slug)
    return shown_page(request, judge_for(evaluation, pk))


def shown_page(request: HttpRequest, row: Judge, tried: Trial | None = None) -> HttpResponse:
    context: dict[str, Any] = {
        "page": "judges",
        "evaluation": row.evaluation,
        "judge": row,
        "runs": latest_runs(row),
        "tried": tried,
        "sent_as": sent_as_in_words(row),
    }
    if row.kind == JudgeKind.LLM:
        extra_body = json.dumps(row.extra_body, ensure_ascii=False) if row.extra_body else ""
        context |= prompt_for(request, row) | {"price": price_for(row), "extra_body": extra_body}
    return render(request, "judge/judge.html", context)


def prompt_for(request: HttpRequest, row: Judge) -> dict[str, Any]:
    """About what was asked for; about something made up for whoever is not to know which response is A."""
    shown = order_asked(request.GET)
    if not access.may(cast(User, request.user), Action.SEE_ALL, row.evaluation):
        return {"is_made_up": True, "shown": shown, "orders": ORDERS, "preview": preview_of_made_up(row, shown)}
    subject = subject_asked(request.GET, row)
    return prompt_shown(request, row, subject, shown) if subject else {}


def prompt_shown(request: HttpRequest, row: Judge, subject: Subject, shown: Shown) -> dict[str, Any]:
    """The exact messages, the way to others, and what is known of an answer."""
    user, (before, after) = cast(User, request.user), neighbours(row, subject)
    call = call_about(row, subject, shown)
    may_try = access.may(user, Action.MANAGE, row.evaluation)
    return {
        "subject": subject,
        "responses": [subject] if isinstance(subject, Response) else in_order(subject, shown),
        "shown": shown,
        "orders": ORDERS,
        "before": before,
        "after": after,
        "preview": preview(row, subject, shown),
        "call": call,
        "has_failed": call is not None and call.state in FAILURE_STATES,
        "estimate": estimate(row, **only_this(subject, shown)) if may_try else None,
    }


def latest_runs(row: Judge) -> "QuerySet[Run]":
    runs: QuerySet[Run] = row.runs.order_by("-pk")
    return runs[:RUNS_SHOWN]


def in_order(comparison: Comparison, shown: Shown) -> list[Response]:
    responses = [comparison.response_a, comparison.response_b]
    return responses[::-1] if shown == Shown.SWAPPED else responses


def judge_for(evaluation: Evaluation, pk: int) -> Judge:
    row = get_object_or_404(Judge.objects.select_related(*RELATED), evaluation=evaluation, pk=pk)
    row.evaluation = evaluation
    return row


# ---- what the prompt is about --------------------------------------------------------------


def subject_asked(given: Mapping[str, str], row: Judge) -> Subject | None:
    """The comparison or response of that number, or the first; 404 for one that this judge cannot be asked about."""
    wanted = given.get("subject", "")
    found = subject_of(row, number_in(wanted) if wanted else None)
    if wanted and found is None:
        raise Http404
    return found


def number_in(text: str) -> int:
    """The number of a row; 404 for what can be none."""
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise Http404
    return int(text) or -1


def order_asked(given: Mapping[str, str]) -> Shown:
    return Shown.SWAPPED if given.get("shown") == Shown.SWAPPED else Shown.AS_STORED


def query_of(subject: Subject, shown: Shown) -> str:
    return urlencode({"subject": subject.pk, "shown": str(shown)})
