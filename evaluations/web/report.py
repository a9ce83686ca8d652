"""How far judges agree with people and people with each other, with the comparisons behind every count."""

from typing import cast
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe

from evaluations import access
from evaluations.access import Action
from evaluations.domain import Coding, InputRefused, RaterKind, Rules
from evaluations.forms.report import ReportForm
from evaluations.models import Evaluation, Rater, User
from evaluations.services.reporting.reporting import make_report


@require_safe
def report(request: HttpRequest, slug: str) -> HttpResponse:
    user = cast(User, request.user)
    evaluation = access.evaluation_for(user, slug)
    sees_judges = access.may_see_judges(user, evaluation)
    judges = Rater.objects.filter(evaluation=evaluation, kind=RaterKind.JUDGE).order_by("name")
    form = ReportForm(request.GET, evaluation=evaluation, judges=list(judges) if sees_judges else [])
    context = {
        "page": "report",
        "evaluation": evaluation,
        "form": form,
        "sees_judges": sees_judges,
        "sees_all": access.may(user, Action.SEE_ALL, evaluation),
        "is_filtered": bool(request.GET),
    }
    if not form.is_valid():
        return render(request, "report/report.html", context, status=422)
    try:
        context["report"] = make_report(
            evaluation,
            access.open_comparisons(user, evaluation),
            form.rules(),
            with_judges=sees_judges,
            only_judge=form.cleaned_data.get("judge"),
        )
    except InputRefused as refused:
        form.add_error(None, str(refused))
        return render(request, "report/report.html", context, status=422)
    context["cells"] = cells_address(evaluation, form.rules())
    return render(request, "report/report.html", context)


def cells_address(evaluation: Evaluation, rules: Rules) -> str:
    """Where the comparisons behind a cell are listed. First and second shown are no choice to list by: none."""
    if rules.coding is not Coding.CANDIDATE:
        return ""
    given = {**dict(rules.where), "split_rule": rules.split_rule.value, "failed": rules.failed.value}
    return f"{reverse('comparisons', args=[evaluation.slug])}?{urlencode(given)}"
