"""Values as ranks among each other."""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from evaluations.stats.coding import FloatArray, IntArray

PARTS: Final = 2_520  # grid steps in 1: halves to tenths are multiples
STEPS: Final = 65_536
STEPS_FOR_EACH: Final = 4
BITS: Final = 16  # numpy sorts numbers of so many bits by radix


@dataclass(frozen=True)
class RankedValues:
    """``code``: the rank of each entry's value among the distinct ones, from 0. ``count``: how often each occurs."""

    code: IntArray
    count: IntArray

    @property
    def is_constant(self) -> bool:
        return len(self.count) < 2

    @cached_property
    def standing(self) -> FloatArray:
        """The mid-rank of each entry minus the mean of all mid-ranks."""
        mid = np.cumsum(self.count) - self.count / 2
        return np.asarray((mid - len(self.code) / 2)[self.code])

    def above(self, weight: FloatArray) -> FloatArray:
        """For each entry, the weight of the entries with a higher value plus half of that of equal ones."""
        of_value = np.bincount(self.code, weight, len(self.count))
        return np.asarray((of_value.sum() - np.cumsum(of_value) + of_value / 2)[self.code])


def rank_values(value: FloatArray) -> RankedValues:
    step = grid_positions(value)
    if step is None:
        _, code, count = np.unique(value, return_inverse=True, return_counts=True)
        return RankedValues(code, count)
    count = np.bincount(step)
    occurs = count > 0
    return RankedValues((np.cumsum(occurs) - 1)[step], count[occurs])


def grid_positions(value: FloatArray) -> IntArray | None:
    """Steps above the lowest value, where all are parts of whole numbers and the grid is no finer than needed.

    Scores, and means of a few of them, are: counting them is many times quicker than sorting.
    """
    scaled = np.rint(value * PARTS)
    low, high = scaled.min(initial=np.inf), scaled.max(initial=-np.inf)
    if not high - low <= max(STEPS_FOR_EACH * len(value), STEPS) or (scaled / PARTS != value).any():
        return None
    return np.asarray((scaled - low).astype(np.int64))


def radix_order(key: IntArray) -> IntArray:
    """The stable order that sorts whole numbers from 0, by sixteen bits at a time: numpy does so in linear time."""
    if (key[1:] >= key[:-1]).all():
        return np.arange(len(key))
    order = np.argsort(key.astype(np.uint16), kind="stable")
    for shift in range(BITS, int(key.max()).bit_length(), BITS):
        order = order[np.argsort((key >> shift).astype(np.uint16)[order], kind="stable")]
    return order
