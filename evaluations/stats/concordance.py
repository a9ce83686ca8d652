"""With how many others each entry stands in the same order on both sides, less with how many in the opposite."""

from math import sqrt
from typing import Final

import numpy as np
import numpy.typing as npt

from evaluations.stats.coding import BoolArray, IntArray
from evaluations.stats.contributions import FloatArray
from evaluations.stats.ranks import Ranked, stable_order

SMALL_TABLE: Final = 4_096  # cells; a table of as many cells as entries is always used
BLOCKS: Final = 1.2  # times the square root of n: where counting between blocks and inside them cost the same

Places = npt.NDArray[np.int32]
Small = npt.NDArray[np.int32 | np.uint16]


def concordance(x: Ranked, y: Ranked) -> FloatArray:
    """Σ_j sign(x_i − x_j) · sign(y_i − y_j) for each entry i. Exact; about n^1.5 comparisons of small numbers.

    With h = 1 for less and ½ for equal, sign = 1 − 2h summed up needs Σ_j h(x_j, x_i) · h(y_j, y_i) alone.
    """
    n = len(x.code)
    cells = len(x.count) * len(y.count)
    below = below_by_table(x, y) if cells <= max(n, SMALL_TABLE) else below_by_blocks(x, y)
    return 4 * below - 2 * (x.standing + n / 2) - 2 * (y.standing + n / 2) + n


def below_by_table(x: Ranked, y: Ranked) -> FloatArray:
    """Per entry the entries below it on both sides, a tie counting half, from the table of distinct values."""
    shape = len(x.count), len(y.count)
    flat = x.code * shape[1] + y.code
    summed = np.zeros((shape[0] + 1, shape[1] + 1))
    summed[1:, 1:] = np.bincount(flat, minlength=shape[0] * shape[1]).reshape(shape).cumsum(axis=0).cumsum(axis=1)
    # ½(less) + ½(less or equal) on each side: the mean of the four corners.
    mean = (summed[1:, 1:] + summed[:-1, 1:] + summed[1:, :-1] + summed[:-1, :-1]) / 4
    return np.asarray(mean.ravel()[flat])


def below_by_blocks(x: Ranked, y: Ranked) -> FloatArray:
    """The same for sides with many values, from places in order."""
    n = len(x.code)
    if len(x.count) < n or len(y.count) < n:
        return below_with_ties(x, y)
    rank = np.empty(n, dtype=np.int32)
    rank[x.code] = y.code
    return smaller_before(rank)[x.code].astype(np.float64) + 1 / 4  # an entry is half below itself on either side


def below_with_ties(x: Ranked, y: Ranked) -> FloatArray:
    """Of equal values none counts as less in the order in which they are put here; what they add is counted apart."""
    descending = stable_order(len(y.count) - 1 - y.code)
    by_x = descending[stable_order(x.code[descending])]  # of equal x the higher y first
    by_y = by_x[::-1][stable_order(y.code[by_x[::-1]])]  # of equal y the higher x first
    rank = np.empty(len(by_x), dtype=np.int32)
    rank[by_y] = np.arange(len(by_y))
    found = np.empty(len(by_x))
    found[by_x] = smaller_before(rank[by_x])
    equal_x, equal_both = ends(x.code[by_x], y.code[by_x])
    found[by_x] += (equal_x - equal_both) / 2 + run_lengths(equal_both) / 4
    equal_y, equal_both = ends(y.code[by_y], x.code[by_y])
    found[by_y] += (equal_y - equal_both) / 2
    return found


def ends(first: IntArray, second: IntArray) -> tuple[IntArray, IntArray]:
    """Of entries in order by both: where the run of equals by the first ends, and that of equals by both."""
    new = first[1:] != first[:-1]
    return end_of_run(new), end_of_run(new | (second[1:] != second[:-1]))


def end_of_run(new: BoolArray) -> IntArray:
    end = np.append(np.flatnonzero(new) + 1, len(new) + 1)
    return np.repeat(end, np.diff(end, prepend=0))


def run_lengths(end: IntArray) -> IntArray:
    return np.bincount(end)[end]


def smaller_before(rank: Places) -> IntArray:
    """Per place of a permutation, how many places before it hold a smaller rank.

    Places and ranks are cut into blocks. A table counts what lies in an earlier block of both; what shares a block
    of places, or only one of ranks, is compared one by one, for all blocks together.
    """
    blocks = int(BLOCKS * sqrt(len(rank))) | 1  # odd: rows of a power of two fall on the same lines of the cache
    size = -(-len(rank) // blocks)
    n = len(rank)
    rank = np.append(rank, np.arange(n, blocks * size, dtype=np.int32))
    place = np.empty_like(rank)
    place[rank] = np.arange(len(rank))
    found = before_in_both(rank // size, blocks, size) + pairs_in_block(rank, blocks)
    found[place] += pairs_in_block((place // size).astype(np.uint16), blocks)
    return found[:n]


def before_in_both(block_of_rank: Places, blocks: int, size: int) -> IntArray:
    row = np.repeat(np.arange(blocks), size)
    inner = np.bincount(row * blocks + block_of_rank, minlength=blocks * blocks).reshape(blocks, blocks)
    table = np.zeros((blocks + 1, blocks + 1), dtype=np.int64)
    np.cumsum(inner.cumsum(axis=0), axis=1, out=table[1:, 1:])
    return np.asarray(table.ravel()[row * (blocks + 1) + block_of_rank])


def pairs_in_block(value: Small, blocks: int) -> IntArray:
    """Per entry, how many before it in its block are smaller."""
    across = np.ascontiguousarray(value.reshape(blocks, -1).T)
    found = np.zeros(across.shape, dtype=np.uint16)
    for apart in range(1, len(across)):
        found[apart:] += across[:-apart] < across[apart:]
    return found.T.ravel().astype(np.int64)
