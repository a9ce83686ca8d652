"""How long it took until everything was well again: one row for each fault and combination."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class Figures:
    """In seconds. ``refused`` and ``broken`` count requests of people, ``saved`` their reviews."""

    judging: float
    saving: float
    second_run: float
    ended: float
    refused: int
    broken: int
    saved: int


def longest_pause(times: Sequence[float], since: float) -> float:
    """The longest time between two of these after ``since``."""
    ordered = sorted({since, *(time for time in times if time > since)})
    return max((later - earlier for earlier, later in pairwise(ordered)), default=0.0)


def write_table(rows: Sequence[tuple[str, str, Figures]]) -> Iterator[str]:
    """A table in Markdown."""
    yield "| fault | on | no reviews saved | no calls answered | new run begins | all calls done | 503 | cut |"
    yield "|---|---|---|---|---|---|---|---|"
    for fault, combination, figures in rows:
        seconds = (figures.saving, figures.judging, figures.second_run, figures.ended)
        cells = [
            fault,
            combination,
            *(f"{value:.1f} s" for value in seconds),
            str(figures.refused),
            str(figures.broken),
        ]
        yield f"| {' | '.join(cells)} |"
