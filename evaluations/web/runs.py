"""Every time a judge was sent through an evaluation."""

from collections.abc import Sequence
from typing import cast

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from evaluations import access
from evaluations.domain import FAILURE_STATES, CallState
from evaluations.models import Comparison, Run, User
from evaluations.services.judging.progressing import counts_of
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
        "rows": with_counts(page.rows),
        "has_judges": evaluation.judges.exists(),
        "has_comparisons": Comparison.objects.filter(evaluation=evaluation).exists(),
    }
    return render(request, "runs/runs.html", context)


def with_counts(listed: Sequence[Run]) -> list[dict[str, object]]:
    counts = counts_of(run.pk for run in listed)
    return [
        {
            "run": run,
            "answered": counts[run.pk].get(CallState.ANSWERED, 0),
            "failed": sum(counts[run.pk].get(state, 0) for state in FAILURE_STATES),
        }
        for run in listed
    ]
