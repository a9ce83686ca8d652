"""The report's pages, one for each part, with downloads of its charts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.http import require_safe

from evaluations.access import Action, is_allowed, require_evaluation
from evaluations.charts.chart import Chart
from evaluations.charts.report_charts import build_report_charts
from evaluations.domain.errors import InputRefused
from evaluations.domain.reports import PlotFormat, ReportPart, ReportRules, SideCoding
from evaluations.models.evaluations import Evaluation
from evaluations.models.selection import SMALL_REPORT_COMPARISONS
from evaluations.models.verdicts import Score
from evaluations.reports.chart_files import (
    JUDGE_PARTS,
    build_requested_chart,
    choose_aspect,
    get_part_name,
    get_part_or_404,
    list_part_aspects,
)
from evaluations.reports.forms import MEASURE_CHOICES, QueryValues, ReportForm
from evaluations.reports.overview_table import build_overview_table
from evaluations.reports.selectors import reveal_report
from evaluations.stats.full_report import Report
from evaluations.visibility import can_see_judges
from evaluations.web.requests import AuthenticatedRequest

FORMAT_PARAMETER = "as"


def get_chart_files_url(address: str, query: Mapping[str, Sequence[str]]) -> str:
    """Where the files of a plot are, by the query of its page; the name of a format is to follow."""
    return f"{address}?{urlencode({**query, FORMAT_PARAMETER: ['']}, doseq=True)}"


@dataclass(frozen=True)
class ChartOnPage:
    """``files``: where they are; the name of a format is to follow."""

    plot: Chart
    files: str


def build_part_context(
    evaluation: Evaluation, report: Report, part: ReportPart, asked_aspect: str, query: QueryValues
) -> dict[str, object]:
    aspect = choose_aspect(report, part, asked_aspect)
    return {
        "part_aspect": aspect,
        "part_aspects": [(key, report.names[key]) for key in list_part_aspects(report, part)],
        "plots": [
            ChartOnPage(plot, get_chart_files_url(reverse("report_plot", args=[evaluation.slug, plot.name]), query))
            for plot in build_report_charts(report, part, aspect)
        ],
    }


PART_NAMES: Final = {
    ReportPart.AGREEMENT: "Agreement",
    ReportPart.WINS: "Win rates",
    ReportPart.BIAS: "Bias",
    ReportPart.PEOPLE: "People",
    ReportPart.JUDGES: "Judges",
    ReportPart.SCORES: "Scores",
}

PART_LAYOUT_FIELDS: Final = ("sort", "measure")  # how one part is laid out says nothing to the others

MAX_DETAIL_ROWS: Final = 150  # of single people and pairs: more are shown for one aspect at a time


@dataclass(frozen=True)
class ReportTab:
    label: str
    address: str
    is_current: bool


@require_safe
def report(request: AuthenticatedRequest, slug: str, part: str = ReportPart.AGREEMENT.value) -> HttpResponse:
    user = request.user
    evaluation = require_evaluation(user, slug)
    sees_all, sees_judges = is_allowed(user, Action.SEE_ALL, evaluation), can_see_judges(user, evaluation)
    asked_part = get_part_or_404(part, sees_judges=sees_judges)
    form = ReportForm(request.GET, evaluation=evaluation, sees_all=sees_all, sees_judges=sees_judges)
    context = {
        "page": "report",
        "evaluation": evaluation,
        "form": form,
        "part": asked_part.value,
        "part_name": PART_NAMES[asked_part],
        "part_template": f"report/parts/{asked_part.value}.html",
        "path": request.path,
        "sees_judges": sees_judges,
        "sees_all": sees_all,
        "query": {},
        "tabs": list(list_tabs(evaluation, {}, asked_part, sees_judges=sees_judges)),
    }
    try:
        if form.is_valid():
            result = reveal_report(user, evaluation, form.rules(), (asked_part,), form.cleaned_data["aspect"])
            scores = Score.objects.filter(rater__evaluation=evaluation)
            if asked_part is ReportPart.AGREEMENT and not result.names and sees_all and scores.exists():
                return redirect(f"{get_part_url(evaluation, ReportPart.SCORES)}?{request.GET.urlencode()}".rstrip("?"))
            context |= build_report_context(result, evaluation, form, asked_part)
            context["gives_away"] = (
                sees_all
                and is_allowed(user, Action.REVIEW, evaluation)
                and 0 < result.comparisons <= SMALL_REPORT_COMPARISONS
            )
            context |= build_part_context(evaluation, result, asked_part, form.cleaned_data["aspect"], form.to_query())
            return render(request, "report/report.html", context)
    except InputRefused as refused:
        form.add_error(None, str(refused))
    return render(request, "report/report.html", {**context, "is_filtered": True}, status=422)


def build_report_context(
    result: Report, evaluation: Evaluation, form: ReportForm, part: ReportPart
) -> dict[str, object]:
    """The template context of a report."""
    query, ties, measure = form.to_query(), form.get_layout("ties"), form.get_layout("measure")
    aspect = form.cleaned_data["aspect"]
    return {
        "report": result,
        "query": query,
        "is_filtered": bool(form.active_filters()),
        "tabs": list(list_tabs(evaluation, query, part, sees_judges="judge" in form.fields)),
        "ties": ties,
        "measure": measure,
        "measure_name": dict(MEASURE_CHOICES)[measure],
        "kind": "percent" if measure == "agreement" else "decimal",
        "difference_kind": "points" if measure == "agreement" else "signed",
        "sort": form.get_layout("sort"),
        "aspect": aspect,
        "sentences": [judge.sentence for judge in result.judges.values() if judge.sentence],
        "overview": build_overview_table(result.aspects, ties, measure, form.get_layout("sort")),
        "in_detail": bool(aspect) or count_person_rows(result) <= MAX_DETAIL_ROWS,
        "cells": get_cells_url(evaluation, form.rules(), query),
    }


def list_tabs(
    evaluation: Evaluation, query: QueryValues, current: ReportPart, *, sees_judges: bool
) -> Iterator[ReportTab]:
    values_kept = {name: values for name, values in query.items() if name not in PART_LAYOUT_FIELDS}
    query_string = f"?{urlencode(values_kept, doseq=True)}" if values_kept else ""
    for part, name in PART_NAMES.items():
        if sees_judges or part not in JUDGE_PARTS:
            yield ReportTab(name, get_part_url(evaluation, part) + query_string, part == current)


def get_part_url(evaluation: Evaluation, part: ReportPart) -> str:
    if part is ReportPart.AGREEMENT:
        return reverse("report", args=[evaluation.slug])
    return reverse("report_part", args=[evaluation.slug, part.value])


def count_person_rows(result: Report) -> int:
    """How many rows name one person or two."""
    return sum(
        len(aspect.human_human.pairs)
        + sum(len(judge.judge_human.people) + len(judge.ceiling.s1.left_out) for judge in aspect.answering.values())
        for aspect in result.aspects.values()
    )


def get_cells_url(evaluation: Evaluation, rules: ReportRules, query: QueryValues) -> str:
    """Where the comparisons behind a cell are listed. First and second shown are no choice to list by: none."""
    if rules.coding is not SideCoding.CANDIDATE:
        return ""
    passed = (
        *("slice", "category", "candidate_1", "candidate_2", "reviewer"),
        *("since", "until", "seen", "split_rule", "failed", "part"),
    )
    kept = urlencode({name: query[name] for name in passed if name in query}, doseq=True)
    return f"{reverse('comparisons', args=[evaluation.slug])}?{kept}{'&' if kept else ''}"


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
