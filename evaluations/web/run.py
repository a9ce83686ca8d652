"""One run, live: how far it is, what failed, and how to end it."""

from typing import Any, cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from evaluations import access
from evaluations.access import Action
from evaluations.domain import ACTIVE_RUN_STATES, CallState, InputRefused
from evaluations.models import Evaluation, Run, User
from evaluations.services.judging.progressing import progress
from evaluations.services.judging.running import cancel

STOP_POLLING = 286  # htmx's own: swap once more, then ask no more


@never_cache
@require_safe
def run(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    row = run_for(request, slug, pk)
    return render(request, "run/run.html", standing(request, row))


@never_cache
@require_safe
def run_progress(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The part of the page that changes; the last time it brings what an ended run shows besides."""
    row = run_for(request, slug, pk)
    context = standing(request, row)
    if context["is_moving"]:
        return render(request, "run/_moving.html", context)
    return render(request, "run/_ended.html", context, status=STOP_POLLING)


@require_POST
def run_cancel(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    row = run_for(request, slug, pk, Action.MANAGE)
    try:
        cancel(row, user=cast(User, request.user))
    except InputRefused as refused:
        messages.info(request, str(refused))
    else:
        messages.success(request, "Cancelled. Answers on their way are still stored; nothing more is asked.")
    return redirect("run", slug, pk)


def run_for(request: HttpRequest, slug: str, pk: int, action: Action = Action.LOOK) -> Run:
    evaluation = access.evaluation_for(cast(User, request.user), slug, action)
    return get_object_or_404(Run.objects.select_related("judge", "user", "evaluation"), evaluation=evaluation, pk=pk)


def standing(request: HttpRequest, row: Run) -> dict[str, Any]:
    told = progress(row)
    is_active = row.state in ACTIVE_RUN_STATES
    return {
        "page": "runs",
        "evaluation": row.evaluation,
        "run": row,
        "progress": told,
        "is_active": is_active,
        # A run that was cancelled or stopped still has answers on their way.
        "is_moving": is_active or told.counts[CallState.RUNNING] > 0,
        "sees_calls": sees_calls(request, row.evaluation),
    }


def sees_calls(request: HttpRequest, evaluation: Evaluation) -> bool:
    """Replies speak of choices: a reviewer sees how far a run is, and none of them."""
    return access.may(cast(User, request.user), Action.SEE_ALL, evaluation)
