"""Agreement over time: one number for each series and period."""

from collections.abc import Sequence
from datetime import date, timedelta
from itertools import pairwise
from typing import Final

from evaluations.figures.assembling import AXIS_PIXELS, Drawn, drawable, measured_axis, plotted, specified
from evaluations.figures.estimates import Dated
from evaluations.figures.layers import coloured, datum, lines, points, tooltip, whiskers
from evaluations.figures.legends import legend_height
from evaluations.figures.media import PAGE, Json, Medium
from evaluations.figures.plots import Caption, Plot
from evaluations.figures.quantities import reach, share
from evaluations.figures.tables import rows_of_dated
from evaluations.figures.wording import notes_of

AGREEMENT: Final = share("Agreement")
INNER_PIXELS: Final = 240
# How much of the time between two numbers the series of one period spread over.
SPREAD: Final = 0.3
HALF_DAY: Final = 43_200_000


def over_time(caption: Caption, dated: Sequence[Dated], medium: Medium = PAGE) -> Plot:
    """Series of one period stand beside each other; a line ends where a period has no number."""
    estimates = [one.estimate for one in dated]
    drawn = drawable(estimates, medium)
    notes = notes_of(estimates, caption.rule, upright=True)
    spec = None
    if drawn.estimates:
        series = drawn.style.names
        data = data_of([one for one in dated if one.estimate.series in series], series)
        reached = span([row["drawn_at"] for row in data])
        layers = [course(drawn, sorted({one.day for one in dated}), reached, medium)]
        spec = specified(caption, medium, notes, data, INNER_PIXELS + AXIS_PIXELS + legend_height(series), layers)
    return plotted(caption, estimates, AGREEMENT, rows_of_dated(dated, AGREEMENT), notes, spec)


def data_of(dated: Sequence[Dated], series: Sequence[str]) -> list[Json]:
    """Periods without a number stay in the data: they are where a line ends."""
    apart = SPREAD * shortest_gap([one.day for one in dated])
    return [
        {
            **datum(one.estimate, AGREEMENT),
            "day": one.day.isoformat(),
            "drawn_at": beside(one.day, series.index(one.estimate.series), len(series), apart),
        }
        for one in dated
    ]


def shortest_gap(days: Sequence[date]) -> timedelta:
    ordered = sorted(set(days))
    gaps = [later - earlier for earlier, later in pairwise(ordered)]
    return min(gaps, default=timedelta(days=1))


def beside(day: date, number: int, of: int, apart: timedelta) -> int:
    """The moment at which a series is drawn: to the left or right of the day, so that whiskers do not cover others."""
    shift = (number / (of - 1) - 0.5) * apart if of > 1 else timedelta(0)
    return milliseconds(day) + shift // timedelta(milliseconds=1)


def span(moments: Sequence[int]) -> list[int]:
    """From the first moment to the last; half a day to both sides of one alone."""
    first, last = min(moments), max(moments)
    return [first, last] if first < last else [first - HALF_DAY, last + HALF_DAY]


def course(drawn: Drawn, days: Sequence[date], reached: Sequence[int], medium: Medium) -> Json:
    style = drawn.style
    along = measured_axis(AGREEMENT, reach(AGREEMENT, drawn.estimates), upright=True)
    says = tooltip("Time", AGREEMENT)
    marks = [*lines(style, along), whiskers(along, upright=True), *points(style, medium, along, says, upright=True)]
    return {"encoding": {"x": time_axis(days, reached), "color": coloured(style)}, "layer": marks}


def time_axis(days: Sequence[date], reached: Sequence[int]) -> Json:
    """Marked where the periods begin, and named where there is room.

    Time is given as a number: the expressions that a strict policy allows take a timestamp for a year. How far it
    reaches is said: a layer without a mark, such as of the hollow ones, has none to find it from, and Vega warns.
    """
    form = "%-d %b" if max(days) - min(days) < timedelta(days=365) else "%b %Y"
    axis = {
        "title": None,
        "grid": False,
        "values": [milliseconds(day) for day in days],
        "labelExpr": f"utcFormat(datum.value, '{form}')",
        "labelOverlap": True,
        "labelSeparation": 8,
    }
    scale = {"domain": list(reached), "zero": False, "nice": False, "padding": 16}
    return {"field": "drawn_at", "type": "quantitative", "scale": scale, "axis": axis}


def milliseconds(day: date) -> int:
    return (day - date(1970, 1, 1)).days * 86_400_000
