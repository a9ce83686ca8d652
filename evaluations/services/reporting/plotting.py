"""The plots of a report, and each to take away: as a picture, as the table of its numbers, as its specification."""

import json
import logging
from dataclasses import dataclass
from typing import Final

from evaluations.domain import InputRefused, Part, PlotFormat
from evaluations.figures.drawing import NotDrawn, drawn
from evaluations.figures.media import PAPER
from evaluations.figures.of_report import plots_of as plots_of
from evaluations.figures.plots import Plot as Plot
from evaluations.formats.table_out import as_csv
from evaluations.services.reporting.reporting import Report
from evaluations.stats.scores import ScoresReport

logger = logging.getLogger(__name__)

CONTENT_TYPES: Final = {
    PlotFormat.SVG: "image/svg+xml",
    PlotFormat.PNG: "image/png",
    PlotFormat.CSV: "text/csv; charset=utf-8",
    PlotFormat.JSON: "application/json",
}
NOTHING: Final = "There is nothing to draw. The table says why; it can be downloaded as CSV."
FAILED: Final = "The picture could not be drawn. Try again, or download the numbers as CSV."


@dataclass(frozen=True)
class PlotFile:
    name: str
    content_type: str
    content: bytes


def aspects_with(report: Report, part: Part) -> list[str]:
    """The keys of the aspects on which a part has anything to say."""
    if part.value in report.aspects_by_part:
        return list(report.aspects_by_part[part.value])
    held = {
        Part.AGREEMENT: report.aspects,
        Part.JUDGES: {key: any(one.n for one in found.values()) for key, found in report.confidence.items()},
        Part.SCORES: {key: has_scores(one) for key, one in report.scores.items()},
    }
    return [key for key, found in held[part].items() if found]


def has_scores(scores: ScoresReport) -> bool:
    """Whether anyone scored a response, or people gave scores that do not count, which the page says."""
    judges = (judge.people.n for judge in scores.judges.values())
    told = scores.human_scores
    apart = (told.saw_judge_first, told.not_drawn, told.calibration)
    pairs = (pair.n for pair in scores.judge_judge)
    return bool(scores.candidates) or any((*judges, scores.human_human.others.n, *pairs, *apart))


def part_of_plot(name: str) -> str:
    """The names of plots begin with the part that they are of, if they are of any."""
    return name.partition("-")[0]


def plot_on_paper(report: Report, name: str, aspect: str) -> Plot | None:
    """The plot of that name; None where this report has none."""
    plots = plots_of(report, Part(part_of_plot(name)), aspect, PAPER)
    return next((plot for plot in plots if plot.name == name), None)


def file_of(plot: Plot, form: PlotFormat) -> PlotFile:
    """``plot`` is one for paper."""
    return PlotFile(f"{plot.name}.{form}", CONTENT_TYPES[form], content_of(plot, form))


def content_of(plot: Plot, form: PlotFormat) -> bytes:
    if form is PlotFormat.CSV:
        return as_csv(plot.table.columns, plot.table.rows)
    if plot.spec is None:
        raise InputRefused(NOTHING)
    if form is PlotFormat.JSON:
        return json.dumps(plot.spec, indent=1, ensure_ascii=False, allow_nan=False).encode()
    try:
        return drawn(plot.spec, "svg" if form is PlotFormat.SVG else "png")
    except NotDrawn:
        logger.exception("The plot %s was not drawn", plot.name)
        raise InputRefused(FAILED) from None
