"""The report's pages, one for each part, with downloads of its charts and the choice on a reviewer."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import cast
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.utils.safestring import mark_safe
from django.views.decorators.http import require_POST, require_safe
from django_htmx.http import HttpResponseClientRedirect

from evaluations.access import Action, get_role, is_allowed, require_evaluation
from evaluations.domain.errors import InputRefused
from evaluations.domain.reports import PlotFormat, ReportPart
from evaluations.domain.reviews import ScreeningChoice
from evaluations.domain.roles import RaterKind, Role
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater
from evaluations.models.verdicts import Score
from evaluations.rendered_texts import render_texts
from evaluations.reports.chart_files import build_requested_chart, get_part_name, get_part_or_404
from evaluations.reports.forms import ReportForm
from evaluations.reports.large_differences import MAX_LISTED, LargeDifference, reveal_large_differences
from evaluations.reports.page_body import (
    FORMAT_PARAMETER,
    ReportViewer,
    get_part_url,
    render_refused_report,
    render_report,
)
from evaluations.reports.selectors import reveal_report
from evaluations.reports.served_reports import (
    ReportQuestion,
    find_served_report,
    keep_served_report,
    read_report_state,
)
from evaluations.reports.services import choose_reviewer
from evaluations.visibility import can_see_judges
from evaluations.web.notices import add_notice_with_undo
from evaluations.web.requests import AuthenticatedRequest


@require_safe
def report(request: AuthenticatedRequest, slug: str, part: str = "") -> HttpResponse:
    """Without a part: the answer, or what there is instead for those who may not see judges."""
    user = request.user
    evaluation = require_evaluation(user, slug)
    viewer = ReportViewer(cast(Role, get_role(user, evaluation)), can_see_judges(user, evaluation))
    if not part and (request.GET or not viewer.sees_judges):
        return redirect(
            add_query(get_part_url(evaluation, ReportPart.AGREEMENT), request.GET)
        )  # the answer has no filters
    asked_part = get_part_or_404(part or ReportPart.DECISIONS, sees_judges=viewer.sees_judges)
    question = ReportQuestion(evaluation, asked_part, request.GET.urlencode(), viewer)
    if served := find_served_report(question):
        return render_page(request, evaluation, served.body, part=asked_part, as_of=served.as_of)
    state = read_report_state(evaluation)
    form = question.make_form()
    try:
        if form.is_valid():
            result = reveal_report(user, evaluation, form.rules(), (asked_part,), form.cleaned_data["aspect"])
            scores = Score.objects.filter(rater__evaluation=evaluation)
            is_first = asked_part in (ReportPart.DECISIONS, ReportPart.AGREEMENT)
            if is_first and not result.names and viewer.sees_all and scores.exists():
                return redirect(add_query(get_part_url(evaluation, ReportPart.SCORES), request.GET))
            body = render_report(result, form, asked_part, viewer)
            keep_served_report(question, form.rules(), result, body, state)
            return render_page(request, evaluation, body, part=asked_part)
    except InputRefused as refused:
        form.add_error(None, str(refused))
    return render_page(
        request, evaluation, render_refused_report(form, asked_part, viewer), part=asked_part, status=422
    )


def add_query(address: str, query: QueryDict) -> str:
    return f"{address}?{query.urlencode()}".rstrip("?")


def render_page(
    request: AuthenticatedRequest,
    evaluation: Evaluation,
    body: str,
    *,
    part: ReportPart,
    as_of: datetime | None = None,
    status: int = 200,
) -> HttpResponse:
    """``body``: as a template of ours rendered it. ``as_of``: when it was made, if something has changed since."""
    context = {"page": "report", "evaluation": evaluation, "body": mark_safe(body), "part": part, "as_of": as_of}
    return render(request, "report/report.html", context, status=status)


@require_safe
def large_differences(request: AuthenticatedRequest, slug: str) -> HttpResponse:
    """The responses with the largest differences of one judge from reviewers on one aspect."""
    user = request.user
    evaluation = require_evaluation(user, slug, Action.SEE_ALL)
    if not request.GET.get("judge"):
        return redirect(get_part_url(evaluation, ReportPart.SCORES))
    form = ReportForm(request.GET, evaluation=evaluation, sees_all=True, sees_judges=True)
    if not form.is_valid() or len(form.cleaned_data["judge"]) != 1:
        raise Http404
    (judge,), aspect = form.cleaned_data["judge"], form.cleaned_data["aspect"]
    differences = reveal_large_differences(user, evaluation, form.rules(), aspect, judge)
    context = {
        "page": "report",
        "evaluation": evaluation,
        "judge": judge,
        "aspect": dict(form.fields["aspect"].choices).get(aspect, aspect),  # type: ignore[attr-defined]
        "differences": differences,
        "most": MAX_LISTED,
        "html": render_texts(list_texts(differences)),
        "back": f"{get_part_url(evaluation, ReportPart.SCORES)}?{urlencode({'aspect': aspect})}",
    }
    return render(request, "report/large_differences.html", context)


def list_texts(differences: Sequence[LargeDifference]) -> Iterator[str]:
    """The texts of responses that no comparison shows, and of their queries."""
    for one in differences:
        if one.comparison is None:
            for turn in (*one.response.query.messages, *one.response.messages):
                yield turn["content"]


@require_safe
def report_plot(request: AuthenticatedRequest, slug: str, name: str) -> HttpResponse:
    user = request.user
    evaluation = require_evaluation(user, slug)
    sees_all, sees_judges = is_allowed(user, Action.SEE_ALL, evaluation), can_see_judges(user, evaluation)
    part = get_part_or_404(get_part_name(name), sees_judges=sees_judges)
    form = ReportForm(request.GET, evaluation=evaluation, sees_all=sees_all, sees_judges=sees_judges)
    if not form.is_valid():
        return render_refusal(form.complaints())
    try:
        aspect, chart_format = form.cleaned_data["aspect"], parse_chart_format(request)
        return build_requested_chart(user, form, part, name, aspect, chart_format)
    except InputRefused as refused:
        return render_refusal([str(refused)])


def parse_chart_format(request: AuthenticatedRequest) -> PlotFormat:
    chart_format = request.GET.get(FORMAT_PARAMETER, PlotFormat.CSV.value)
    if chart_format not in list(PlotFormat):
        raise Http404
    return PlotFormat(chart_format)


def render_refusal(reasons: list[str]) -> HttpResponse:
    return HttpResponse("\n".join(reasons), status=422, content_type="text/plain; charset=utf-8")


@require_POST
def reviewer_screening(request: AuthenticatedRequest, slug: str, pk: int) -> HttpResponse:
    """Keep a reviewer in results or exclude them; an empty choice undoes it. The query: filters of the page."""
    user = request.user
    evaluation = require_evaluation(user, slug, Action.MANAGE)
    rater = get_object_or_404(Rater, evaluation=evaluation, kind=RaterKind.HUMAN, pk=pk)
    choice = request.POST.get("choice", "missing")  # refused: only an empty one undoes
    filters: QueryDict = request.GET
    try:
        reviewer = choose_reviewer(evaluation, rater, choice, user=user)
        filters = keep_usable_filters(filters, reviewer)
        add_screening_notice(request, evaluation, reviewer, rater.screening_choice)
    except InputRefused as refused:
        messages.error(request, str(refused))
    address = add_query(get_part_url(evaluation, ReportPart.PEOPLE), filters)
    return HttpResponseClientRedirect(address) if request.htmx else redirect(address)


def keep_usable_filters(filters: QueryDict, screened: Rater) -> QueryDict:
    """The filters without a reviewer who was just excluded: results that leave them out cannot be filtered by them."""
    if not screened.is_excluded or filters.get("with_excluded"):
        return filters
    kept = filters.copy()
    kept.setlist("reviewer", [name for name in filters.getlist("reviewer") if name != screened.name])
    return kept


def add_screening_notice(
    request: AuthenticatedRequest, evaluation: Evaluation, reviewer: Rater, choice_before: str
) -> None:
    texts = {
        ScreeningChoice.KEEP.value: f"Results count “{reviewer.name}”.",
        ScreeningChoice.EXCLUDE.value: f"“{reviewer.name}” is excluded from results. Labels and exports are unchanged.",
        "": f"No choice on “{reviewer.name}”: results count them.",
    }
    undo = add_query(reverse("reviewer_screening", args=[evaluation.slug, reviewer.pk]), request.GET)
    add_notice_with_undo(request, texts[reviewer.screening_choice], undo, {"choice": choice_before})
