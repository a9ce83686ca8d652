"""Integer codes of choices, orders and sides in arrays."""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from evaluations.domain.choices import PACKED_CHOICES

# Choices come as bytes, numbers of things as int64.
IntArray = npt.NDArray[np.signedinteger[Any]]
BoolArray = npt.NDArray[np.bool_]
FloatArray = npt.NDArray[np.float64]
# The code of a choice or an order is its position in these.
A, B, TIE, BOTH_BAD = range(4)
AS_STORED, SWAPPED, UNKNOWN, FOLDED = range(4)
MISSING: Final = -1
CHOICES: Final = len(PACKED_CHOICES)
FLIP: Final[IntArray] = np.array([B, A, TIE, BOTH_BAD])


def cross_tabulate_choices(rows: IntArray, columns: IntArray) -> IntArray:
    """Counts of each pair of choices in ``rows`` and ``columns``, 4 × 4, without entries that are MISSING on a side."""
    both = (rows != MISSING) & (columns != MISSING)
    flat = rows[both] * CHOICES + columns[both]
    return np.bincount(flat, minlength=CHOICES**2).reshape(CHOICES, CHOICES)


def count_choices_by_unit(unit: IntArray, choice: IntArray, units: int) -> IntArray:
    """How often each choice was made per unit: units × 4."""
    flat = unit * CHOICES + choice
    return np.bincount(flat, minlength=units * CHOICES).reshape(units, CHOICES)


def join_numbers(arrays: Sequence[IntArray]) -> IntArray:
    """The whole numbers that are in any of these arrays, ascending. They are marked, so they must be places, from 0."""
    is_present = np.zeros(max((int(numbers.max(initial=-1)) for numbers in arrays), default=-1) + 1, dtype=np.bool_)
    for numbers in arrays:
        is_present[numbers] = True
    return np.flatnonzero(is_present)


Sides = npt.NDArray[np.int8]
NO_SIDE: Final = TIE


def sides_of_choices(choice: IntArray) -> Sides:
    return np.minimum(choice, NO_SIDE).astype(np.int8)


def has_side(side: Sides) -> BoolArray:
    return side.view(np.uint8) <= B  # MISSING becomes 255


def exclusive_side(a: BoolArray, b: BoolArray) -> Sides:
    """The side for which alone the condition is true, else MISSING."""
    return np.where(a == b, MISSING, np.where(a, A, B)).astype(np.int8)
