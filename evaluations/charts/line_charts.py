"""Charts with a line for each series: agreement over time, calibration."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import pairwise
from typing import Final

from evaluations.charts.chart import Caption, Chart, build_binned_table, build_dated_table, build_notes
from evaluations.charts.estimates import Binned, Dated, Quantity, compute_axis_domain, make_share_quantity
from evaluations.charts.themes import PAGE_THEME, Json, SeriesStyle, Theme
from evaluations.charts.vega_lite import (
    AXIS_PIXELS,
    DrawnEstimates,
    build_chart,
    build_datum,
    build_diagonal_layer,
    build_interval_layer,
    build_line_layers,
    build_measure_axis,
    build_point_layers,
    build_specification,
    build_text_field,
    build_tooltip,
    encode_series,
    get_legend_height,
    select_drawable,
)

AGREEMENT_SHARE: Final = make_share_quantity("Agreement with reviewers")
CONFIDENCE_SHARE: Final = make_share_quantity("Mean confidence of the judge")
CALIBRATION_PIXELS: Final = 320
# Between two judges that are equally sure: this share of the axis, so that one does not hide the other.
JUDGE_OFFSET: Final = 0.012


@dataclass(frozen=True)
class CalibrationAxes:
    """``across``: what the judge gave, ``along``: what reviewers did.

    ``column`` and ``headings``: what a table calls the bins.
    """

    across: Quantity
    along: Quantity
    column: str
    headings: tuple[str, str]


CONFIDENCE_AXES: Final = CalibrationAxes(
    CONFIDENCE_SHARE, AGREEMENT_SHARE, "confidence", ("Confidence", "Mean confidence")
)
SCORE_AXES: Final = CalibrationAxes(
    Quantity("Score of the judge"), Quantity("Mean score of reviewers"), "judge_score", ("Judge’s score", "Mean")
)


def build_calibration_chart(
    caption: Caption, binned: Sequence[Binned], theme: Theme = PAGE_THEME, axes: CalibrationAxes = CONFIDENCE_AXES
) -> Chart:
    """A calibration chart: on the dashed line the judge is right, below it it gives too much."""
    estimates = [point.estimate for point in binned]
    drawn = select_drawable(estimates, theme)
    notes = build_notes(estimates, caption.rule, upright=True)
    spec = None
    if drawn.estimates:
        series = drawn.style.names
        domain = compute_axis_domain(axes.along, drawn.estimates, [point.confidence for point in binned])
        data = build_calibration_data(
            [point for point in binned if point.estimate in drawn.estimates], series, domain[1] - domain[0], axes
        )
        height = CALIBRATION_PIXELS + AXIS_PIXELS + get_legend_height(series)
        layers = build_calibration_layers(drawn, domain, theme, axes)
        spec = build_specification(caption, theme, notes, data, height, layers)
    table = build_binned_table(binned, axes.along, axes.column, axes.headings)
    return build_chart(caption, estimates, axes.along, table, notes, spec)


def build_calibration_data(
    binned: Sequence[Binned], series: Sequence[str], length: float, axes: CalibrationAxes
) -> list[Json]:
    apart = JUDGE_OFFSET * length
    middle = (len(series) - 1) / 2
    return [
        {
            **build_datum(point.estimate, axes.along),
            "confidence": axes.across.format_value(point.confidence),
            "drawn_at": round(point.confidence + apart * (series.index(point.estimate.series) - middle), 6),
        }
        for point in binned
    ]


def build_calibration_layers(
    drawn: DrawnEstimates, domain: Sequence[float], theme: Theme, axes: CalibrationAxes
) -> list[Json]:
    """The layers of a calibration chart, whose axes have the same domain."""
    across = {**build_measure_axis(axes.across, domain), "field": "drawn_at"}
    along = build_measure_axis(axes.along, domain, upright=True)
    tooltip = build_tooltip(axes.headings[0], axes.along, build_text_field("confidence", axes.across.name))
    return [
        build_diagonal_layer(domain, theme),
        build_series_layer(drawn.style, across, along, tooltip, theme),
    ]


def build_series_layer(style: SeriesStyle, across: Json, along: Json, tooltip: Sequence[Json], theme: Theme) -> Json:
    """Lines, intervals and points of all series. ``across``: the horizontal axis, ``along``: that of the quantity."""
    marks = [
        *build_line_layers(style, along),
        build_interval_layer(along, upright=True),
        *build_point_layers(style, theme, along, tooltip, upright=True),
    ]
    return {"encoding": {"x": across, "color": encode_series(style, style.colors)}, "layer": marks}


AGREEMENT_QUANTITY: Final = make_share_quantity("Agreement")
TIMELINE_PIXELS: Final = 240
# How much of the time between two numbers the series of one period spread over.
SERIES_SPREAD: Final = 0.3
HALF_DAY_MILLISECONDS: Final = 43_200_000


def build_timeline_chart(caption: Caption, dated: Sequence[Dated], theme: Theme = PAGE_THEME) -> Chart:
    """Series of one period are drawn side by side; a line ends before a period without a value."""
    estimates = [point.estimate for point in dated]
    drawn = select_drawable(estimates, theme)
    notes = build_notes(estimates, caption.rule, upright=True)
    spec = None
    if drawn.estimates:
        series = drawn.style.names
        data = build_timeline_data([point for point in dated if point.estimate.series in series], series)
        reached = pad_time_range([row["drawn_at"] for row in data])
        layers = [build_timeline_layer(drawn, sorted({point.day for point in dated}), reached, theme)]
        spec = build_specification(
            caption, theme, notes, data, TIMELINE_PIXELS + AXIS_PIXELS + get_legend_height(series), layers
        )
    return build_chart(
        caption, estimates, AGREEMENT_QUANTITY, build_dated_table(dated, AGREEMENT_QUANTITY), notes, spec
    )


def build_timeline_data(dated: Sequence[Dated], series: Sequence[str]) -> list[Json]:
    """Periods without a number stay in the data: they are where a line ends."""
    apart = SERIES_SPREAD * find_shortest_gap([point.day for point in dated])
    return [
        {
            **build_datum(point.estimate, AGREEMENT_QUANTITY),
            "day": point.day.isoformat(),
            "drawn_at": shift_series(point.day, series.index(point.estimate.series), len(series), apart),
        }
        for point in dated
    ]


def find_shortest_gap(days: Sequence[date]) -> timedelta:
    ordered = sorted(set(days))
    gaps = [later - earlier for earlier, later in pairwise(ordered)]
    return min(gaps, default=timedelta(days=1))


def shift_series(day: date, number: int, of: int, apart: timedelta) -> int:
    """The moment at which a series is drawn: to the left or right of the day, so that whiskers do not cover others."""
    shift = (number / (of - 1) - 0.5) * apart if of > 1 else timedelta(0)
    return convert_to_milliseconds(day) + shift // timedelta(milliseconds=1)


def pad_time_range(moments: Sequence[int]) -> list[int]:
    """From the first moment to the last; half a day to both sides of one alone."""
    first, last = min(moments), max(moments)
    return [first, last] if first < last else [first - HALF_DAY_MILLISECONDS, last + HALF_DAY_MILLISECONDS]


def build_timeline_layer(drawn: DrawnEstimates, days: Sequence[date], reached: Sequence[int], theme: Theme) -> Json:
    along = build_measure_axis(
        AGREEMENT_QUANTITY, compute_axis_domain(AGREEMENT_QUANTITY, drawn.estimates), upright=True
    )
    tooltip = build_tooltip("Time", AGREEMENT_QUANTITY)
    return build_series_layer(drawn.style, build_time_axis(days, reached), along, tooltip, theme)


def build_time_axis(days: Sequence[date], reached: Sequence[int]) -> Json:
    """Marked where the periods begin, and named where there is room.

    Time is a number, because the expressions that a strict policy allows read a timestamp as a year. The domain is
    explicit, because Vega cannot derive it in a layer without marks, such as that of hollow points, and warns.
    """
    form = "%-d %b" if max(days) - min(days) < timedelta(days=365) else "%b %Y"
    axis = {
        "title": None,
        "grid": False,
        "values": [convert_to_milliseconds(day) for day in days],
        "labelExpr": f"utcFormat(datum.value, '{form}')",
        "labelOverlap": True,
        "labelSeparation": 8,
    }
    scale = {"domain": list(reached), "zero": False, "nice": False, "padding": 16}
    return {"field": "drawn_at", "type": "quantitative", "scale": scale, "axis": axis}


def convert_to_milliseconds(day: date) -> int:
    return (day - date(1970, 1, 1)).days * 86_400_000
