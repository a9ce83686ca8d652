"""One run, live: how far it is, what it cost and what failed; and how to hold it, let it go on, or end it."""

from collections.abc import Callable
from typing import Any, cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from evaluations import access
from evaluations.access import Action
from evaluations.domain import ACTIVE_RUN_STATES, CallState, Channel, InputRefused, RunState
from evaluations.models import Endpoint, Evaluation, Judge, Run, User
from evaluations.services.judging.pricing import nano_usd
from evaluations.services.judging.progressing import progress
from evaluations.services.judging.rereading import ENDED, last_event
from evaluations.services.judging.running import cancel, change_budget, pause, resume
from evaluations.tasks import nudge, work_run

STOP_POLLING = 286  # htmx's own: swap once more, then ask no more


@never_cache
@require_safe
def run(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    row = run_for(request, slug, pk)
    return render(request, "run/run.html", context_of(request, row))


@never_cache
@require_safe
def run_progress(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """The part of the page that changes; the last time it brings what an ended run shows besides."""
    row = run_for(request, slug, pk)
    context = context_of(request, row)
    if not context["is_moving"]:
        return render(request, "run/_ended.html", context, status=STOP_POLLING)
    if (row.state == RunState.PAUSED) is not ("paused" in request.GET):
        # Someone else held it or let it go on: other buttons are wanted.
        return HttpResponse(headers={"HX-Refresh": "true"})
    return render(request, "run/_moving.html", context)


@require_POST
def run_pause(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    row = run_for(request, slug, pk, Action.MANAGE)
    return changed(request, row, lambda: pause(row, user=cast(User, request.user)))


@require_POST
def run_resume(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """With a budget, where the form has one."""
    row = run_for(request, slug, pk, Action.MANAGE)

    def go_on() -> None:
        given = request.POST.get("budget", "").strip()
        budget = nano_usd(given, "Budget") if given else None
        resume(row, user=cast(User, request.user), budget=budget)
        nudge(work_run, row.pk)

    return changed(request, row, go_on)


@require_POST
def run_budget(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Another budget; an empty one takes it away."""
    row = run_for(request, slug, pk, Action.MANAGE)

    def change() -> None:
        given = request.POST.get("budget", "").strip()
        budget = nano_usd(given, "Budget") if given else None
        change_budget(row, budget, user=cast(User, request.user))
        messages.success(request, "The budget is changed.")

    return changed(request, row, change)


@require_POST
def run_cancel(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    row = run_for(request, slug, pk, Action.MANAGE)
    return changed(request, row, lambda: cancel(row, user=cast(User, request.user)))


def changed(request: HttpRequest, row: Run, change: Callable[[], None]) -> HttpResponse:
    """Back to the run, which says how it stands, once it is changed; its page with the reason where it cannot be."""
    try:
        change()
    except InputRefused as refused:
        row = run_for(request, row.evaluation.slug, row.pk)
        return render(request, "run/run.html", context_of(request, row) | {"refused": str(refused)}, status=422)
    return redirect("run", row.evaluation.slug, row.pk)


def run_for(request: HttpRequest, slug: str, pk: int, action: Action = Action.LOOK) -> Run:
    evaluation = access.evaluation_for(cast(User, request.user), slug, action)
    runs = Run.objects.select_related("judge__rubric_version__rubric", "judge__endpoint", "user", "evaluation")
    return get_object_or_404(runs, evaluation=evaluation, pk=pk)


def context_of(request: HttpRequest, row: Run) -> dict[str, Any]:
    told = progress(row)
    is_active = row.state in ACTIVE_RUN_STATES
    return {
        "page": "runs",
        "evaluation": row.evaluation,
        "run": row,
        "progress": told,
        "is_active": is_active,
        "batches": row.batches.order_by("pk") if row.channel == Channel.BATCH else [],
        # A run that was cancelled or stopped still has answers on their way.
        "is_moving": is_active or told.counts[CallState.RUNNING] > 0,
        "sees_calls": sees_calls(request, row.evaluation),
        "quota": quota_of(row),
    } | rereading_of(row.judge)


def quota_of(row: Run) -> Endpoint | None:
    """The endpoint while a quota of it is used up: the run waits until then."""
    endpoint = row.judge.endpoint
    is_waiting = endpoint is not None and endpoint.paused_until is not None and endpoint.paused_until > timezone.now()
    return endpoint if is_waiting and endpoint and endpoint.pause_reason else None


def rereading_of(judge: Judge) -> dict[str, Any]:
    """How the latest re-reading of this judge's replies stands; nothing before the first."""
    event = last_event(judge)
    return {"reread": event, "is_rereading": event is not None and event.verb != ENDED}


def sees_calls(request: HttpRequest, evaluation: Evaluation) -> bool:
    """Replies speak of choices: a reviewer sees how far a run is, and none of them."""
    return access.may(cast(User, request.user), Action.SEE_ALL, evaluation)
