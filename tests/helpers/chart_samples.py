"""Small charts of every kind, most of them with something missing."""

from datetime import date, timedelta

from evaluations.charts.chart import Caption, Chart
from evaluations.charts.estimates import (
    Binned,
    Dated,
    PlottedEstimate,
    Quantity,
    Ranked,
    make_share_quantity,
)
from evaluations.charts.forest_charts import (
    build_forest_chart,
    build_preference_chart,
    build_ranking_chart,
    build_win_rate_chart,
)
from evaluations.charts.line_charts import build_calibration_chart, build_timeline_chart
from evaluations.charts.themes import Theme

CANDIDATES = ("model-of-a-very-long-name-indeed-2026-01", "model-of-a-very-long-name-indeed-2026-02", "=cmd()")
SERIES = ("reviewers", "judge alone", "human-corrected")


def make_estimates(rows: tuple[str, ...] = CANDIDATES, series: tuple[str, ...] = SERIES) -> list[PlottedEstimate]:
    """.40 in the first row, .05 more in each that follows, ± .04; at the end an interval is missing, then a value."""
    estimates = [
        PlottedEstimate(row, name, value := 0.4 + 0.05 * at, value - 0.04, value + 0.04, 100 + at)
        for at, row in enumerate(rows)
        for name in series
    ]
    estimates[-2] = PlottedEstimate(rows[-1], series[-2], 0.5, n=7, note="Too few clusters.")
    estimates[-1] = PlottedEstimate(rows[-1], series[-1], None, note="No reviews.")
    return estimates


def make_dated() -> list[Dated]:
    """Four weeks; in the third the judge has no number."""
    first = date(2026, 9, 1)
    return [
        Dated(first + timedelta(days=7 * week), make_week_estimate(week, name))
        for week in range(4)
        for name in ("reviewers", "gpt")
    ]


def make_week_estimate(week: int, name: str) -> PlottedEstimate:
    if (week, name) == (2, "gpt"):
        return PlottedEstimate(f"week {week}", name, None)
    return PlottedEstimate(f"week {week}", name, 0.6, 0.5, 0.7, 20)


def make_dated_without_intervals() -> list[Dated]:
    """Two days on which nothing is filled: the layers of filled marks and of intervals are empty."""
    return [
        Dated(date(2026, 9, day), PlottedEstimate(f"day {day}", "reviewers", 0.5, n=2, note="Too few."))
        for day in (1, 2)
    ]


def make_ranked() -> list[Ranked]:
    return [
        Ranked(PlottedEstimate("weak", "", -0.5, -0.9, -0.1, 40), 2, 2, 2),
        Ranked(PlottedEstimate("unseen", "", None, note="It was in no comparison.")),
        Ranked(PlottedEstimate("strong", "", 0.5, 0.1, 0.9, 40), 1, 1, 2),
    ]


def make_ranked_by_three() -> list[Ranked]:
    sources = ("reviewers", "judge alone", "judge corrected by people")
    return [
        Ranked(PlottedEstimate(name, source, value, value - 0.4, value + 0.4, 40), rank, 1, 2)
        for source in sources
        for name, value, rank in (("strong", 0.5, 1), ("weak", -0.5, 2))
    ]


def make_binned() -> list[Binned]:
    return [
        Binned(0.55 + 0.1 * at, PlottedEstimate(f"bin {at}", judge, 0.5 + 0.05 * at, 0.4, 0.8, 30))
        for at in range(4)
        for judge in ("gpt", "claude")
    ]


def make_every_chart(medium: Theme) -> list[Chart]:
    kappa = Quantity("Cohen’s kappa", (-1.0, 1.0))
    people = make_estimates(("Anna", "李雷"), ("gpt", "claude"))
    return [
        build_win_rate_chart(Caption("win-rates", "Win rates", "A tie is half a win."), make_estimates(), medium),
        build_ranking_chart(Caption("ranking", "Ranking"), make_ranked(), medium),
        build_ranking_chart(Caption("ranking-of-three", "Ranking of three"), make_ranked_by_three(), medium),
        build_timeline_chart(Caption("over-time", "Over time"), make_dated(), medium),
        build_timeline_chart(Caption("over-time-few", "Over time, of few"), make_dated_without_intervals(), medium),
        build_calibration_chart(Caption("calibration", "Calibration"), make_binned(), medium),
        build_forest_chart(
            Caption("aspects", "By aspect"),
            make_estimates(),
            make_share_quantity("Agreement"),
            medium,
            row_name="Aspect",
        ),
        build_forest_chart(Caption("reviewers", "By reviewer"), people, kappa, medium, row_name="Person"),
        build_preference_chart(Caption("bias", "Preferences"), make_estimates(), medium),
    ]
