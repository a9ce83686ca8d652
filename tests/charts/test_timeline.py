"""Agreement over time."""

from datetime import date, timedelta

from evaluations.charts.chart import Caption
from evaluations.charts.estimates import Dated, PlottedEstimate
from evaluations.charts.line_charts import build_timeline_chart, find_shortest_gap, pad_time_range, shift_series
from tests.helpers.chart_samples import make_dated, make_dated_without_intervals

CAPTION = Caption("over-time", "Agreement over time")
DAY = 86_400_000
FIRST = 20_697 * DAY  # 1 September 2026: 56 years of 365 days, 14 leap days, 243 days


def test_a_period_without_a_number_stays_so_that_the_line_ends() -> None:
    plot = build_timeline_chart(CAPTION, make_dated())
    assert plot.spec is not None
    values = [row["value"] for row in plot.spec["data"]["values"] if row["series"] == "gpt"]
    assert values == [0.6, 0.6, None, 0.6]
    assert "1 of 8 numbers is without a value: no reason given." in plot.notes


def test_series_of_one_period_stand_beside_each_other() -> None:
    # Three series over .3 of a week, which is 2.1 days: 1.05 before, on the day, 1.05 after.
    apart = 0.3 * timedelta(days=7)
    shown = [shift_series(date(2026, 9, 1), number, 3, apart) - FIRST for number in range(3)]
    assert shown == [-1.05 * DAY, 0, 1.05 * DAY]
    assert shift_series(date(2026, 9, 1), 0, 1, apart) == FIRST


def test_the_shortest_time_between_two_periods_says_how_far_apart() -> None:
    days = [date(2026, 9, 15), date(2026, 9, 1), date(2026, 9, 8), date(2026, 9, 8)]
    assert find_shortest_gap(days) == timedelta(days=7)
    assert find_shortest_gap(days[:1]) == timedelta(days=1)


def test_periods_are_marked_where_they_begin() -> None:
    plot = build_timeline_chart(CAPTION, make_dated())
    assert plot.spec is not None
    axis = plot.spec["layer"][0]["encoding"]["x"]["axis"]
    assert axis["values"] == [FIRST + 7 * DAY * week for week in range(4)]
    assert "%-d %b" in axis["labelExpr"]


def test_more_than_a_year_is_marked_by_month_and_year() -> None:
    plot = build_timeline_chart(
        CAPTION, [Dated(date(year, 3, 1), PlottedEstimate(str(year), "people", 0.5)) for year in (2025, 2026)]
    )
    assert plot.spec is not None
    assert "%b %Y" in plot.spec["layer"][0]["encoding"]["x"]["axis"]["labelExpr"]


def test_the_axis_reaches_from_the_first_mark_to_the_last_whatever_layers_are_empty() -> None:
    plot = build_timeline_chart(CAPTION, make_dated())
    assert plot.spec is not None
    shown = [row["drawn_at"] for row in plot.spec["data"]["values"]]
    # Two series over .3 of a week: the first a day and 1.2 hours before its day, the last as much after it.
    assert (min(shown), max(shown)) == (FIRST - 1.05 * DAY, FIRST + 22.05 * DAY)
    assert plot.spec["layer"][0]["encoding"]["x"]["scale"]["domain"] == [min(shown), max(shown)]


def test_one_moment_alone_has_half_a_day_to_both_sides() -> None:
    assert pad_time_range([FIRST]) == [FIRST - DAY / 2, FIRST + DAY / 2]


def test_intervals_are_told_from_the_lines_between_points() -> None:
    assert "n is 20. Upright lines are pointwise 95% CIs." in build_timeline_chart(CAPTION, make_dated()).notes
    assert "n is 2." in build_timeline_chart(CAPTION, make_dated_without_intervals()).notes
