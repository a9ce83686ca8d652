"""The pages of calls."""

from collections.abc import Sequence
from typing import Final

from django.contrib import messages
from django.db.models import Q
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from evaluations.access import Action
from evaluations.domain.errors import InputRefused
from evaluations.domain.judges import ACTIVE_RUN_STATES, FAILURE_STATES
from evaluations.judges.calls.services import confirm_suspect_call
from evaluations.judges.guards import get_call_or_404, get_run_or_404
from evaluations.judges.runs.selection import RETRYABLE_STATES
from evaluations.judges.runs.selectors import CALL_FILTERS, call_bills, count_calls_by_state
from evaluations.models.runs import Attempt, Call, Run
from evaluations.models.verdicts import Score, Verdict
from evaluations.visibility import reveal_call
from evaluations.web.pagination import paginate
from evaluations.web.requests import AuthenticatedRequest


@never_cache
@require_safe
def call(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    return render_call(request, get_call_or_404(request, slug, pk, Action.SEE_ALL))


@never_cache
@require_POST
def call_confirm(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    row = get_call_or_404(request, slug, pk, Action.MANAGE)
    try:
        confirm_suspect_call(row, user=request.user)
    except InputRefused as refused:
        return render_call(request, row, refused=str(refused), status=422)
    messages.success(request, "Verdict confirmed. It counts now.")
    return redirect("call", slug, pk)


def render_call(request: AuthenticatedRequest, row: Call, *, refused: str = "", status: int = 200) -> HttpResponse:
    comparisons = reveal_call(request.user, row)
    context = {
        "page": "runs",
        "evaluation": row.judge.evaluation,
        "call": row,
        "refused": refused,
        "comparisons": comparisons,
        "has_failed": row.state in FAILURE_STATES,
        "attempts": Attempt.objects.filter(call=row).select_related("run").order_by("number"),
        "verdicts": Verdict.all_rows.filter(call=row).select_related("aspect").order_by("aspect__key"),
        "scores": Score.all_rows.filter(call=row).select_related("aspect").order_by("aspect__key"),
    }
    return render(request, "call/call.html", context, status=status)


# The messages of queries and responses are not shown, so they are not loaded.
LISTED_CALL_COLUMNS: Final = (
    *("judge", "run", "shown", "sample", "state", "step", "repaired", "copied_from", "confirmed_at", "error"),
    *("comparison__query__key", "response__query__key", "response__candidate__name"),
)


@never_cache
@require_safe
def run_calls(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    """Replies speak of choices: for those alone who may see verdicts before reviewing."""
    row = get_run_or_404(request, slug, pk, Action.SEE_ALL)
    kind = request.GET.get("state", "")
    if kind and kind not in CALL_FILTERS:
        raise Http404
    context = {
        "page": "runs",
        "evaluation": row.evaluation,
        "run": row,
        "kind": kind,
        "kinds": call_kinds_with_counts(row, kind),
        "can_retry": kind in RETRYABLE_STATES and row.state not in ACTIVE_RUN_STATES,
    }
    return render(request, "run_calls/run_calls.html", context | calls_context(request, row, kind))


def calls_context(request: AuthenticatedRequest, run: Run, kind: str) -> dict[str, object]:
    calls = Call.all_rows.filter(CALL_FILTERS.get(kind, Q()), run=run)
    related = ("comparison__query", "response__query", "response__candidate")
    page = paginate(request, calls.select_related(*related).only(*LISTED_CALL_COLUMNS))
    bills, replies = call_bills(run, page.rows), load_failed_replies(page.rows)
    rows = [{"call": call, "bill": bills.get(call.pk), "reply": replies.get(call.pk, "")} for call in page.rows]
    return {"calls": page, "rows": rows}


def load_failed_replies(calls: Sequence[Call]) -> dict[int, str]:
    """The last replies of failed calls. Answered calls' replies hold choices and are shown on their own pages only."""
    failed = [call.pk for call in calls if call.state in FAILURE_STATES]
    return dict(Attempt.objects.filter(call__in=failed).order_by("number").values_list("call_id", "raw"))


def call_kinds_with_counts(run: Run, chosen: str) -> list[tuple[str, int]]:
    """The states in which this run has calls, with counts; the chosen one is always included."""
    counts = count_calls_by_state(run)
    return [(state, count) for state, count in counts.items() if count or state == chosen]
