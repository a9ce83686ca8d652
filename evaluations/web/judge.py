"""One judge: what it is, for good, and what exactly it is sent."""

from typing import cast

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from evaluations import access
from evaluations.domain import Shown
from evaluations.models import Comparison, Evaluation, Judge, User
from evaluations.services.judging.judging import preview

RELATED = ("endpoint", "rubric_version__rubric")
ORDERS = ((Shown.AS_STORED, "A first"), (Shown.SWAPPED, "B first"))
RUNS_SHOWN = 5


@require_safe
def judge(request: HttpRequest, slug: str, pk: int) -> HttpResponse:
    evaluation = access.evaluation_for(cast(User, request.user), slug)
    row = get_object_or_404(Judge.objects.select_related(*RELATED), evaluation=evaluation, pk=pk)
    shown = Shown.SWAPPED if request.GET.get("shown") == Shown.SWAPPED else Shown.AS_STORED
    comparison = comparison_for(request, evaluation)
    context = {
        "page": "judges",
        "evaluation": evaluation,
        "judge": row,
        "comparison": comparison,
        "shown": shown,
        "orders": ORDERS,
        "preview": preview(row, comparison, shown) if comparison else None,
        "runs": row.runs.order_by("-pk")[:RUNS_SHOWN],
    }
    return render(request, "judge/judge.html", context)


def comparison_for(request: HttpRequest, evaluation: Evaluation) -> Comparison | None:
    """The comparison asked for, or the one that people meet first."""
    comparisons = Comparison.objects.filter(evaluation=evaluation).select_related("query", "response_a", "response_b")
    wanted = request.GET.get("comparison", "")
    if not wanted:
        return comparisons.order_by("shuffle", "pk").first()
    if not (wanted.isdecimal() and len(wanted) < 19):
        raise Http404
    return get_object_or_404(comparisons, pk=wanted)
