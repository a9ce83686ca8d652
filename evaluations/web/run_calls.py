"""The calls of one run, all or of one kind: what was asked, what became of it, and what it cost."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.db.models import Q
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from evaluations.access import Action
from evaluations.domain import ACTIVE_RUN_STATES, FAILURE_STATES, CallState
from evaluations.models import Attempt, Call, Run
from evaluations.services.judging.progressing import bills_of
from evaluations.services.judging.running import counts_by_state
from evaluations.services.judging.selecting import RETRYABLE
from evaluations.web.paging import page_of
from evaluations.web.run import run_for

KINDS: Final[Mapping[str, Q]] = {
    **{state.value: Q(state=state) for state in CallState},
    "unusable": Q(state__in=FAILURE_STATES),
    "repaired": Q(repaired=True),
    "copied": Q(copied_from__isnull=False),
}
# Neither the messages of a query nor those of a response are shown: they are left unread.
LISTED: Final = (
    *("judge", "run", "shown", "sample", "state", "step", "repaired", "copied_from", "confirmed_at", "error"),
    *("comparison__query__key", "response__query__key", "response__candidate__name"),
)


@never_cache
@require_safe
def run_calls(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    """Replies speak of choices: for those alone who may see verdicts before reviewing."""
    row = run_for(request, slug, pk, Action.SEE_ALL)
    kind = request.GET.get("state", "")
    if kind and kind not in KINDS:
        raise Http404
    context = {
        "page": "runs",
        "evaluation": row.evaluation,
        "run": row,
        "kind": kind,
        "kinds": kinds_of(row, kind),
        "can_retry": kind in RETRYABLE and row.state not in ACTIVE_RUN_STATES,
    }
    return render(request, "run_calls/run_calls.html", context | calls_of(request, row, kind))


def calls_of(request: HttpRequest, run: Run, kind: str) -> dict[str, Any]:
    found = Call.all_rows.filter(KINDS.get(kind, Q()), run=run)
    related = ("comparison__query", "response__query", "response__candidate")
    page = page_of(request, found.select_related(*related).only(*LISTED))
    bills, replies = bills_of(run, page.rows), last_replies(page.rows)
    rows = [{"call": call, "bill": bills.get(call.pk), "reply": replies.get(call.pk, "")} for call in page.rows]
    return {"calls": page, "rows": rows}


def last_replies(calls: Sequence[Call]) -> dict[int, str]:
    """What came back last to the calls that failed. What was answered holds choices: it stands on the call's page."""
    failed = [call.pk for call in calls if call.state in FAILURE_STATES]
    return dict(Attempt.objects.filter(call__in=failed).order_by("number").values_list("call_id", "raw"))


def kinds_of(run: Run, chosen: str) -> list[tuple[str, int]]:
    """The states in which this run has calls, each with how many; the chosen one in any case."""
    counts = counts_by_state(run)
    return [(state, count) for state, count in counts.items() if count or state == chosen]
