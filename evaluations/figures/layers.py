"""The marks that plots are made of, with what a pointer over them reads."""

from collections.abc import Sequence

from evaluations.figures.estimates import Estimate
from evaluations.figures.legends import legend
from evaluations.figures.media import Json, Medium, Style
from evaluations.figures.quantities import Quantity


def datum(estimate: Estimate, quantity: Quantity) -> Json:
    """A row of the data: numbers to draw by, and the same as they are said."""
    return {
        "label": estimate.label,
        "series": estimate.series,
        "value": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "has_interval": estimate.has_interval,
        "said": quantity.said(estimate.value),
        "interval": quantity.interval_said(estimate),
        "n": f"{estimate.n:,}",
        "note": estimate.note or "–",
    }


def tooltip(row_name: str, quantity: Quantity, *more: Json) -> list[Json]:
    fields = {"label": row_name, "series": "Of", "said": quantity.name, "interval": "Pointwise 95% CI", "n": "n"}
    return [text(field, title) for field, title in fields.items()] + [*more, text("note", "Note")]


def text(field: str, title: str) -> Json:
    return {"field": field, "type": "nominal", "title": title}


def coloured(style: Style) -> Json:
    scale = {"domain": style.names, "range": style.colours}
    return {"field": "series", "type": "nominal", "scale": scale, "legend": legend(style.names)}


def shaped(style: Style) -> Json:
    scale = {"domain": style.names, "range": style.shapes}
    return {"field": "series", "type": "nominal", "scale": scale, "legend": legend(style.names)}


def lines(style: Style, along: Json) -> list[Json]:
    """From point to point, dashed in a way of its own for each series."""
    return [
        {
            "transform": [{"filter": {"field": "series", "equal": name}}],
            "mark": {"type": "line", "strokeWidth": 1.25, "opacity": 0.7, "strokeDash": dash},
            "encoding": {"y": {**along, "field": "value"}},
        }
        for name, dash in zip(style.names, style.dashes, strict=True)
    ]


def whiskers(along: Json, *, upright: bool = False) -> Json:
    """From the lower end of the interval to the upper one. ``along``: the axis of the quantity."""
    axis = "y" if upright else "x"
    return {
        "transform": [{"filter": "datum.has_interval"}],
        "mark": {"type": "rule", "strokeWidth": 1.75},
        "encoding": {axis: {**along, "field": "low"}, f"{axis}2": {"field": "high"}},
    }


def points(style: Style, medium: Medium, along: Json, says: Sequence[Json], *, upright: bool = False) -> list[Json]:
    """Filled where there is an interval, hollow where there is none."""
    axis = "y" if upright else "x"
    encoding = {axis: {**along, "field": "value"}, "shape": shaped(style), "tooltip": list(says)}
    mark = {"type": "point", "size": 70, "opacity": 1, "strokeWidth": 1.5}
    return [
        {
            "transform": [{"filter": "datum.has_interval"}],
            "mark": {**mark, "filled": True},
            "encoding": encoding,
        },
        {
            "transform": [{"filter": "!datum.has_interval && isNumber(datum.value)"}],
            "mark": {**mark, "filled": False, "fill": medium.surface},
            "encoding": encoding,
        },
    ]


def rule_at(value: float, medium: Medium) -> Json:
    """An upright line where nothing is preferred."""
    return {
        "data": {"values": [{}]},
        "mark": {"type": "rule", "color": medium.soft, "strokeDash": [4, 3]},
        "encoding": {"x": {"datum": value}},
    }


def diagonal(ends: Sequence[float], medium: Medium) -> Json:
    """Where both axes say the same."""
    return {
        "data": {"values": [{"x": end, "y": end} for end in ends]},
        "mark": {"type": "line", "color": medium.soft, "strokeDash": [4, 3], "strokeWidth": 1},
        "encoding": {"x": {"field": "x", "type": "quantitative"}, "y": {"field": "y", "type": "quantitative"}},
    }
