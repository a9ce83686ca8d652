"""Putting a plot together: from its numbers to its words, its specification and its table."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from evaluations.figures.estimates import Estimate, labels_of, series_of, with_value
from evaluations.figures.media import (
    MOST_SERIES,
    SUBTITLE_LETTERS,
    SUBTITLE_PIXELS,
    Json,
    Medium,
    Style,
    config,
    style_of,
)
from evaluations.figures.plots import Caption, Plot
from evaluations.figures.quantities import Quantity
from evaluations.figures.tables import Table
from evaluations.figures.wording import description, wrapped

SCHEMA: Final = "https://vega.github.io/schema/vega-lite/v6.json"
AXIS_PIXELS: Final = 48


@dataclass(frozen=True)
class Drawn:
    """What of the numbers is drawn, its rows and series in the order in which they were given."""

    estimates: list[Estimate]
    rows: list[str]
    style: Style


def drawable(estimates: Sequence[Estimate], medium: Medium, most_rows: int | None = None) -> Drawn:
    """Those with a value, of as many series as can be told apart and as many rows as an eye takes in."""
    series = series_of(estimates)
    rows = labels_of(estimates)
    seen = set(rows[:most_rows])
    chosen = [one for one in with_value(estimates) if one.series in series[:MOST_SERIES] and one.label in seen]
    labels, names = set(labels_of(chosen)), set(series_of(chosen))
    style = style_of([name for name in series if name in names], series, medium)
    return Drawn(chosen, [row for row in rows if row in labels], style)


def plotted(
    caption: Caption,
    estimates: Sequence[Estimate],
    quantity: Quantity,
    table: Table,
    notes: Sequence[str],
    spec: Json | None,
) -> Plot:
    words = description(caption.title, estimates, quantity)
    if spec is not None:
        spec = {"description": words, **spec}
    return Plot(caption.name, caption.title, words, spec, table, tuple(notes))


def specified(
    caption: Caption,
    medium: Medium,
    notes: Sequence[str],
    data: Sequence[Json],
    height: int,
    layers: Sequence[Json],
    **parameters: Json,
) -> Json:
    """``height``: of the drawing, its legend and axes. What the image says of itself comes on top of it."""
    heading = titled(caption, notes) if medium.titled else {}
    return {
        "$schema": SCHEMA,
        **heading,
        "width": medium.width,
        "height": height + room_for(heading),
        "autosize": {"type": "fit", "contains": "padding"},
        # Whether the plot is narrow is for the page to say.
        "params": [{"name": name, "value": value} for name, value in ({"narrow": False} | parameters).items()],
        "data": {"values": list(data)},
        "layer": list(layers),
        "config": config(medium),
    }


def titled(caption: Caption, notes: Sequence[str]) -> Json:
    """For an image that stands alone: what it shows, and what it leaves out."""
    lines = [line for note in notes for line in wrapped(note, SUBTITLE_LETTERS)]
    return {"title": {"text": wrapped(caption.title, 80), "subtitle": lines}}


def room_for(heading: Json) -> int:
    if not heading:
        return 0
    return 2 * 16 + 20 + 19 * len(heading["title"]["text"]) + SUBTITLE_PIXELS * len(heading["title"]["subtitle"])


def named_axis(medium: Medium) -> Json:
    """Names beside rows: shortened in the middle, since names often differ at their ends only."""
    return {
        "title": None,
        "domain": False,
        "ticks": False,
        "grid": True,
        "tickBand": "extent",
        "labelColor": medium.ink,
        # The line below the last row is a tick without a name.
        "labelExpr": "isString(datum.value) ? truncate(datum.value, narrow ? 17 : 36, 'center') : ''",
        "labelLimit": {"expr": "narrow ? 135 : 260"},
    }


def row_scale(labels: Sequence[str]) -> Json:
    return {"type": "band", "domain": list(labels), "paddingInner": 0, "paddingOuter": 0}


def measured_axis(quantity: Quantity, domain: Sequence[float], *, upright: bool = False) -> Json:
    axis = {
        "title": quantity.name,
        "format": quantity.format,
        **quantity.labels,
        "tickCount": 6 if upright else {"expr": "narrow ? 4 : 8"},
        "domain": False,
        "ticks": False,
        "grid": True,
        "labelFlush": False,
    }
    return {"type": "quantitative", "scale": {"domain": list(domain), "nice": False, "zero": False}, "axis": axis}
