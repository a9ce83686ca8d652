"""What holds for plots of every kind."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import vl_convert
from django.conf import settings

from evaluations.charts.chart import Caption, Chart
from evaluations.charts.estimates import PlottedEstimate
from evaluations.charts.forest_charts import build_win_rate_chart
from evaluations.charts.image_renderer import render_in_this_process
from evaluations.charts.themes import PAGE_THEME, PAPER_THEME, Json, Theme
from tests.helpers.chart_samples import CANDIDATES, make_estimates, make_every_chart

CAPTION = Caption("win-rates", "Win rates")
ON_PAPER = make_every_chart(PAPER_THEME)


def parts(node: Any) -> Iterator[Json]:
    """Every object of a specification but its data."""
    if isinstance(node, dict):
        yield node
        for key, part in node.items():
            if key != "values":
                yield from parts(part)
    elif isinstance(node, list):
        for part in node:
            yield from parts(part)


def spec_of(plot: Chart) -> Json:
    assert plot.spec is not None
    return plot.spec


def shapes(plot: Chart) -> dict[str, str]:
    scale = next(part["shape"]["scale"] for part in parts(plot.spec) if "shape" in part)
    return dict(zip(scale["domain"], scale["range"], strict=True))


@pytest.mark.parametrize("medium", [PAGE_THEME, PAPER_THEME], ids=["page", "paper"])
def test_the_same_numbers_give_the_same_specification(medium: Theme) -> None:
    once, again = make_every_chart(medium), make_every_chart(medium)
    assert [json.dumps(spec_of(plot)) for plot in once] == [json.dumps(spec_of(plot)) for plot in again]


@pytest.mark.parametrize("plot", ON_PAPER, ids=lambda plot: plot.name)
def test_a_plot_is_drawn_without_a_warning(plot: Chart, capfd: pytest.CaptureFixture[str]) -> None:
    picture = vl_convert.vegalite_to_svg(spec_of(plot), show_warnings=True)
    assert plot.title in picture
    assert "undefined" not in picture
    assert "NaN" not in picture
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("plot", ON_PAPER, ids=lambda plot: plot.name)
def test_a_picture_is_as_high_as_was_said(plot: Chart) -> None:
    assert f'width="720" height="{plot.height}"' in render_in_this_process(spec_of(plot), "svg").decode()


@pytest.mark.parametrize("plot", [*ON_PAPER, *make_every_chart(PAGE_THEME)], ids=lambda plot: plot.name)
def test_no_specification_names_an_address_or_a_file(plot: Chart) -> None:
    """vl-convert opens no address for us, but it would read a file that a specification names."""
    assert [part for part in parts(spec_of(plot)) if part.keys() & {"url", "href", "src"}] == []


def test_a_page_gives_the_colours_and_paper_has_its_own() -> None:
    stylesheet = (Path(settings.BASE_DIR) / "static" / "css" / "app.css").read_text()
    tokens = set(re.findall(r"^  (--[\w-]+):", stylesheet, re.MULTILINE))
    for plot in make_every_chart(PAGE_THEME):
        named = set(re.findall(r"var\((--[\w-]+)\)", json.dumps(plot.spec)))
        assert named
        assert named <= tokens
        assert not re.search(r"#[0-9a-f]{6}", json.dumps(plot.spec))
    assert [plot.name for plot in ON_PAPER if "var(" in json.dumps(plot.spec)] == []


def test_a_name_is_data_and_never_an_expression() -> None:
    """Expressions are made of our own words, whatever candidates and judges are called."""
    hostile = "'); alert(1); ('"
    plot = build_win_rate_chart(CAPTION, [PlottedEstimate(hostile, hostile, 0.5, 0.4, 0.6, 9)], PAPER_THEME)
    said = [str(part[key]) for part in parts(spec_of(plot)) for key in ("expr", "labelExpr", "filter") if key in part]
    assert len(said) > 3
    assert [text for text in said if "alert" in text] == []


def test_what_has_no_value_is_counted_and_not_drawn() -> None:
    plot = build_win_rate_chart(CAPTION, make_estimates())
    data = spec_of(plot)["data"]["values"]
    assert len(data) == 8  # of 9
    assert all(row["value"] is not None for row in data)
    assert "1 of 9 numbers is without a value: No reviews." in plot.notes
    assert "1 of 9 numbers is without an interval, drawn hollow: Too few clusters." in plot.notes
    assert "n is 7 to 102. Lines are pointwise 95% CIs." in plot.notes


def test_reasons_are_counted_where_there_are_several() -> None:
    missing = [
        PlottedEstimate("row", name, None, note=note) for name, note in (("a", "Ties only."), ("b", ""), ("c", ""))
    ]
    plot = build_win_rate_chart(CAPTION, missing)
    assert "3 of 3 numbers are without a value: Ties only (1); no reason given (2)." in plot.notes


def test_points_without_an_interval_are_hollow() -> None:
    picture = render_in_this_process(
        spec_of(build_win_rate_chart(CAPTION, make_estimates(), PAPER_THEME)), "svg"
    ).decode()
    points = [path for path in re.findall(r"<path[^>]*>", picture) if 'stroke-width="1.5"' in path]
    assert len(points) == 3 + 8  # in the legend and in the plot
    assert len([path for path in points if 'fill="#ffffff"' in path]) == 1


def test_a_plot_without_values_says_so_and_keeps_its_table() -> None:
    plot = build_win_rate_chart(CAPTION, [PlottedEstimate("gpt", "reviewers", None, note="Nobody voted.")])
    assert (plot.spec, plot.height) == (None, 0)
    assert plot.description == "Win rates. No values."
    assert plot.table.formatted_rows == (("gpt", "reviewers", "n/a", "none", "0", "Nobody voted."),)


def test_series_keep_their_order_where_the_first_row_lacks_one() -> None:
    missing_first = [PlottedEstimate(CANDIDATES[0], "reviewers", None), *make_estimates()[1:]]
    assert list(shapes(build_win_rate_chart(CAPTION, missing_first)).items()) == [
        ("reviewers", "diamond"),
        ("judge alone", "circle"),
        ("human-corrected", "square"),
    ]


def test_people_are_the_diamond_in_whatever_place_and_nobody_else_is() -> None:
    assert (
        shapes(build_win_rate_chart(CAPTION, make_estimates(series=("gpt", "reviewers", "claude"))))["reviewers"]
        == "diamond"
    )
    assert (
        "diamond"
        not in shapes(build_win_rate_chart(CAPTION, make_estimates(series=("gpt", "claude", "longest")))).values()
    )


def test_a_series_that_has_nothing_to_draw_leaves_the_others_their_shapes() -> None:
    without = [PlottedEstimate("row", "gpt", None), PlottedEstimate("row", "claude", 0.5)]
    assert shapes(build_win_rate_chart(CAPTION, without)) == {"claude": "square"}


def test_no_two_series_look_the_same() -> None:
    plot = build_win_rate_chart(CAPTION, [PlottedEstimate("row", f"judge {number}", 0.5) for number in range(9)])
    assert len(set(shapes(plot).values())) == len(shapes(plot)) == 6
    assert "The first 6 of 9 series are drawn; the table has them all." in plot.notes
    assert len(plot.table.rows) == 9


def test_rows_beyond_sixty_stand_in_the_table_alone() -> None:
    plot = build_win_rate_chart(CAPTION, [PlottedEstimate(f"candidate {at}", "reviewers", 0.5) for at in range(70)])
    assert len(spec_of(plot)["data"]["values"]) == 60
    assert "The first 60 of 70 rows are drawn; the table has them all." in plot.notes
    assert len(plot.table.rows) == 70


def test_a_plot_is_told_in_words() -> None:
    assert build_win_rate_chart(CAPTION, make_estimates()).description == (
        "Win rates. 8 numbers, from 40.0% (model-of-a-very-long-name-indeed-2026-01, reviewers) "
        "to 50.0% (=cmd(), reviewers). The table below has them all."
    )


def test_names_that_differ_at_their_ends_only_can_be_told_apart() -> None:
    picture = render_in_this_process(
        spec_of(build_win_rate_chart(CAPTION, make_estimates(), PAPER_THEME)), "svg"
    ).decode()
    names = re.findall(r">(model-of[^<]*…[^<]*)<", picture)
    assert len(set(names)) == 2
    assert all(len(name) <= 36 for name in names)


def test_an_image_has_room_for_what_it_is_told_of() -> None:
    plot = build_win_rate_chart(CAPTION, make_estimates(), PAPER_THEME)
    told = plot.with_source_note(" ".join(["word"] * 40))  # 199 letters: two lines of at most 108
    assert told.height == plot.height + 2 * 15
    assert len(spec_of(told)["title"]["subtitle"]) == len(spec_of(plot)["title"]["subtitle"]) + 2
    assert build_win_rate_chart(CAPTION, make_estimates()).with_source_note("A study.").notes[-1] == "A study."


def test_a_legend_has_as_many_columns_as_fit_on_a_narrow_and_on_a_wide_chart() -> None:
    plot = build_win_rate_chart(CAPTION, [PlottedEstimate("row", name, 0.5, 0.4, 0.6, 9) for name in ("one", "two")])
    legend = spec_of(plot)["layer"][1]["encoding"]["color"]["legend"]
    assert legend["columns"] == {"expr": "narrow ? 2 : 2"}


def test_series_whose_long_names_differ_at_the_end_are_told_apart_in_the_legend() -> None:
    names = [f"a-judge-of-a-name-that-goes-on-and-on-and-on-2026 less {other}" for other in ("one", "two")]
    plot = build_win_rate_chart(
        CAPTION, [PlottedEstimate("row", name, 0.5, 0.4, 0.6, 9) for name in names], PAPER_THEME
    )
    picture = render_in_this_process(spec_of(plot), "svg").decode()
    assert picture.count(">a-judge-of-a-name-") == 2
    assert "less one<" in picture
    assert "less two<" in picture
