"""Numbers in rows: a forest plot, where the series of a row stand below each other."""

from collections.abc import Sequence
from typing import Final

from evaluations.figures.assembling import (
    AXIS_PIXELS,
    Drawn,
    drawable,
    measured_axis,
    named_axis,
    plotted,
    row_scale,
    specified,
)
from evaluations.figures.estimates import Estimate
from evaluations.figures.layers import coloured, datum, points, rule_at, tooltip, whiskers
from evaluations.figures.legends import legend_height
from evaluations.figures.media import Json, Medium
from evaluations.figures.plots import Caption, Plot
from evaluations.figures.quantities import Quantity, reach
from evaluations.figures.tables import rows_of
from evaluations.figures.wording import notes_of

MOST_ROWS: Final = 60
SERIES_PIXELS: Final = 18
BETWEEN_ROWS: Final = 14


def in_rows(
    caption: Caption,
    estimates: Sequence[Estimate],
    quantity: Quantity,
    medium: Medium,
    *,
    row_name: str,
    neutral: float | None = None,
) -> Plot:
    """``neutral``: the value that favours nobody, drawn as a line."""
    drawn = drawable(estimates, medium, MOST_ROWS)
    notes = notes_of(estimates, caption.rule, MOST_ROWS)
    spec = None
    if drawn.estimates:
        layers = forest(drawn, quantity, medium, row_name, neutral)
        data = [datum(one, quantity) for one in drawn.estimates]
        spec = specified(caption, medium, notes, data, forest_height(drawn), layers)
    return plotted(caption, estimates, quantity, rows_of(estimates, quantity, row_name), notes, spec)


def forest(
    drawn: Drawn, quantity: Quantity, medium: Medium, row_name: str, neutral: float | None, *more: Json
) -> list[Json]:
    also = () if neutral is None else (neutral,)
    along = measured_axis(quantity, reach(quantity, drawn.estimates, also))
    marks = {
        "encoding": {**row_encoding(drawn, medium), "color": coloured(drawn.style)},
        "layer": [whiskers(along), *points(drawn.style, medium, along, tooltip(row_name, quantity, *more))],
    }
    return [*(rule_at(value, medium) for value in also), marks]


def row_encoding(drawn: Drawn, medium: Medium) -> Json:
    rows = {"field": "label", "type": "nominal", "scale": row_scale(drawn.rows), "axis": named_axis(medium)}
    encoding: Json = {"y": rows}
    if len(drawn.style.names) > 1:
        between = {"domain": drawn.style.names, "paddingOuter": BETWEEN_ROWS / 2 / SERIES_PIXELS}
        encoding["yOffset"] = {"field": "series", "type": "nominal", "scale": between}
    return encoding


def forest_height(drawn: Drawn) -> int:
    rows = len(drawn.rows) * (len(drawn.style.names) * SERIES_PIXELS + BETWEEN_ROWS)
    return rows + AXIS_PIXELS + legend_height(drawn.style.names)
