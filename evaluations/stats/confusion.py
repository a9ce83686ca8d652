"""What a judge chose where the other side chose something else, as a matrix."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

from evaluations.domain import Choice, Coding
from evaluations.stats.coding import BOTH_BAD, CHOICES, TIE, A, B, IntArray

PLACES: Final = {Choice.A: "first", Choice.B: "second"}
IN_VIEW: Final = (A, TIE, BOTH_BAD, B)  # the sides outside, what lies between them in between


@dataclass(frozen=True)
class Confusion:
    """``counts[i][j]``: the judge made choice i where the columns' side made choice j."""

    rows: str
    columns: str
    choices: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]


def confusion(table: IntArray, offered: Collection[int], coding: Coding, columns: str) -> Confusion:
    """The choices that were offered or occur, A and B outermost."""
    occurring = table.sum(axis=0) + table.sum(axis=1)
    codes = [code for code in IN_VIEW if code in offered or occurring[code]]
    return Confusion(
        rows="judge",
        columns=columns,
        choices=tuple(label(CHOICES[code], coding) for code in codes),
        counts=tuple(tuple(int(table[row, column]) for column in codes) for row in codes),
    )


def label(choice: Choice, coding: Coding) -> str:
    return PLACES.get(choice, str(choice)) if coding is Coding.SHOWN else str(choice)
