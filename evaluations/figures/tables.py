"""The table beside every plot: all its numbers, those too that could not be drawn."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from evaluations.figures.estimates import Binned, Dated, Estimate, Ranked
from evaluations.figures.quantities import Quantity

Cell = str | int | float | None

OF_ESTIMATE: Final = ("series", "value", "low", "high", "n", "note")


@dataclass(frozen=True)
class Table:
    """``columns`` and ``rows`` as a file has them, exactly; ``head`` and ``said`` the same for readers."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    head: tuple[str, ...]
    said: tuple[tuple[str, ...], ...]


def cells(estimate: Estimate) -> tuple[Cell, ...]:
    return (estimate.series, estimate.value, estimate.low, estimate.high, estimate.n, estimate.note)


def heads(quantity: Quantity, named: bool) -> tuple[str, ...]:
    """``named``: whether there are series that are told apart by name."""
    return (*(("Of",) if named else ()), quantity.name, "Pointwise 95% CI", "n", "Note")


def said(estimate: Estimate, quantity: Quantity, named: bool) -> tuple[str, ...]:
    numbers = (quantity.said(estimate.value), quantity.interval_said(estimate), f"{estimate.n:,}")
    return (*((estimate.series,) if named else ()), *numbers, estimate.note)


def are_named(estimates: Iterable[Estimate]) -> bool:
    return any(one.series for one in estimates)


def rows_of(estimates: Sequence[Estimate], quantity: Quantity, row_name: str) -> Table:
    """``row_name``: what a label names, such as “candidate”."""
    named = are_named(estimates)
    return Table(
        (row_name.lower(), *OF_ESTIMATE),
        tuple((one.label, *cells(one)) for one in estimates),
        (row_name, *heads(quantity, named)),
        tuple((one.label, *said(one, quantity, named)) for one in estimates),
    )


def rows_of_dated(dated: Sequence[Dated], quantity: Quantity) -> Table:
    named = are_named(one.estimate for one in dated)
    return Table(
        ("from_day", "time", *OF_ESTIMATE),
        tuple((one.day.isoformat(), one.estimate.label, *cells(one.estimate)) for one in dated),
        ("Time", *heads(quantity, named)),
        tuple((one.estimate.label, *said(one.estimate, quantity, named)) for one in dated),
    )


def rows_of_ranked(ranked: Sequence[Ranked], quantity: Quantity) -> Table:
    named = are_named(one.estimate for one in ranked)
    return Table(
        ("candidate", "rank", "rank_low", "rank_high", *OF_ESTIMATE),
        tuple((one.estimate.label, one.rank, one.rank_low, one.rank_high, *cells(one.estimate)) for one in ranked),
        ("Candidate", "Rank", *heads(quantity, named)),
        tuple((one.estimate.label, one.ranks or "n/a", *said(one.estimate, quantity, named)) for one in ranked),
    )


def rows_of_binned(binned: Sequence[Binned], quantity: Quantity) -> Table:
    named = are_named(one.estimate for one in binned)
    return Table(
        ("bin", "confidence", *OF_ESTIMATE),
        tuple((one.estimate.label, one.confidence, *cells(one.estimate)) for one in binned),
        ("Confidence", "Mean confidence", *heads(quantity, named)),
        tuple(
            (one.estimate.label, quantity.said(one.confidence), *said(one.estimate, quantity, named)) for one in binned
        ),
    )
