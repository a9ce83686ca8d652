"""What a plot says in words: whom it leaves out and why, and what a reader of the picture would see first."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from textwrap import wrap

from evaluations.figures.estimates import Estimate, labels_of, series_of, with_value
from evaluations.figures.media import MOST_SERIES
from evaluations.figures.quantities import Quantity


def notes_of(
    estimates: Sequence[Estimate], rule: str, most_rows: int | None = None, *, upright: bool = False
) -> list[str]:
    """``upright``: intervals are, since other lines go from point to point."""
    return list(noted(estimates, rule, most_rows, "Upright lines" if upright else "Lines"))


def noted(estimates: Sequence[Estimate], rule: str, most_rows: int | None, lines: str) -> Iterator[str]:
    """How many each number rests on, what is not drawn, what has no interval, and the rule."""
    drawn = with_value(estimates)
    if drawn:
        intervals = f" {lines} are pointwise 95% CIs." if any(one.has_interval for one in drawn) else ""
        yield f"n is {between([one.n for one in drawn])}.{intervals}"
    if missing := [one for one in estimates if one.value is None]:
        yield f"{counted(missing, estimates)} without a value: {reasons(missing)}."
    if hollow := [one for one in drawn if not one.has_interval]:
        yield f"{counted(hollow, estimates)} without an interval, drawn hollow: {reasons(hollow)}."
    yield from cut(len(series_of(estimates)), MOST_SERIES, "series")
    if most_rows is not None:
        yield from cut(len(labels_of(estimates)), most_rows, "rows")
    if rule:
        yield rule


def between(numbers: Iterable[int]) -> str:
    least, most = min(counts := list(numbers)), max(counts)
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"


def counted(some: Sequence[Estimate], estimates: Sequence[Estimate]) -> str:
    return f"{len(some)} of {len(estimates)} numbers {'is' if len(some) == 1 else 'are'}"


def reasons(estimates: Sequence[Estimate]) -> str:
    """Each reason once; how often, where there are several."""
    given = Counter(one.note.rstrip(".") or "no reason given" for one in estimates)
    if len(given) == 1:
        return next(iter(given))
    return "; ".join(f"{reason} ({times})" for reason, times in given.items())


def cut(there: int, most: int, what: str) -> Iterator[str]:
    if there > most:
        yield f"The first {most} of {there} {what} are drawn; the table has them all."


def description(title: str, estimates: Sequence[Estimate], quantity: Quantity) -> str:
    drawn = with_value(estimates)
    if not drawn:
        return f"{title}. There is nothing to draw."
    highest = max(drawn, key=lambda one: one.value or 0)
    lowest = min(drawn, key=lambda one: one.value or 0)
    return (
        f"{title}. {len(drawn)} numbers, from {place(lowest, quantity)} to {place(highest, quantity)}. "
        "The table below has them all."
    )


def place(estimate: Estimate, quantity: Quantity) -> str:
    return f"{quantity.said(estimate.value)} ({', '.join(filter(None, (estimate.label, estimate.series)))})"


def wrapped(text: str, letters: int) -> list[str]:
    """In lines of so many letters, for an image."""
    return wrap(text, letters, break_on_hyphens=False)


def names_of(said: Iterable[str]) -> dict[str, str]:
    """What names become in addresses and file names: letters and digits of ASCII, never the same twice."""
    return {
        name: f"{number}-{re.sub(r'[^a-z0-9]+', '-', name.lower())}".strip("-") for number, name in enumerate(said, 1)
    }
