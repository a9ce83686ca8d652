"""A chart: its Vega-Lite specification, its table, its description in words."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from textwrap import wrap
from typing import Final

from evaluations.charts.estimates import (
    Binned,
    Dated,
    PlottedEstimate,
    Quantity,
    Ranked,
    filter_with_value,
    list_labels,
    list_series,
)
from evaluations.charts.themes import MAX_SERIES, SUBTITLE_LETTERS, SUBTITLE_PIXELS, Json

TableCell = str | int | float | None
# Attributes of `PlottedEstimate`.
ESTIMATE_COLUMNS: Final = ("series", "value", "low", "high", "n", "note")


@dataclass(frozen=True)
class ChartTable:
    """``columns`` and ``rows``: names and exact values for files; ``headings`` and ``formatted_rows``: for readers."""

    columns: tuple[str, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    headings: tuple[str, ...]
    formatted_rows: tuple[tuple[str, ...], ...]


def format_cells(estimate: PlottedEstimate, quantity: Quantity, named: bool) -> tuple[str, ...]:
    numbers = (quantity.format_value(estimate.value), quantity.format_interval(estimate), f"{estimate.n:,}")
    return (*((estimate.series,) if named else ()), *numbers, estimate.note)


TableRow = tuple[PlottedEstimate, tuple[TableCell, ...], tuple[str, ...]]


def build_table(
    columns: tuple[str, ...], headings: tuple[str, ...], rows: Sequence[TableRow], quantity: Quantity
) -> ChartTable:
    """``rows``: each estimate with the cells (under ``columns``) and texts (under ``headings``) before its own."""
    named = any(estimate.series for estimate, _, _ in rows)
    return ChartTable(
        (*columns, *ESTIMATE_COLUMNS),
        tuple((*cells, *(getattr(estimate, name) for name in ESTIMATE_COLUMNS)) for estimate, cells, _ in rows),
        (*headings, *(("Of",) if named else ()), quantity.name, "Pointwise 95% CI", "n", "Note"),
        tuple((*texts, *format_cells(estimate, quantity, named)) for estimate, _, texts in rows),
    )


def build_estimate_table(estimates: Sequence[PlottedEstimate], quantity: Quantity, row_name: str) -> ChartTable:
    """``row_name``: what a label names, such as “candidate”."""
    rows: list[TableRow] = [(estimate, (estimate.label,), (estimate.label,)) for estimate in estimates]
    return build_table((row_name.lower(),), (row_name,), rows, quantity)


def build_dated_table(dated: Sequence[Dated], quantity: Quantity) -> ChartTable:
    rows: list[TableRow] = [
        (point.estimate, (point.day.isoformat(), point.estimate.label), (point.estimate.label,)) for point in dated
    ]
    return build_table(("from_day", "time"), ("Time",), rows, quantity)


def build_ranked_table(ranked: Sequence[Ranked], quantity: Quantity) -> ChartTable:
    rows: list[TableRow] = [
        (
            standing.estimate,
            (standing.estimate.label, standing.rank, standing.rank_low, standing.rank_high),
            (standing.estimate.label, standing.ranks or "n/a"),
        )
        for standing in ranked
    ]
    return build_table(("candidate", "rank", "rank_low", "rank_high"), ("Candidate", "Rank"), rows, quantity)


def build_binned_table(
    binned: Sequence[Binned],
    quantity: Quantity,
    column: str = "confidence",
    headings: tuple[str, str] = ("Confidence", "Mean confidence"),
) -> ChartTable:
    """``column`` and ``headings``: what the bins are of."""
    rows: list[TableRow] = [
        (
            point.estimate,
            (point.estimate.label, point.confidence),
            (point.estimate.label, quantity.format_value(point.confidence)),
        )
        for point in binned
    ]
    return build_table(("bin", column), headings, rows, quantity)


def build_notes(
    estimates: Sequence[PlottedEstimate], rule: str, most_rows: int | None = None, *, upright: bool = False
) -> list[str]:
    """Notes below a chart: sample sizes, missing values and intervals, what is not drawn, and the rule.

    ``upright``: whether intervals are vertical, as where other lines join the points.
    """
    notes = []
    drawn = filter_with_value(estimates)
    if drawn:
        lines = "Upright lines" if upright else "Lines"
        intervals = f" {lines} are pointwise 95% CIs." if any(estimate.has_interval for estimate in drawn) else ""
        notes.append(f"n is {format_count_range([estimate.n for estimate in drawn])}.{intervals}")
    if missing := [estimate for estimate in estimates if estimate.value is None]:
        notes.append(f"{format_count_of(missing, estimates)} without a value: {format_reasons(missing)}.")
    if hollow := [estimate for estimate in drawn if not estimate.has_interval]:
        count = format_count_of(hollow, estimates)
        notes.append(f"{count} without an interval, drawn hollow: {format_reasons(hollow)}.")
    notes += describe_cut(len(list_series(estimates)), MAX_SERIES, "series")
    if most_rows is not None:
        notes += describe_cut(len(list_labels(estimates)), most_rows, "rows")
    return [*notes, rule] if rule else notes


def format_count_range(numbers: Iterable[int]) -> str:
    least, most = min(counts := list(numbers)), max(counts)
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def format_count_of(some: Sequence[PlottedEstimate], estimates: Sequence[PlottedEstimate]) -> str:
    return f"{len(some)} of {len(estimates)} numbers {'is' if len(some) == 1 else 'are'}"


def format_reasons(estimates: Sequence[PlottedEstimate]) -> str:
    """The distinct reasons, with counts where there are several."""
    counts = Counter(estimate.note.rstrip(".") or "no reason given" for estimate in estimates)
    if len(counts) == 1:
        return next(iter(counts))
    return "; ".join(f"{reason} ({times})" for reason, times in counts.items())


def describe_cut(count: int, most: int, noun: str) -> Iterator[str]:
    if count > most:
        yield f"The first {most} of {count} {noun} are drawn; the table has them all."


def describe_chart(title: str, estimates: Sequence[PlottedEstimate], quantity: Quantity) -> str:
    drawn = filter_with_value(estimates)
    if not drawn:
        return f"{title}. No values."
    ordered = sorted(drawn, key=lambda estimate: estimate.value or 0)
    lowest, highest = (
        f"{quantity.format_value(estimate.value)} ({', '.join(filter(None, (estimate.label, estimate.series)))})"
        for estimate in (ordered[0], max(drawn, key=lambda estimate: estimate.value or 0))
    )
    return f"{title}. {len(drawn)} numbers, from {lowest} to {highest}. The table below has them all."


def wrap_lines(text: str, letters: int) -> list[str]:
    """The text in lines of at most so many characters, for an image."""
    return wrap(text, letters, break_on_hyphens=False)


def build_slugs(names: Iterable[str]) -> dict[str, str]:
    """Unique ASCII slugs for names, for use in URLs and file names."""
    return {
        name: f"{number}-{re.sub(r'[^a-z0-9]+', '-', name.lower())}".strip("-") for number, name in enumerate(names, 1)
    }


@dataclass(frozen=True)
class Caption:
    """``name``: for URLs and file names. ``title``: what the chart shows. ``rule``: a sentence on its computation."""

    name: str
    title: str
    rule: str = ""


@dataclass(frozen=True)
class Chart:
    """A chart with its table. ``spec``: its Vega-Lite specification, None where there is nothing to draw.

    ``description``: the chart in words, for screen readers.
    """

    name: str
    title: str
    description: str
    spec: Json | None
    table: ChartTable
    notes: tuple[str, ...]

    @property
    def height(self) -> int:
        """The height in pixels, with legend and axes, which a page reserves for the chart."""
        return int(self.spec["height"]) if self.spec else 0

    def with_source_note(self, words: str) -> "Chart":
        """The chart with a note on its source, also in the subtitle of an image that has a title."""
        notes = (*self.notes, words)
        if self.spec is None or "title" not in self.spec:
            return replace(self, notes=notes)
        lines, title = wrap_lines(words, SUBTITLE_LETTERS), self.spec["title"]
        height = self.spec["height"] + SUBTITLE_PIXELS * len(lines)
        spec = {**self.spec, "height": height, "title": {**title, "subtitle": [*title["subtitle"], *lines]}}
        return replace(self, notes=notes, spec=spec)
