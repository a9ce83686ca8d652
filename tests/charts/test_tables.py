"""The table beside a plot."""

from evaluations.charts.chart import build_estimate_table
from evaluations.charts.estimates import PlottedEstimate, make_share_quantity
from evaluations.charts.themes import PAGE_THEME
from tests.helpers.chart_samples import make_every_chart


def test_a_file_has_every_figure_and_a_page_as_many_as_one_reads() -> None:
    table = build_estimate_table(
        [PlottedEstimate("gpt", "people", 2 / 3, 0.5, 0.75, 1200)], make_share_quantity("Win rate"), "Candidate"
    )
    assert table.columns == ("candidate", "series", "value", "low", "high", "n", "note")
    assert table.rows == (("gpt", "people", 2 / 3, 0.5, 0.75, 1200, ""),)
    assert table.headings == ("Candidate", "Of", "Win rate", "Pointwise 95% CI", "n", "Note")
    assert table.formatted_rows == (("gpt", "people", "66.7%", "50.0% to 75.0%", "1,200", ""),)


def test_a_column_that_would_be_empty_is_left_out_for_readers() -> None:
    table = build_estimate_table([PlottedEstimate("gpt", "", 0.5)], make_share_quantity("Win rate"), "Candidate")
    assert table.headings == ("Candidate", "Win rate", "Pointwise 95% CI", "n", "Note")
    assert table.formatted_rows == (("gpt", "50.0%", "none", "0", ""),)
    assert table.rows == (("gpt", "", 0.5, None, None, 0, ""),)


def test_every_row_of_every_table_has_all_columns() -> None:
    for plot in make_every_chart(PAGE_THEME):
        assert {len(row) for row in plot.table.rows} == {len(plot.table.columns)}, plot.name
        assert {len(row) for row in plot.table.formatted_rows} == {len(plot.table.headings)}, plot.name


def test_no_two_columns_of_a_table_have_one_name() -> None:
    for plot in make_every_chart(PAGE_THEME):
        for names in (plot.table.columns, plot.table.headings):
            assert len(set(names)) == len(names), (plot.name, names)
