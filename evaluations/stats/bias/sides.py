"""Choices seen as sides: A, B, no side (tie and both bad alike), or MISSING."""

from typing import Final

import numpy as np
import numpy.typing as npt

from evaluations.stats.coding import MISSING, TIE, A, B, BoolArray, IntArray

Sides = npt.NDArray[np.int8]

NO_SIDE: Final = TIE


def sides(choice: IntArray) -> Sides:
    return np.minimum(choice, NO_SIDE).astype(np.int8)


def has_side(side: Sides) -> BoolArray:
    return side.view(np.uint8) <= B  # MISSING becomes 255


def only_one(a: BoolArray, b: BoolArray) -> Sides:
    """The side of which alone it is true, else MISSING."""
    return np.where(a == b, MISSING, np.where(a, A, B)).astype(np.int8)
