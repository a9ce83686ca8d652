"""How charts look: in the page's own colors on a page, in fixed colors on paper."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from evaluations.domain.json_values import JsonDict, JsonMapping

Json = JsonDict

PEOPLE_SERIES: Final = "reviewers"
# Series differ in shape and position first, and in color only in addition. People are always the diamond.
SHAPES: Final = ("diamond", "circle", "square", "triangle-up", "cross", "triangle-down", "triangle-right")
DASHES: Final = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [1, 0], [6, 3], [2, 2])
MAX_SERIES: Final = len(SHAPES) - 1  # the first is people's alone
SUBTITLE_LETTERS: Final = 108  # in a line of an image's subtitle
SUBTITLE_PIXELS: Final = 15


@dataclass(frozen=True)
class Theme:
    """``width``: in pixels, or that of its container. ``has_title``: whether the image contains its title."""

    width: int | Literal["container"]
    has_title: bool
    font: str
    surface: str
    ink: str
    soft: str
    line: str
    colors: tuple[str, ...]


PAGE_THEME: Final = Theme(
    width="container",
    has_title=False,
    font="system-ui, sans-serif",
    surface="var(--surface)",
    ink="var(--ink)",
    soft="var(--ink-soft)",
    line="var(--line)",
    colors=tuple(f"var(--series-{number})" for number in range(1, len(SHAPES) + 1)),
)
PAPER_THEME: Final = Theme(
    width=720,
    has_title=True,
    font="Liberation Sans, Arial, Helvetica, sans-serif",
    surface="#ffffff",
    ink="#1b1c21",
    soft="#5a5e69",
    line="#e1e2e8",
    colors=("#1b1c21", "#4f46a5", "#b8430a", "#0f766e", "#a21caf", "#4d6b00", "#0369a1"),
)


@dataclass(frozen=True)
class SeriesStyle:
    """How the series of one chart look, each list in the order of ``names``."""

    names: list[str]
    shapes: list[str]
    colors: list[str]
    dashes: list[list[int]]


def choose_series_style(names: Sequence[str], chosen: Sequence[str], theme: Theme) -> SeriesStyle:
    """``chosen``: all series of the chart, with those that have nothing to draw, which keep their shapes and colors.

    The first shape and color are reserved for people.
    """
    others = [name for name in chosen if name != PEOPLE_SERIES]
    position = {PEOPLE_SERIES: 0} | {name: 1 + number % MAX_SERIES for number, name in enumerate(others)}
    positions = [position[name] for name in names]
    return SeriesStyle(
        list(names),
        [SHAPES[at] for at in positions],
        [theme.colors[at] for at in positions],
        [DASHES[at] for at in positions],
    )


def build_vega_config(theme: Theme) -> Json:
    """The configuration of all charts of a theme. Marks are hidden from screen readers; a chart has one description."""
    words: JsonMapping = {"labelColor": theme.soft, "titleColor": theme.soft, "titleFontWeight": 500}
    return {
        "aria": False,
        "mark": {"aria": False},
        "font": theme.font,
        "background": theme.surface if theme.has_title else "transparent",
        "padding": 16 if theme.has_title else 4,
        "view": {"stroke": None},
        "axis": {
            **words,
            "labelFontSize": 12,
            "titleFontSize": 12,
            "gridColor": theme.line,
            "domainColor": theme.line,
            "tickColor": theme.line,
            "titlePadding": 8,
            "labelPadding": 6,
        },
        "legend": {
            **words,
            "labelColor": theme.ink,
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
            "color": theme.ink,
            "fontSize": 15,
            "fontWeight": 600,
            "subtitleColor": theme.soft,
            "subtitleFontSize": 12,
            "subtitlePadding": 4,
            "offset": 12,
        },
    }
