"""Plots on a page: what stands there with and without a script, and where their files are."""

import json
import re
from dataclasses import replace

from django.template.loader import render_to_string

from evaluations.charts.chart import Caption, Chart
from evaluations.charts.estimates import PlottedEstimate
from evaluations.charts.forest_charts import build_win_rate_chart
from evaluations.charts.themes import PAGE_THEME
from evaluations.reports.chart_files import ChartFile, build_chart_response
from evaluations.reports.page_body import get_chart_files_url
from tests.helpers.chart_samples import make_every_chart


def html_of(plot: Chart) -> str:
    return render_to_string("_plot.html", {"plot": plot, "files": "/p?as="})


def test_a_plot_stands_on_a_page_with_its_room_its_numbers_and_its_files() -> None:
    plot = make_every_chart(PAGE_THEME)[0]
    html = html_of(plot)
    assert f'height="{plot.height}"' in html
    assert plot.description in html
    assert "<td>41.0% to 49.0%</td>" in html
    assert [f"/p?as={form}" for form in ("svg", "png", "csv", "json")] == re.findall(r'<a href="([^"]+)"', html)
    assert '<noscript><img src="/p?as=svg"' in html


def test_the_specification_survives_whatever_names_hold() -> None:
    hostile = "</script><script>alert(1)</script>"
    plot = build_win_rate_chart(Caption("x", "Win rates"), [PlottedEstimate(hostile, hostile, 0.5)])
    html = html_of(plot)
    assert html.count("<script") == 1
    (found,) = re.findall(r'<script type="application/json">(.*?)</script>', html, re.DOTALL)
    assert json.loads(found) == plot.spec


def test_where_there_is_nothing_to_draw_the_table_stands_alone() -> None:
    html = html_of(replace(make_every_chart(PAGE_THEME)[0], spec=None))
    assert "There is nothing to draw yet." in html
    assert "<script" not in html
    assert "plot-drawing" not in html
    assert re.findall(r'<a href="([^"]+)"', html) == ["/p?as=csv"]


def test_files_keep_the_filters_of_the_page() -> None:
    assert get_chart_files_url("/plot", {"category": ["a&b", "c"]}) == "/plot?category=a%26b&category=c&as="


def test_a_file_is_saved_under_its_name_and_not_opened() -> None:
    answer = build_chart_response(ChartFile("win-rates.svg", "image/svg+xml", b"<svg/>"))
    assert answer["Content-Type"] == "image/svg+xml"
    assert answer["Content-Disposition"] == 'attachment; filename="win-rates.svg"'
    assert answer.content == b"<svg/>"
