"""The pages of runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby

from django.contrib import messages
from django.http import HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from evaluations.access import Action, is_allowed, require_evaluation
from evaluations.domain.errors import InputRefused
from evaluations.domain.judges import (
    ACTIVE_RUN_STATES,
    FAILURE_STATES,
    OPEN_CALL_STATES,
    CallState,
    RunChannel,
    RunState,
)
from evaluations.domain.money import parse_budget_usd
from evaluations.jobs.queue import has_open_job
from evaluations.judges.calls.reply_reparse import REPARSE, begin_reparse, find_latest_reparse
from evaluations.judges.endpoints.outages import describe_outage, probe_endpoint_of_run
from evaluations.judges.guards import get_run_or_404, may_see_calls
from evaluations.judges.runs.estimates import estimate_run
from evaluations.judges.runs.forms import RetryForm
from evaluations.judges.runs.result_summary import explain_unusable_run, summarise_results
from evaluations.judges.runs.results import get_judge_results
from evaluations.judges.runs.selection import RETRYABLE_STATES, count_retryable_calls
from evaluations.judges.runs.selectors import (
    RunProgress,
    count_calls_of_runs,
    find_runs_of_unknown_cost,
    measure_run_progress,
)
from evaluations.judges.runs.services import (
    archive_run,
    cancel_run,
    change_budget,
    delete_run,
    pause_run,
    restore_run,
    resume_run,
    start_run,
    why_run_is_kept,
)
from evaluations.models.comparisons import Comparison
from evaluations.models.judges import Endpoint, Judge
from evaluations.models.runs import Run
from evaluations.visibility import reveal_judge_results
from evaluations.web.forms import submit_form
from evaluations.web.htmx import STOP_POLLING
from evaluations.web.notices import add_notice_with_undo
from evaluations.web.pagination import paginate
from evaluations.web.requests import AuthenticatedRequest
from evaluations.web.sorting import SortColumn, parse_sorting


@never_cache
@require_safe
def run(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    row = get_run_or_404(request, slug, pk)
    return render(request, "run/run.html", run_context(request, row))


@never_cache
@require_safe
def run_progress(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    """The part of the page that changes; once the run has ended, with the rest of what it then shows."""
    row = get_run_or_404(request, slug, pk)
    context = run_context(request, row)
    if not context["is_moving"]:
        return render(request, "run/_final_progress.html", context, status=STOP_POLLING)
    if (row.state == RunState.PAUSED) is not ("paused" in request.GET):
        # Another person paused or resumed it: the buttons differ.
        return HttpResponse(headers={"HX-Refresh": "true"})
    return render(request, "run/_live_progress.html", context)


@require_POST
def run_pause(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    return change_run(request, slug, pk, lambda row: pause_run(row, user=request.user))


@require_POST
def run_resume(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    """Resume the run, with a new budget if the form has one."""

    def resume(row: Run) -> None:
        resume_run(row, user=request.user, budget=parse_posted_budget(request))

    return change_run(request, slug, pk, resume)


@require_POST
def run_budget(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    """Change the budget; an empty field removes it."""

    def change(row: Run) -> None:
        change_budget(row, parse_posted_budget(request), user=request.user)
        messages.success(request, "Budget saved.")

    return change_run(request, slug, pk, change)


@require_POST
def run_try_now(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    """Ask the endpoint now whether it is back."""
    return change_run(request, slug, pk, probe_endpoint_of_run)


@require_POST
def run_cancel(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    return change_run(request, slug, pk, lambda row: cancel_run(row, user=request.user))


@require_POST
def run_archive(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    row = get_run_or_404(request, slug, pk, Action.MANAGE)
    try:
        archive_run(row, user=request.user)
    except InputRefused as refused:
        return render_refused_run(request, row, refused)
    undo_url = reverse("run_restore", args=[slug, pk])
    add_notice_with_undo(request, f"Run {pk} archived. Its verdicts still count in results.", undo_url)
    return redirect("runs", slug)


@require_POST
def run_restore(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    def restore(row: Run) -> None:
        restore_run(row, user=request.user)
        messages.success(request, f"Run {pk} restored.")

    return change_run(request, slug, pk, restore)


@require_POST
def run_delete(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    """Delete a run in which nothing was asked."""
    row = get_run_or_404(request, slug, pk, Action.MANAGE)
    try:
        delete_run(row, user=request.user)
    except InputRefused as refused:
        return render_refused_run(request, row, refused)
    messages.success(request, f"Run {pk} deleted.")
    return redirect("runs", slug)


def parse_posted_budget(request: AuthenticatedRequest) -> int | None:
    text = request.POST.get("budget", "").strip()
    return parse_budget_usd(text, "Budget") if text else None


def change_run(request: AuthenticatedRequest, slug: str, pk: int, change: Callable[[Run], object]) -> HttpResponse:
    """Change the run and redirect to its page; if the change is refused, show the page with the reason."""
    try:
        change(get_run_or_404(request, slug, pk, Action.MANAGE))
    except InputRefused as refused:
        return render_refused_run(request, get_run_or_404(request, slug, pk), refused)
    return redirect("run", slug, pk)


def render_refused_run(request: AuthenticatedRequest, row: Run, refused: InputRefused) -> HttpResponse:
    return render(request, "run/run.html", run_context(request, row) | {"refused": str(refused)}, status=422)


def run_context(request: AuthenticatedRequest, row: Run) -> dict[str, object]:
    progress = measure_run_progress(row)
    is_active = row.state in ACTIVE_RUN_STATES
    context = reparse_context(row.judge) | results_context(request, row, is_active=is_active)
    return context | {
        "page": "runs",
        "evaluation": row.evaluation,
        "run": row,
        "progress": progress,
        "is_active": is_active,
        "is_cancellable": is_active or (row.state == RunState.STOPPED and progress.counts[CallState.PENDING] > 0),
        "is_deletable": is_allowed(request.user, Action.MANAGE, row.evaluation) and not why_run_is_kept(row),
        "tiles": build_tiles(progress, is_active),
        "batches": row.batches.order_by("pk") if row.channel == RunChannel.BATCH else [],
        # A cancelled or stopped run may still have requests in flight.
        "is_moving": is_active or progress.counts[CallState.RUNNING] > 0,
        "sees_calls": may_see_calls(request, row.evaluation),
        "quota": find_exhausted_quota(row),
        "outage": describe_outage(row.judge.endpoint),
        "not_run": explain_unusable_run(row, progress),
    }


def results_context(request: AuthenticatedRequest, row: Run, *, is_active: bool) -> dict[str, object]:
    """What the judge has chosen so far, for those who may see it; others see how far the run is."""
    if not reveal_judge_results(request.user, row.evaluation):
        return {"results": None}
    results = get_judge_results(row.judge, is_active=is_active)
    return {
        "results": results,
        "has_results": bool(results.judged),
        "summary": "" if is_active else summarise_results(row.judge.name, results),
        "is_of_several_runs": Run.objects.filter(judge=row.judge).exclude(pk=row.pk).exists(),
    }


@dataclass(frozen=True)
class Tile:
    """How many calls of a run are in one state."""

    state: str
    label: str
    count: int
    is_failure: bool


def build_tiles(progress: RunProgress, is_active: bool) -> list[Tile]:
    """The tiles with calls; an active run also has those that wait, and every run its answers."""
    always = {CallState.ANSWERED, *([CallState.PENDING] if is_active else [])}
    labels = {CallState.RUNNING: "in flight", CallState.PENDING: "pending" if is_active else "not run"}
    return [
        Tile(state, labels.get(CallState(state), state.replace("_", " ")), count, state in progress.failures)
        for state, count in progress.counts.items()
        if count or state in always
    ]


def find_exhausted_quota(row: Run) -> Endpoint | None:
    """The endpoint whose exhausted quota the run waits for, if any."""
    endpoint = row.judge.endpoint
    if endpoint is None or endpoint.paused_until is None or endpoint.paused_until <= timezone.now():
        return None
    return endpoint if endpoint.pause_reason else None


def reparse_context(judge: Judge) -> dict[str, object]:
    """The latest re-parse of this judge's replies, and whether it is in progress."""
    latest = find_latest_reparse(judge)
    return {"reparse": latest, "is_reparsing": latest is not None and has_open_job(REPARSE, latest.pk)}


@never_cache
@require_http_methods(["GET", "HEAD", "POST"])
def run_reparse(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    """Begin a re-parse; a GET returns its progress, as the polled part of the run's page."""
    row = get_run_or_404(request, slug, pk, Action.MANAGE if request.method == "POST" else Action.SEE_ALL)
    if request.method != "POST":
        context = {"evaluation": row.evaluation, "run": row, **reparse_context(row.judge)}
        return render(request, "run/_reparse.html", context)
    try:
        calls = begin_reparse(row.judge, user=request.user).calls
    except InputRefused as refused:
        return render_refused_run(request, row, refused)
    messages.success(request, f"Re-parsing the replies of {calls:,} call{'s' if calls > 1 else ''}.")
    return redirect("run", slug, pk)


# No usable answer was paid for: preselected for a retry.
UNPAID_STATES = (CallState.FAILED, CallState.CANCELLED)


@require_http_methods(["GET", "HEAD", "POST"])
def run_retry(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    """Start a new run of the same judge; failed calls of its other runs are asked again as well."""
    row = get_run_or_404(request, slug, pk, Action.MANAGE)
    if request.method != "POST":
        return render_retry_form(request, row, RetryForm(initial=request.GET.dict()), request.GET)
    form = RetryForm(request.POST)
    if form.is_valid():
        states, budget = form.cleaned_data["states"], form.cleaned_data["budget"]
        if run := submit_form(form, start_run, row.judge, user=request.user, only_states=states, budget=budget):
            messages.success(request, "Retry started.")
            return redirect("run", slug, run.pk)
    return render_retry_form(request, row, form, request.POST, status=422)


def render_retry_form(
    request: AuthenticatedRequest, row: Run, form: RetryForm, query: QueryDict, status: int = 200
) -> HttpResponse:
    counts = count_retryable_calls(row.judge)
    chosen = find_selected_states(counts, query)
    context = {
        "page": "runs",
        "evaluation": row.evaluation,
        "run": row,
        "judge": row.judge,
        "form": form,
        "states": [(state, count, state in chosen) for state, count in counts.items()],
        "estimate": estimate_run(row.judge, only_states=chosen) if chosen else None,
    }
    only_estimate = request.htmx and request.method == "GET"
    template = "run_retry/_estimate.html" if only_estimate else "run_retry/run_retry.html"
    return render(request, template, context, status=status)


def find_selected_states(counts: dict[str, int], query: QueryDict) -> Sequence[str]:
    """The chosen states; those without a paid answer before any was chosen."""
    chosen = query.getlist("states") if query else [state.value for state in UNPAID_STATES]
    return [state for state in RETRYABLE_STATES if state in chosen and counts.get(state)]


@require_safe
def runs(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    evaluation = require_evaluation(request.user, slug)
    archived = "archived" in request.GET
    all_runs = Run.objects.filter(evaluation=evaluation)
    listed = (all_runs.archived() if archived else all_runs.current()).select_related("judge__endpoint", "user")
    sorting = parse_sorting(request, SortColumn("started", descending=True))
    page = paginate(request, listed, sorting=sorting)
    context = {
        "page": "runs",
        "evaluation": evaluation,
        "runs": page,
        "sorting": sorting,
        "batches": group_runs_by_panel(page.rows),
        "archived": archived,
        "any_archived": archived or all_runs.archived().exists(),
        "has_judges": evaluation.judges.exists(),
        "has_comparisons": Comparison.objects.filter(evaluation=evaluation).exists(),
    }
    return render(request, "runs/runs.html", context)


@dataclass(frozen=True)
class RunRow:
    """A line of the list of runs. ``settled``: calls with their outcome."""

    run: Run
    total: int
    settled: int
    answered: int
    failed: int
    cost_unknown: bool

    @property
    def is_unusable(self) -> bool:
        """Whether the run is over and no reply could be used."""
        return self.run.state not in ACTIVE_RUN_STATES and bool(self.failed) and not self.answered


def group_runs_by_panel(listed: Sequence[Run]) -> list[list[RunRow]]:
    """The runs grouped by panel, each with its progress."""
    counts = count_calls_of_runs(run.pk for run in listed)
    unknown = find_runs_of_unknown_cost(listed)
    rows = [build_run_row(run, counts[run.pk], cost_unknown=run.pk in unknown) for run in listed]
    return [list(batch) for _, batch in groupby(rows, key=lambda row: row.run.batch)]


def build_run_row(run: Run, counts: dict[str, int], *, cost_unknown: bool) -> RunRow:
    total = sum(counts.values())
    unsettled = sum(counts.get(state, 0) for state in (*OPEN_CALL_STATES, CallState.CANCELLED))
    failed = sum(counts.get(state, 0) for state in FAILURE_STATES)
    return RunRow(run, total, total - unsettled, counts.get(CallState.ANSWERED, 0), failed, cost_unknown)
