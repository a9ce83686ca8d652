"""The charts of a report as files: SVG, PNG, CSV or Vega-Lite JSON."""

import json
import logging
from dataclasses import dataclass
from typing import Final

from evaluations.charts.chart import Chart
from evaluations.charts.image_renderer import RenderFailed, render_image
from evaluations.charts.report_charts import build_report_charts
from evaluations.charts.themes import PAPER_THEME
from evaluations.domain.errors import InputRefused
from evaluations.domain.reports import PlotFormat, ReportPart
from evaluations.formats.csv_export import table_as_csv
from evaluations.stats.full_report import Report
from evaluations.stats.score_report import ScoreReport

logger = logging.getLogger(__name__)

CHART_CONTENT_TYPES: Final = {
    PlotFormat.SVG: "image/svg+xml",
    PlotFormat.PNG: "image/png",
    PlotFormat.CSV: "text/csv; charset=utf-8",
    PlotFormat.JSON: "application/json",
}
NOTHING_TO_DRAW: Final = "There is nothing to draw. The table says why; it can be downloaded as CSV."
DRAWING_FAILED: Final = "The picture could not be drawn. Try again, or download the numbers as CSV."


@dataclass(frozen=True)
class ChartFile:
    name: str
    content_type: str
    content: bytes


def list_part_aspects(report: Report, part: ReportPart) -> list[str]:
    """The keys of the aspects on which a part of the report has results."""
    if part.value in report.aspects_by_part:
        return list(report.aspects_by_part[part.value])
    held = {
        ReportPart.AGREEMENT: report.aspects,
        ReportPart.JUDGES: {key: any(one.n for one in found.values()) for key, found in report.confidence.items()},
        ReportPart.SCORES: {key: has_score_results(one) for key, one in report.scores.items()},
    }
    return [key for key, found in held[part].items() if found]


def has_score_results(scores: ScoreReport) -> bool:
    """Whether the report has scores of responses, counted or excluded."""
    judges = (judge.people.n for judge in scores.judges.values())
    results = scores.human_scores
    apart = (results.saw_judge_first, results.not_drawn, results.calibration)
    pairs = (pair.n for pair in scores.judge_judge)
    return bool(scores.candidates) or any((*judges, scores.human_human.others.n, *pairs, *apart))


def get_part_name(name: str) -> str:
    """The names of plots begin with the part that they are of, if they are of any."""
    return name.partition("-")[0]


def find_printable_chart(report: Report, name: str, aspect: str) -> Chart | None:
    """The plot of that name; None where this report has none."""
    plots = build_report_charts(report, ReportPart(get_part_name(name)), aspect, PAPER_THEME)
    return next((plot for plot in plots if plot.name == name), None)


def build_chart_file(plot: Chart, form: PlotFormat) -> ChartFile:
    """``plot`` is one for paper."""
    return ChartFile(f"{plot.name}.{form}", CHART_CONTENT_TYPES[form], render_chart_content(plot, form))


def render_chart_content(plot: Chart, form: PlotFormat) -> bytes:
    if form is PlotFormat.CSV:
        return table_as_csv(plot.table.columns, plot.table.rows)
    if plot.spec is None:
        raise InputRefused(NOTHING_TO_DRAW)
    if form is PlotFormat.JSON:
        return json.dumps(plot.spec, indent=1, ensure_ascii=False, allow_nan=False).encode()
    try:
        return render_image(plot.spec, "svg" if form is PlotFormat.SVG else "png")
    except RenderFailed:
        logger.exception("The plot %s was not drawn", plot.name)
        raise InputRefused(DRAWING_FAILED) from None
