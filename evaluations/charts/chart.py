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
ESTIMATE_COLUMNS: Final = ("series", "value", "low", "high", "n", "note")


@dataclass(frozen=True)
class ChartTable:
    """``columns`` and ``rows`` as a file has them, exactly; ``head`` and ``said`` the same for readers."""

    columns: tuple[str, ...]
    rows: tuple[tuple[TableCell, ...], ...]
    head: tuple[str, ...]
    said: tuple[tuple[str, ...], ...]


def build_cells(estimate: PlottedEstimate) -> tuple[TableCell, ...]:
    return (estimate.series, estimate.value, estimate.low, estimate.high, estimate.n, estimate.note)


def build_headings(quantity: Quantity, named: bool) -> tuple[str, ...]:
    """``named``: whether the series have names."""
    return (*(("Of",) if named else ()), quantity.name, "Pointwise 95% CI", "n", "Note")


def format_cells(estimate: PlottedEstimate, quantity: Quantity, named: bool) -> tuple[str, ...]:
    numbers = (quantity.said(estimate.value), quantity.interval_said(estimate), f"{estimate.n:,}")
    return (*((estimate.series,) if named else ()), *numbers, estimate.note)


def has_named_series(estimates: Iterable[PlottedEstimate]) -> bool:
    return any(one.series for one in estimates)


def build_estimate_table(estimates: Sequence[PlottedEstimate], quantity: Quantity, row_name: str) -> ChartTable:
    """``row_name``: what a label names, such as “candidate”."""
    named = has_named_series(estimates)
    return ChartTable(
        (row_name.lower(), *ESTIMATE_COLUMNS),
        tuple((one.label, *build_cells(one)) for one in estimates),
        (row_name, *build_headings(quantity, named)),
        tuple((one.label, *format_cells(one, quantity, named)) for one in estimates),
    )


def build_dated_table(dated: Sequence[Dated], quantity: Quantity) -> ChartTable:
    named = has_named_series(one.estimate for one in dated)
    return ChartTable(
        ("from_day", "time", *ESTIMATE_COLUMNS),
        tuple((one.day.isoformat(), one.estimate.label, *build_cells(one.estimate)) for one in dated),
        ("Time", *build_headings(quantity, named)),
        tuple((one.estimate.label, *format_cells(one.estimate, quantity, named)) for one in dated),
    )


def build_ranked_table(ranked: Sequence[Ranked], quantity: Quantity) -> ChartTable:
    named = has_named_series(one.estimate for one in ranked)
    return ChartTable(
        ("candidate", "rank", "rank_low", "rank_high", *ESTIMATE_COLUMNS),
        tuple(
            (one.estimate.label, one.rank, one.rank_low, one.rank_high, *build_cells(one.estimate)) for one in ranked
        ),
        ("Candidate", "Rank", *build_headings(quantity, named)),
        tuple((one.estimate.label, one.ranks or "n/a", *format_cells(one.estimate, quantity, named)) for one in ranked),
    )


def build_binned_table(binned: Sequence[Binned], quantity: Quantity) -> ChartTable:
    named = has_named_series(one.estimate for one in binned)
    return ChartTable(
        ("bin", "confidence", *ESTIMATE_COLUMNS),
        tuple((one.estimate.label, one.confidence, *build_cells(one.estimate)) for one in binned),
        ("Confidence", "Mean confidence", *build_headings(quantity, named)),
        tuple(
            (one.estimate.label, quantity.said(one.confidence), *format_cells(one.estimate, quantity, named))
            for one in binned
        ),
    )


def build_notes(
    estimates: Sequence[PlottedEstimate], rule: str, most_rows: int | None = None, *, upright: bool = False
) -> list[str]:
    """``upright``: intervals are, since other lines go from point to point."""
    return list(iterate_notes(estimates, rule, most_rows, "Upright lines" if upright else "Lines"))


def iterate_notes(estimates: Sequence[PlottedEstimate], rule: str, most_rows: int | None, lines: str) -> Iterator[str]:
    """How many each number rests on, what is not drawn, what has no interval, and the rule."""
    drawn = filter_with_value(estimates)
    if drawn:
        intervals = f" {lines} are pointwise 95% CIs." if any(one.has_interval for one in drawn) else ""
        yield f"n is {format_count_range([one.n for one in drawn])}.{intervals}"
    if missing := [one for one in estimates if one.value is None]:
        yield f"{format_count_of(missing, estimates)} without a value: {format_reasons(missing)}."
    if hollow := [one for one in drawn if not one.has_interval]:
        yield f"{format_count_of(hollow, estimates)} without an interval, drawn hollow: {format_reasons(hollow)}."
    yield from describe_cut(len(list_series(estimates)), MAX_SERIES, "series")
    if most_rows is not None:
        yield from describe_cut(len(list_labels(estimates)), most_rows, "rows")
    if rule:
        yield rule


def format_count_range(numbers: Iterable[int]) -> str:
    least, most = min(counts := list(numbers)), max(counts)
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def format_count_of(some: Sequence[PlottedEstimate], estimates: Sequence[PlottedEstimate]) -> str:
    return f"{len(some)} of {len(estimates)} numbers {'is' if len(some) == 1 else 'are'}"


def format_reasons(estimates: Sequence[PlottedEstimate]) -> str:
    """Each reason once; how often, where there are several."""
    given = Counter(one.note.rstrip(".") or "no reason given" for one in estimates)
    if len(given) == 1:
        return next(iter(given))
    return "; ".join(f"{reason} ({times})" for reason, times in given.items())


def describe_cut(there: int, most: int, what: str) -> Iterator[str]:
    if there > most:
        yield f"The first {most} of {there} {what} are drawn; the table has them all."


def describe_chart(title: str, estimates: Sequence[PlottedEstimate], quantity: Quantity) -> str:
    drawn = filter_with_value(estimates)
    if not drawn:
        return f"{title}. There is nothing to draw."
    highest = max(drawn, key=lambda one: one.value or 0)
    lowest = min(drawn, key=lambda one: one.value or 0)
    return (
        f"{title}. {len(drawn)} numbers, from {describe_point(lowest, quantity)} to "
        f"{describe_point(highest, quantity)}. "
        "The table below has them all."
    )


def describe_point(estimate: PlottedEstimate, quantity: Quantity) -> str:
    return f"{quantity.said(estimate.value)} ({', '.join(filter(None, (estimate.label, estimate.series)))})"


def wrap_lines(text: str, letters: int) -> list[str]:
    """In lines of so many letters, for an image."""
    return wrap(text, letters, break_on_hyphens=False)


def build_slugs(said: Iterable[str]) -> dict[str, str]:
    """Unique ASCII slugs for names, for use in URLs and file names."""
    return {
        name: f"{number}-{re.sub(r'[^a-z0-9]+', '-', name.lower())}".strip("-") for number, name in enumerate(said, 1)
    }


@dataclass(frozen=True)
class Caption:
    """``name``: in addresses and file names. ``title``: what is shown, of what. ``rule``: by which rule it was made."""

    name: str
    title: str
    rule: str = ""


@dataclass(frozen=True)
class Chart:
    """``spec`` is None where there is nothing to draw; the notes say why, and the table is there all the same.

    ``description``: the plot in words, for those who do not see it.
    """

    name: str
    title: str
    description: str
    spec: Json | None
    table: ChartTable
    notes: tuple[str, ...]

    @property
    def height(self) -> int:
        """In pixels, legend and axes included: the room that a page keeps for it."""
        return int(self.spec["height"]) if self.spec else 0

    def told_of(self, words: str) -> "Chart":
        """With what it was made of among its notes, and on the image where that says of itself what it shows."""
        notes = (*self.notes, words)
        if self.spec is None or "title" not in self.spec:
            return replace(self, notes=notes)
        lines, title = wrap_lines(words, SUBTITLE_LETTERS), self.spec["title"]
        height = self.spec["height"] + SUBTITLE_PIXELS * len(lines)
        spec = {**self.spec, "height": height, "title": {**title, "subtitle": [*title["subtitle"], *lines]}}
        return replace(self, notes=notes, spec=spec)
