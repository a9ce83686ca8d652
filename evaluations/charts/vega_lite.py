"""The parts that Vega-Lite specifications are made of: layers, axes, legends."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from evaluations.charts.chart import Caption, Chart, ChartTable, describe_chart, wrap_lines
from evaluations.charts.estimates import PlottedEstimate, Quantity, filter_with_value, list_labels, list_series
from evaluations.charts.themes import (
    MAX_SERIES,
    SUBTITLE_LETTERS,
    SUBTITLE_PIXELS,
    Json,
    SeriesStyle,
    Theme,
    build_vega_config,
    choose_series_style,
)

VEGA_LITE_SCHEMA: Final = "https://vega.github.io/schema/vega-lite/v6.json"
AXIS_PIXELS: Final = 48


@dataclass(frozen=True)
class DrawnEstimates:
    """The estimates that are drawn, with their rows and series in the order given."""

    estimates: list[PlottedEstimate]
    rows: list[str]
    style: SeriesStyle


def select_drawable(estimates: Sequence[PlottedEstimate], theme: Theme, most_rows: int | None = None) -> DrawnEstimates:
    """The estimates with a value, limited to as many series and rows as a reader can tell apart."""
    series = list_series(estimates)
    rows = list_labels(estimates)
    seen = set(rows[:most_rows])
    chosen = [
        estimate
        for estimate in filter_with_value(estimates)
        if estimate.series in series[:MAX_SERIES] and estimate.label in seen
    ]
    labels, names = set(list_labels(chosen)), set(list_series(chosen))
    style = choose_series_style([name for name in series if name in names], series, theme)
    return DrawnEstimates(chosen, [row for row in rows if row in labels], style)


def build_chart(
    caption: Caption,
    estimates: Sequence[PlottedEstimate],
    quantity: Quantity,
    table: ChartTable,
    notes: Sequence[str],
    spec: Json | None,
) -> Chart:
    words = describe_chart(caption.title, estimates, quantity)
    if spec is not None:
        spec = {"description": words, **spec}
    return Chart(caption.name, caption.title, words, spec, table, tuple(notes))


def build_specification(
    caption: Caption,
    theme: Theme,
    notes: Sequence[str],
    data: Sequence[Json],
    height: int,
    layers: Sequence[Json],
    **parameters: Json,
) -> Json:
    """A specification. ``height``: of the drawing, its legend and axes, to which a title is added."""
    heading = build_title(caption, notes) if theme.has_title else {}
    return {
        "$schema": VEGA_LITE_SCHEMA,
        **heading,
        "width": theme.width,
        "height": height + get_title_height(heading),
        "autosize": {"type": "fit", "contains": "padding"},
        # Whether the plot is narrow is for the page to say.
        "params": [{"name": name, "value": value} for name, value in ({"narrow": False} | parameters).items()],
        "data": {"values": list(data)},
        "layer": list(layers),
        "config": build_vega_config(theme),
    }


def build_title(caption: Caption, notes: Sequence[str]) -> Json:
    """The title of an image that is used without its page, with the notes as subtitle."""
    lines = [line for note in notes for line in wrap_lines(note, SUBTITLE_LETTERS)]
    return {"title": {"text": wrap_lines(caption.title, 80), "subtitle": lines}}


def get_title_height(heading: Json) -> int:
    if not heading:
        return 0
    return 2 * 16 + 20 + 19 * len(heading["title"]["text"]) + SUBTITLE_PIXELS * len(heading["title"]["subtitle"])


def build_name_axis(theme: Theme) -> Json:
    """The axis of row names, shortened in the middle because names often differ only at their ends."""
    return {
        "title": None,
        "domain": False,
        "ticks": False,
        "grid": True,
        "tickBand": "extent",
        "labelColor": theme.ink,
        # The line below the last row is a tick without a name.
        "labelExpr": "isString(datum.value) ? truncate(datum.value, narrow ? 17 : 36, 'center') : ''",
        "labelLimit": {"expr": "narrow ? 135 : 260"},
    }


def build_row_scale(labels: Sequence[str]) -> Json:
    return {"type": "band", "domain": list(labels), "paddingInner": 0, "paddingOuter": 0}


SIGNED_POINTS: Final = "datum.value === 0 ? '0' : format(datum.value * 100, '+~g')"


def build_measure_axis(quantity: Quantity, domain: Sequence[float], *, upright: bool = False) -> Json:
    axis = {
        "title": quantity.name,
        "format": ".0%" if quantity.is_share else "~g",
        **({"labelExpr": SIGNED_POINTS} if quantity.is_in_points else {}),
        "tickCount": 6 if upright else {"expr": "narrow ? 4 : 8"},
        "domain": False,
        "ticks": False,
        "grid": True,
        "labelFlush": False,
    }
    return {"type": "quantitative", "scale": {"domain": list(domain), "nice": False, "zero": False}, "axis": axis}


WIDE_PIXELS: Final = 640
# It begins where the plot does, to the right of the names of its rows.
NARROW_PIXELS: Final = 190
LETTER_PIXELS: Final = 6.8
SYMBOL_PIXELS: Final = 40
LEGEND_LINE_PIXELS: Final = 20
LEGEND_OFFSET_PIXELS: Final = 8


def build_legend(names: Sequence[str]) -> Json | None:
    """The legend; None where the only series has no name."""
    if not any(names):
        return None
    narrow, wide = (count_legend_columns(names, width) for width in (NARROW_PIXELS, WIDE_PIXELS))
    return {
        "columns": {"expr": f"narrow ? {narrow} : {wide}"},
        # Shortened in the middle, as on axes: names of judges, or of pairs of them, often differ at their ends only.
        "labelExpr": "truncate(datum.label, narrow ? 28 : 38, 'center')",
    }


def count_legend_columns(names: Sequence[str], width: int) -> int:
    """The number of columns that fit, each as wide as the longest name."""
    widest = max(len(name) for name in names) * LETTER_PIXELS + SYMBOL_PIXELS
    return max(1, min(len(names), int(width // widest)))


def get_legend_height(names: Sequence[str]) -> int:
    """The height in pixels on a narrow page, where the legend is highest."""
    if not any(names):
        return 0
    return (
        math.ceil(len(names) / count_legend_columns(names, NARROW_PIXELS)) * LEGEND_LINE_PIXELS + LEGEND_OFFSET_PIXELS
    )


def build_datum(estimate: PlottedEstimate, quantity: Quantity) -> Json:
    """A row of the data: numbers to draw, texts to show."""
    return {
        "label": estimate.label,
        "series": estimate.series,
        "value": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "has_interval": estimate.has_interval,
        "value_text": quantity.format_value(estimate.value),
        "interval": quantity.format_interval(estimate),
        "n": f"{estimate.n:,}",
        "note": estimate.note or "–",
    }


def build_tooltip(row_name: str, quantity: Quantity, *more: Json) -> list[Json]:
    fields = {
        "label": row_name,
        "series": "Of",
        "value_text": quantity.name,
        "interval": "Pointwise 95% CI",
        "n": "n",
    }
    return [build_text_field(field, title) for field, title in fields.items()] + [
        *more,
        build_text_field("note", "Note"),
    ]


def build_text_field(field: str, title: str) -> Json:
    return {"field": field, "type": "nominal", "title": title}


def encode_series(style: SeriesStyle, values: Sequence[str]) -> Json:
    """The encoding of a series by its color or its shape: ``values``, in the order of its names."""
    scale = {"domain": style.names, "range": list(values)}
    return {"field": "series", "type": "nominal", "scale": scale, "legend": build_legend(style.names)}


def build_line_layers(style: SeriesStyle, along: Json) -> list[Json]:
    """Lines that join the points of each series, with a dash pattern for each."""
    return [
        {
            "transform": [{"filter": {"field": "series", "equal": name}}],
            "mark": {"type": "line", "strokeWidth": 1.25, "opacity": 0.7, "strokeDash": dash},
            "encoding": {"y": {**along, "field": "value"}},
        }
        for name, dash in zip(style.names, style.dashes, strict=True)
    ]


def build_interval_layer(along: Json, *, upright: bool = False) -> Json:
    """The lines of intervals. ``along``: the axis of the quantity."""
    axis = "y" if upright else "x"
    return {
        "transform": [{"filter": "datum.has_interval"}],
        "mark": {"type": "rule", "strokeWidth": 1.75},
        "encoding": {axis: {**along, "field": "low"}, f"{axis}2": {"field": "high"}},
    }


def build_point_layers(
    style: SeriesStyle, theme: Theme, along: Json, tooltip: Sequence[Json], *, upright: bool = False
) -> list[Json]:
    """The points: filled with an interval, hollow without one."""
    axis = "y" if upright else "x"
    encoding = {
        axis: {**along, "field": "value"},
        "shape": encode_series(style, style.shapes),
        "tooltip": list(tooltip),
    }
    mark = {"type": "point", "size": 70, "opacity": 1, "strokeWidth": 1.5}
    return [
        {
            "transform": [{"filter": "datum.has_interval"}],
            "mark": {**mark, "filled": True},
            "encoding": encoding,
        },
        {
            "transform": [{"filter": "!datum.has_interval && isNumber(datum.value)"}],
            "mark": {**mark, "filled": False, "fill": theme.surface},
            "encoding": encoding,
        },
    ]


def build_rule_layer(value: float, theme: Theme) -> Json:
    """A vertical line at the neutral value."""
    return {
        "data": {"values": [{}]},
        "mark": {"type": "rule", "color": theme.soft, "strokeDash": [4, 3]},
        "encoding": {"x": {"datum": value}},
    }


def build_diagonal_layer(ends: Sequence[float], theme: Theme) -> Json:
    """The line of equal values on both axes."""
    return {
        "data": {"values": [{"x": end, "y": end} for end in ends]},
        "mark": {"type": "line", "color": theme.soft, "strokeDash": [4, 3], "strokeWidth": 1},
        "encoding": {"x": {"field": "x", "type": "quantitative"}, "y": {"field": "y", "type": "quantitative"}},
    }
