"""Words and numbers for the same things: choices and orders as small integers in arrays."""

from typing import Final

import numpy as np
import numpy.typing as npt

from evaluations.domain import Choice, Shown

IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

# The code of a choice or an order is its place here. The two sides come first, so that a table
# without ties is the upper left corner of the table with them.
CHOICES: Final = (Choice.A, Choice.B, Choice.TIE, Choice.BOTH_BAD)
ORDERS: Final = (Shown.AS_STORED, Shown.SWAPPED, Shown.UNKNOWN, Shown.FOLDED)
A, B, TIE, BOTH_BAD = range(4)
AS_STORED, SWAPPED, UNKNOWN, FOLDED = range(4)
MISSING: Final = -1

FLIP: Final[IntArray] = np.array([B, A, TIE, BOTH_BAD])


def cross_table(rows: IntArray, columns: IntArray) -> IntArray:
    """How often each choice in ``rows`` met each in ``columns``: 4 × 4, entries with a MISSING side left out."""
    both = (rows != MISSING) & (columns != MISSING)
    flat = rows[both] * len(CHOICES) + columns[both]
    return np.bincount(flat, minlength=len(CHOICES) ** 2).reshape(len(CHOICES), len(CHOICES))


def counts_by_unit(unit: IntArray, choice: IntArray, units: int) -> IntArray:
    """How often each choice was made per unit: units × 4."""
    flat = unit * len(CHOICES) + choice
    return np.bincount(flat, minlength=units * len(CHOICES)).reshape(units, len(CHOICES))
