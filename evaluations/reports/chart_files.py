"""The charts of a report as files: SVG, PNG, CSV or Vega-Lite JSON."""

import json
import logging
from dataclasses import dataclass
from typing import Final

from django.http import Http404, HttpResponse
from django.utils.http import content_disposition_header

from evaluations.access import Action, is_allowed
from evaluations.charts.chart import Chart
from evaluations.charts.image_renderer import RenderFailed, render_image
from evaluations.charts.report_charts import build_report_charts
from evaluations.charts.themes import PAPER_THEME
from evaluations.domain.errors import InputRefused
from evaluations.domain.reports import PlotFormat, ReportPart
from evaluations.formats.csv_export import table_as_csv
from evaluations.models.users import User
from evaluations.reports.forms import ReportForm
from evaluations.reports.selectors import reveal_report
from evaluations.stats.full_report import Report
from evaluations.stats.score_report import ScoreReport

logger = logging.getLogger(__name__)

CHART_CONTENT_TYPES: Final = {
    PlotFormat.SVG: "image/svg+xml",
    PlotFormat.PNG: "image/png",
    PlotFormat.CSV: "text/csv; charset=utf-8",
    PlotFormat.JSON: "application/json",
}
JUDGE_PARTS: Final = (ReportPart.DECISIONS, ReportPart.BIAS, ReportPart.JUDGES)
NOTHING_TO_DRAW: Final = "No chart. The table shows why; you can download it as CSV."
DRAWING_FAILED: Final = "The chart could not be drawn. Try again, or download the numbers as CSV."


@dataclass(frozen=True)
class ChartFile:
    name: str
    content_type: str
    content: bytes


def list_part_aspects(report: Report, part: ReportPart) -> list[str]:
    """The keys of the aspects on which a part of the report has results."""
    if part.value in report.aspects_by_part:
        return list(report.aspects_by_part[part.value])
    has_results = {
        ReportPart.DECISIONS: {},
        ReportPart.METHODOLOGY: {},
        ReportPart.AGREEMENT: report.aspects,
        ReportPart.JUDGES: {
            key: any(judge.n for judge in judges.values()) for key, judges in report.confidence.items()
        },
        ReportPart.SCORES: {key: has_score_results(scores) for key, scores in report.scores.items()},
    }
    return [key for key, has_any in has_results[part].items() if has_any]


def has_score_results(scores: ScoreReport) -> bool:
    """Whether the report has scores of responses, counted or excluded."""
    judges = (judge.people.n for judge in scores.judges.values())
    results = scores.human_scores
    apart = (results.saw_judge_first, results.not_drawn, results.calibration)
    pairs = (pair.n for pair in scores.judge_judge)
    return bool(scores.candidates) or any((*judges, scores.human_human.others.n, *pairs, *apart))


def get_part_name(name: str) -> str:
    """The part that the name of a chart begins with."""
    return name.partition("-")[0]


def choose_aspect(report: Report, part: ReportPart, key: str) -> str:
    """This aspect if the part has results on it, else the first that has."""
    keys = list_part_aspects(report, part)
    return key if key in keys else next(iter(keys), "")


def get_part_or_404(name: str, *, sees_judges: bool) -> ReportPart:
    if name not in list(ReportPart) or (name in JUDGE_PARTS and not sees_judges):
        raise Http404
    return ReportPart(name)


def find_printable_chart(report: Report, name: str, aspect: str) -> Chart | None:
    """The chart with this name; None if the report has none."""
    charts = build_report_charts(report, ReportPart(get_part_name(name)), aspect, PAPER_THEME)
    return next((chart for chart in charts if chart.name == name), None)


def build_requested_chart(
    user: User, form: ReportForm, part: ReportPart, name: str, aspect: str | None, chart_format: PlotFormat
) -> HttpResponse:
    """The download of a chart with a note on its source; 404 if there is none. ``aspect``: as in `full_report`."""
    report = reveal_report(user, form.evaluation, form.rules(), (part,), aspect)
    chart = find_printable_chart(report, name, choose_aspect(report, part, aspect or ""))
    if chart is None:
        raise Http404
    return build_chart_response(build_chart_file(chart.with_source_note(describe_scope(user, form)), chart_format))


def build_chart_response(file: ChartFile) -> HttpResponse:
    disposition = content_disposition_header(True, file.name) or ""
    return HttpResponse(file.content, content_type=file.content_type, headers={"Content-Disposition": disposition})


def describe_scope(user: User, form: ReportForm) -> str:
    """The source of a chart without its page: the evaluation, the part of it, and the filters and rules."""
    parts = [form.evaluation.name, *(f"{active.label}: {active.value}" for active in form.active_filters())]
    if not is_allowed(user, Action.SEE_ALL, form.evaluation):
        parts.append(f"only comparisons that {user.username} has reviewed")
    return "; ".join(parts) + "."


def build_chart_file(chart: Chart, chart_format: PlotFormat) -> ChartFile:
    """``chart``: with the theme for paper."""
    content = render_chart_content(chart, chart_format)
    return ChartFile(f"{chart.name}.{chart_format}", CHART_CONTENT_TYPES[chart_format], content)


def render_chart_content(chart: Chart, chart_format: PlotFormat) -> bytes:
    if chart_format is PlotFormat.CSV:
        return table_as_csv(chart.table.columns, chart.table.rows)
    if chart.spec is None:
        raise InputRefused(NOTHING_TO_DRAW)
    if chart_format is PlotFormat.JSON:
        return json.dumps(chart.spec, indent=1, ensure_ascii=False, allow_nan=False).encode()
    try:
        return render_image(chart.spec, "svg" if chart_format is PlotFormat.SVG else "png")
    except RenderFailed:
        logger.exception("The plot %s was not drawn", chart.name)
        raise InputRefused(DRAWING_FAILED) from None
