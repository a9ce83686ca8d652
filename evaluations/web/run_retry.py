"""Ask again what failed: which states, chosen one by one, and what that costs before it is bought."""

from collections.abc import Sequence
from typing import cast

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from evaluations.access import Action
from evaluations.domain import CallState, InputRefused
from evaluations.forms.run_retry import RetryForm
from evaluations.models import Run, User
from evaluations.services.judging.estimating import estimate
from evaluations.services.judging.running import start_run
from evaluations.services.judging.selecting import RETRYABLE, retryable
from evaluations.tasks import nudge, work_run
from evaluations.web.run import run_for

# No usable answer was paid for: asked again unless something else is chosen.
UNPAID = (CallState.FAILED, CallState.CANCELLED)


@require_http_methods(["GET", "HEAD", "POST"])
def run_retry(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """A new run of the judge of this one; the failed calls of its other runs are asked with them."""
    row = run_for(request, slug, pk, Action.MANAGE)
    if request.method != "POST":
        return shown(request, row, RetryForm(initial=request.GET.dict()), request.GET)
    form = RetryForm(request.POST)
    if form.is_valid() and (run := started(form, row, cast(User, request.user))):
        nudge(work_run, run.pk)
        messages.success(request, f"“{row.judge.name}” is asked again.")
        return redirect("run", slug, run.pk)
    return shown(request, row, form, request.POST, status=422)


def started(form: RetryForm, row: Run, user: User) -> Run | None:
    chosen = form.cleaned_data
    try:
        return start_run(row.judge, user=user, only_states=chosen["states"], budget=chosen["budget"])
    except InputRefused as refused:
        form.add_error(None, str(refused))
        return None


def shown(request: HttpRequest, row: Run, form: RetryForm, given: QueryDict, status: int = 200) -> HttpResponse:
    counts = retryable(row.judge)
    chosen = chosen_of(counts, given)
    context = {
        "page": "runs",
        "evaluation": row.evaluation,
        "run": row,
        "judge": row.judge,
        "form": form,
        "states": [(state, count, state in chosen) for state, count in counts.items()],
        "estimate": estimate(row.judge, only_states=chosen) if chosen else None,
    }
    only_estimate = request.htmx and request.method == "GET"  # type: ignore[attr-defined]
    template = "run_retry/_estimate.html" if only_estimate else "run_retry/run_retry.html"
    return render(request, template, context, status=status)


def chosen_of(counts: dict[str, int], given: QueryDict) -> Sequence[str]:
    """The states that were named; before any was, those in which nothing usable was paid for."""
    wanted = given.getlist("states") if given else [state.value for state in UNPAID]
    return [state for state in RETRYABLE if state in wanted and counts.get(state)]
