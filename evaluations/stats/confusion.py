"""What a judge chose where the other side chose something else, as a matrix."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.domain import Choice, Coding
from evaluations.stats.agreement import NOTHING_SHARED
from evaluations.stats.coding import BOTH_BAD, CHOICES, TIE, A, B, IntArray
from evaluations.stats.numbers import Number, undefined

NO_INTERVAL: Final = "Macro averages have no interval here."
PLACES: Final = {Choice.A: "first", Choice.B: "second"}
IN_VIEW: Final = (A, TIE, BOTH_BAD, B)  # the sides outside, what lies between them in between


@dataclass(frozen=True)
class Macro:
    """Means over the choices that occur on either side, the columns being right. What was never chosen counts as 0."""

    precision: Number
    recall: Number
    f1: Number


@dataclass(frozen=True)
class Confusion:
    """``counts[i][j]``: the judge made choice i where the columns' side made choice j."""

    rows: str
    columns: str
    choices: tuple[str, ...]
    counts: tuple[tuple[int, ...], ...]
    macro: Macro


def confusion(table: IntArray, offered: Collection[int], coding: Coding, columns: str) -> Confusion:
    """The choices that were offered or occur, A and B outermost."""
    occurring = table.sum(axis=0) + table.sum(axis=1)
    codes = [code for code in IN_VIEW if code in offered or occurring[code]]
    return Confusion(
        rows="judge",
        columns=columns,
        choices=tuple(label(CHOICES[code], coding) for code in codes),
        counts=tuple(tuple(int(table[row, column]) for column in codes) for row in codes),
        macro=macro(table),
    )


def macro(table: IntArray) -> Macro:
    """``table``: the judge's choices by the right ones."""
    n = int(table.sum())
    if not n:
        return Macro(*(undefined(NOTHING_SHARED) for _ in range(3)))
    chosen, right = table.sum(axis=1), table.sum(axis=0)
    occurs = chosen + right > 0
    hit, chosen, right = np.diag(table)[occurs], chosen[occurs], right[occurs]
    shares = hit / np.maximum(chosen, 1), hit / np.maximum(right, 1), 2 * hit / (chosen + right)
    return Macro(*(Number(float(one.mean()), n, ci95_why=NO_INTERVAL) for one in shares))


def label(choice: Choice, coding: Coding) -> str:
    return PLACES.get(choice, str(choice)) if coding is Coding.SHOWN else str(choice)
