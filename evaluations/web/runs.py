"""Every time a judge was sent through an evaluation; what was started together stands together."""

from collections.abc import Sequence
from itertools import groupby
from typing import Any, cast

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from evaluations import access
from evaluations.domain import FAILURE_STATES, OPEN_CALL_STATES, CallState
from evaluations.models import Comparison, Run, User
from evaluations.services.judging.progressing import counts_of, runs_of_unknown_cost
from evaluations.web.paging import page_of


@require_safe
def runs(request: HttpRequest, slug: str) -> HttpResponse:
    evaluation = access.evaluation_for(cast(User, request.user), slug)
    listed = Run.objects.filter(evaluation=evaluation).select_related("judge", "user")
    page = page_of(request, listed, newest_first=True)
    context = {
        "page": "runs",
        "evaluation": evaluation,
        "runs": page,
        "batches": batches_of(page.rows),
        "has_judges": evaluation.judges.exists(),
        "has_comparisons": Comparison.objects.filter(evaluation=evaluation).exists(),
    }
    return render(request, "runs/runs.html", context)


def batches_of(listed: Sequence[Run]) -> list[list[dict[str, Any]]]:
    """The runs as they were started: one alone, or those of a panel, each with how far it is."""
    counts = counts_of(run.pk for run in listed)
    unknown = runs_of_unknown_cost(listed)
    rows = [row_of(run, counts[run.pk]) | {"cost_unknown": run.pk in unknown} for run in listed]
    return [list(batch) for _, batch in groupby(rows, key=lambda row: row["run"].batch)]


def row_of(run: Run, counts: dict[str, int]) -> dict[str, Any]:
    total = sum(counts.values())
    unsettled = sum(counts.get(state, 0) for state in (*OPEN_CALL_STATES, CallState.CANCELLED))
    failed = sum(counts.get(state, 0) for state in FAILURE_STATES)
    return {"run": run, "total": total, "settled": total - unsettled, "failed": failed}
