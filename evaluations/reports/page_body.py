"""The body of a report's page, which is the same for all who have one role in the evaluation."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlencode

from django.db.models import Q
from django.template.loader import render_to_string
from django.urls import reverse

from evaluations.access import ALLOWED_ROLES, Action
from evaluations.charts.chart import Chart
from evaluations.charts.report_charts import build_report_charts
from evaluations.domain.reports import ReportPart, ReportRules, SideCoding
from evaluations.domain.reviews import ScreeningChoice
from evaluations.domain.roles import RaterKind, Role
from evaluations.evaluation_settings.selectors import describe_bar_change, get_bars_set_at
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater
from evaluations.models.selection import SMALL_REPORT_COMPARISONS
from evaluations.models.verdicts import Score
from evaluations.reports.answer import build_cards, build_score_cards, count_open_disagreements, list_judges_not_run
from evaluations.reports.chart_files import JUDGE_PARTS, choose_aspect, list_part_aspects
from evaluations.reports.forms import MEASURE_CHOICES, QueryValues, ReportForm
from evaluations.reports.overview_table import build_overview_table
from evaluations.stats.full_report import Report

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
    ReportPart.DECISIONS: "Answer",
    ReportPart.AGREEMENT: "Agreement",
    ReportPart.WINS: "Win rates",
    ReportPart.BIAS: "Bias",
    ReportPart.PEOPLE: "Reviewers",
    ReportPart.JUDGES: "Judges",
    ReportPart.SCORES: "Scores",
    ReportPart.METHODOLOGY: "Methodology",
}

PART_LAYOUT_FIELDS: Final = ("sort", "measure")  # how one part is laid out says nothing to the others

OVERVIEW_FIELDS: Final = ("ties", "measure", "sort")  # how the table of all aspects is laid out

MAX_DETAIL_ROWS: Final = 150  # of single people and pairs: more are shown for one aspect at a time


@dataclass(frozen=True)
class ReportTab:
    label: str
    address: str
    is_current: bool


@dataclass(frozen=True)
class ReportViewer:
    """Who reads a report: what the page says depends on nothing else of the person."""

    role: Role
    sees_judges: bool

    def may(self, action: Action) -> bool:
        return self.role in ALLOWED_ROLES[action]

    @property
    def sees_all(self) -> bool:
        return self.may(Action.SEE_ALL)


def build_page_context(form: ReportForm, part: ReportPart, viewer: ReportViewer) -> dict[str, object]:
    """The template context of a page without a report."""
    evaluation = form.evaluation
    return {
        "evaluation": evaluation,
        "form": form,
        "part": part.value,
        "part_name": PART_NAMES[part],
        "part_template": f"report/parts/{part.value}.html",
        "path": get_part_url(evaluation, part),
        "sees_judges": viewer.sees_judges,
        "sees_all": viewer.sees_all,
        "query": {},
        "tabs": list(list_tabs(evaluation, {}, part, sees_judges=viewer.sees_judges)),
        "may": {action.name.lower(): viewer.may(action) for action in Action},
    }


def render_report(result: Report, form: ReportForm, part: ReportPart, viewer: ReportViewer) -> str:
    """The body of the page with the report by a valid form."""
    evaluation = form.evaluation
    context = build_page_context(form, part, viewer) | build_report_context(result, evaluation, form, part)
    is_small = 0 < result.comparisons <= SMALL_REPORT_COMPARISONS
    context["has_scores"] = not result.names and Score.objects.filter(rater__evaluation=evaluation).exists()
    context["gives_away"] = viewer.sees_all and viewer.may(Action.REVIEW) and is_small
    context |= build_part_context(evaluation, result, part, form.cleaned_data["aspect"], form.to_query())
    if part in (ReportPart.DECISIONS, ReportPart.PEOPLE):
        context |= build_screening_context(evaluation, result, viewer)
    if part is ReportPart.DECISIONS:
        context |= build_answer_context(evaluation, result, viewer)
    if part is ReportPart.SCORES:
        cards = build_score_cards(result)
        context |= {"card": cards[0] if cards else None, "other_cards": cards[1:]}
    return render_to_string("report/_body.html", context)


def build_screening_context(evaluation: Evaluation, result: Report, viewer: ReportViewer) -> dict[str, object]:
    """``reviewers_by_name``: those whom a flag names or the owner excluded, for who sees everything."""
    reviewers = Rater.objects.filter(evaluation=evaluation, kind=RaterKind.HUMAN)
    flagged = result.screening.flagged if result.screening else ()
    named = reviewers.filter(Q(name__in=flagged) | Q(screening_choice=ScreeningChoice.EXCLUDE))
    return {
        "screening": result.screening,
        "reviewers_by_name": {rater.name: rater for rater in named.order_by("name")} if viewer.sees_all else {},
    }


def build_answer_context(evaluation: Evaluation, result: Report, viewer: ReportViewer) -> dict[str, object]:
    cards = build_cards(result)
    return {
        "bar_change": describe_bar_change(evaluation),
        "bars_set_at": get_bars_set_at(evaluation),
        "card": cards[0] if cards else None,
        "other_cards": cards[1:],
        "not_run": list_judges_not_run(evaluation, result),
        "open_disagreements": count_open_disagreements(evaluation) if viewer.sees_all else 0,
    }


def render_refused_report(form: ReportForm, part: ReportPart, viewer: ReportViewer) -> str:
    """The body of the page with what is wrong with the form."""
    return render_to_string("report/_body.html", {**build_page_context(form, part, viewer), "is_filtered": True})


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
        "is_laid_out": not query.keys().isdisjoint(OVERVIEW_FIELDS),
        "aspect": aspect,
        "aspect_sections": [(key, one) for key, one in result.aspects.items() if aspect in ("", key)],
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
    if part is ReportPart.DECISIONS:
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
        *("saved_filter", "category", "candidate_1", "candidate_2", "reviewer"),
        *("since", "until", "seen", "split_rule", "failed", "part", "with_excluded"),
    )
    kept = urlencode({name: query[name] for name in passed if name in query}, doseq=True)
    return f"{reverse('comparisons', args=[evaluation.slug])}?{kept}{'&' if kept else ''}"
