"""One call of a judge: every request that was made for it, and what came back word for word."""

from typing import Final, cast

from django.contrib import messages
from django.db.models import Q, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from evaluations import access
from evaluations.access import Action
from evaluations.domain import FAILURE_STATES, InputRefused
from evaluations.models import Attempt, Call, Comparison, Score, User, Verdict
from evaluations.services.judging.confirmation import confirm
from evaluations.services.reporting.noticing import note_seen

RELATED: Final = (
    *("judge__evaluation", "run", "copied_from__judge", "source_import", "confirmed_by"),
    *("comparison__query", "response__query", "response__candidate"),
)


@never_cache
@require_safe
def call(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    return shown(request, call_for(request, slug, pk, Action.SEE_ALL))


@never_cache
@require_POST
def call_confirm(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Count the verdict of a suspect call after all."""
    row = call_for(request, slug, pk, Action.MANAGE)
    try:
        confirm(row, user=cast(User, request.user))
    except InputRefused as refused:
        return shown(request, row, refused=str(refused), status=422)
    messages.success(request, "Confirmed. The verdict counts now.")
    return redirect("call", slug, pk)


def call_for(request: HttpRequest, slug: str, pk: int, action: Action) -> Call:
    evaluation = access.evaluation_for(cast(User, request.user), slug, action)
    return get_object_or_404(Call.all_rows.select_related(*RELATED), judge__evaluation=evaluation, pk=pk)


def shown(request: HttpRequest, row: Call, *, refused: str = "", status: int = 200) -> HttpResponse:
    user, evaluation = cast(User, request.user), row.judge.evaluation
    comparisons = list(comparisons_of(row))
    if access.may(user, Action.REVIEW, evaluation):
        note_seen(user, evaluation, comparisons, tests=True)
    context = {
        "page": "runs",
        "evaluation": evaluation,
        "call": row,
        "refused": refused,
        "comparisons": comparisons,
        "has_failed": row.state in FAILURE_STATES,
        "attempts": Attempt.objects.filter(call=row).select_related("run").order_by("number"),
        "verdicts": Verdict.all_rows.filter(call=row).select_related("aspect").order_by("aspect__key"),
        "scores": Score.all_rows.filter(call=row).select_related("aspect").order_by("aspect__key"),
    }
    return render(request, "call/call.html", context, status=status)


def comparisons_of(row: Call) -> "QuerySet[Comparison]":
    """The comparisons that its answer says something about: one, or all those of the response."""
    if row.comparison_id is not None:
        return Comparison.objects.filter(pk=row.comparison_id)
    return Comparison.objects.filter(Q(response_a=row.response_id) | Q(response_b=row.response_id))
