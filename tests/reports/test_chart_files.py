"""A plot to take away."""

import json
from dataclasses import replace

import pytest

from evaluations.charts.image_renderer import RenderFailed
from evaluations.charts.themes import PAPER_THEME, Json
from evaluations.domain.errors import InputRefused
from evaluations.domain.reports import PlotFormat
from evaluations.reports import chart_files
from evaluations.reports.chart_files import build_chart_file
from tests.helpers.chart_samples import make_every_chart

PLOT = make_every_chart(PAPER_THEME)[0]


def test_the_numbers_are_those_of_the_table() -> None:
    file = build_chart_file(PLOT, PlotFormat.CSV)
    head, first, *_, last = file.content.decode().splitlines()
    assert (file.name, file.content_type) == ("win-rates.csv", "text/csv; charset=utf-8")
    assert head == "candidate,series,value,low,high,n,note"
    assert first == "model-of-a-very-long-name-indeed-2026-01,reviewers,0.4,0.36000000000000004,0.44,100,"
    assert last == "'=cmd(),human-corrected,,,,0,No reviews."


def test_the_specification_can_be_read_elsewhere() -> None:
    file = build_chart_file(PLOT, PlotFormat.JSON)
    assert (file.name, file.content_type) == ("win-rates.json", "application/json")
    assert json.loads(file.content) == PLOT.spec


@pytest.mark.parametrize(
    ("form", "content_type", "beginning"),
    [(PlotFormat.SVG, "image/svg+xml", b"<svg "), (PlotFormat.PNG, "image/png", b"\x89PNG")],
)
def test_a_picture_is_of_its_kind(form: PlotFormat, content_type: str, beginning: bytes) -> None:
    file = build_chart_file(PLOT, form)
    assert (file.name, file.content_type) == (f"win-rates.{form.value}", content_type)
    assert file.content.startswith(beginning)


def test_where_nothing_can_be_drawn_only_the_numbers_are_given() -> None:
    empty = replace(PLOT, spec=None)
    assert build_chart_file(empty, PlotFormat.CSV).content
    for form in (PlotFormat.SVG, PlotFormat.PNG, PlotFormat.JSON):
        with pytest.raises(InputRefused, match="No chart"):
            build_chart_file(empty, form)


def test_a_drawing_that_fails_is_told_and_logged(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(spec: Json, picture: str) -> bytes:
        raise RenderFailed("the reason")

    monkeypatch.setattr(chart_files, "render_image", fail)
    with pytest.raises(InputRefused, match="could not be drawn"):
        build_chart_file(PLOT, PlotFormat.SVG)
    assert "the reason" in caplog.text
