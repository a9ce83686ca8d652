"""How charts look: in the page's own colors on a page, in fixed colors on paper."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from evaluations.domain.json_values import JsonDict, JsonMapping

Json = JsonDict

PEOPLE_SERIES: Final = "people"
# Told apart by shape and place first, by colour only as a third. People are always the diamond.
SHAPES: Final = ("diamond", "circle", "square", "triangle-up", "cross", "triangle-down", "triangle-right")
DASHES: Final = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [1, 0], [6, 3], [2, 2])
MAX_SERIES: Final = len(SHAPES) - 1  # the first is people's alone

SUBTITLE_LETTERS: Final = 108  # to a line of what an image says of itself
SUBTITLE_PIXELS: Final = 15


@dataclass(frozen=True)
class Theme:
    """``width``: pixels, or as wide as what holds it. ``titled``: the image itself says what it shows."""

    width: int | Literal["container"]
    titled: bool
    font: str
    surface: str
    ink: str
    soft: str
    line: str
    colours: tuple[str, ...]


PAGE_THEME: Final = Theme(
    width="container",
    titled=False,
    font="system-ui, sans-serif",
    surface="var(--surface)",
    ink="var(--ink)",
    soft="var(--ink-soft)",
    line="var(--line)",
    colours=tuple(f"var(--series-{number})" for number in range(1, len(SHAPES) + 1)),
)
PAPER_THEME: Final = Theme(
    width=720,
    titled=True,
    font="Liberation Sans, Arial, Helvetica, sans-serif",
    surface="#ffffff",
    ink="#1b1c21",
    soft="#5a5e69",
    line="#e1e2e8",
    colours=("#1b1c21", "#4f46a5", "#b8430a", "#0f766e", "#a21caf", "#4d6b00", "#0369a1"),
)


@dataclass(frozen=True)
class SeriesStyle:
    """How the series of one chart look, each list in the order of ``names``."""

    names: list[str]
    shapes: list[str]
    colours: list[str]
    dashes: list[list[int]]


def choose_series_style(names: Sequence[str], given: Sequence[str], medium: Theme) -> SeriesStyle:
    """``given``: all series of the plot, those included that have nothing to draw: they keep their shapes and colours.

    People have the first ones whether they are in the plot or not.
    """
    others = [name for name in given if name != PEOPLE_SERIES]
    place = {PEOPLE_SERIES: 0} | {name: 1 + number % MAX_SERIES for number, name in enumerate(others)}
    places = [place[name] for name in names]
    return SeriesStyle(
        list(names),
        [SHAPES[at] for at in places],
        [medium.colours[at] for at in places],
        [DASHES[at] for at in places],
    )


def build_vega_config(medium: Theme) -> Json:
    """What holds for every plot of a medium. Marks are silent to screen readers: a plot is described as a whole."""
    words: JsonMapping = {"labelColor": medium.soft, "titleColor": medium.soft, "titleFontWeight": 500}
    return {
        "aria": False,
        "mark": {"aria": False},
        "font": medium.font,
        "background": medium.surface if medium.titled else "transparent",
        "padding": 16 if medium.titled else 4,
        "view": {"stroke": None},
        "axis": {
            **words,
            "labelFontSize": 12,
            "titleFontSize": 12,
            "gridColor": medium.line,
            "domainColor": medium.line,
            "tickColor": medium.line,
            "titlePadding": 8,
            "labelPadding": 6,
        },
        "legend": {
            **words,
            "labelColor": medium.ink,
            "labelFontSize": 12,
            "symbolSize": 90,
            "symbolOpacity": 1,
            "symbolDash": [1, 0],
            "orient": "top",
            "direction": "horizontal",
            "title": None,
            "offset": 8,
            "columnPadding": 16,
            "rowPadding": 4,
            "labelLimit": 280,
        },
        "title": {
            "anchor": "start",
            "color": medium.ink,
            "fontSize": 15,
            "fontWeight": 600,
            "subtitleColor": medium.soft,
            "subtitleFontSize": 12,
            "subtitlePadding": 4,
            "offset": 12,
        },
    }
