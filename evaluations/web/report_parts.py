"""What the pages of a report's parts show beside the report itself: the aspect that is looked at, and its plots."""

from dataclasses import dataclass
from typing import Any

from django.urls import reverse

from evaluations.domain import Part
from evaluations.forms.report import Asked
from evaluations.models import Evaluation
from evaluations.services.reporting.plotting import Plot, aspects_with, plots_of
from evaluations.services.reporting.reporting import Report
from evaluations.web.plotting import files_address


@dataclass(frozen=True)
class PlotOnPage:
    """``files``: where they are; the name of a format is to follow."""

    plot: Plot
    files: str


def part_context(evaluation: Evaluation, report: Report, part: Part, asked_aspect: str, asked: Asked) -> dict[str, Any]:
    aspect = aspect_of(report, part, asked_aspect)
    return {
        "part_aspect": aspect,
        "part_aspects": [(key, report.names[key]) for key in aspects_with(report, part)],
        "plots": [
            PlotOnPage(plot, files_address(reverse("report_plot", args=[evaluation.slug, plot.name]), asked))
            for plot in plots_of(report, part, aspect)
        ],
    }


def aspect_of(report: Report, part: Part, asked: str) -> str:
    """The one that was asked for, where this part has anything on it, else the first on which it has."""
    keys = aspects_with(report, part)
    return asked if asked in keys else next(iter(keys), "")
