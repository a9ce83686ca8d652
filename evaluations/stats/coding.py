"""Words and numbers for the same things: choices and orders as small integers in arrays."""

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from evaluations.domain import CHOICES as CHOICES
from evaluations.domain import ORDERS as ORDERS

# Choices come as bytes, numbers of things as int64.
IntArray = npt.NDArray[np.signedinteger[Any]]
BoolArray = npt.NDArray[np.bool_]

# The code of a choice or an order is its place in these.
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
