"""Spearman's rho and Kendall's tau-b of two sides' scores of the same responses."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import sqrt
from typing import Final

import numpy as np
import numpy.typing as npt

from evaluations.stats.cluster_totals import Clusters, Contributions
from evaluations.stats.coding import BoolArray, FloatArray, IntArray
from evaluations.stats.confidence_intervals import BOOTSTRAP_UP_TO, Influence, Spread, Statistic, fisher_z_interval
from evaluations.stats.estimates import Estimate, undefined_estimate
from evaluations.stats.ranks import RankedValues, radix_order

SMALL_TABLE: Final = 4_096  # cells; a table with at most as many cells as entries is always used
BLOCKS: Final = 1.2  # × √n blocks make counting between and within blocks cost the same
Places = npt.NDArray[np.int32]
Small = npt.NDArray[np.int32 | np.uint16]


def concordance_sums(x: RankedValues, y: RankedValues) -> FloatArray:
    """Σ_j sign(x_i − x_j) · sign(y_i − y_j) for each entry i. Exact; about n^1.5 comparisons of small numbers.

    With h = 1 for less and ½ for equal, sign = 1 − 2h summed up needs Σ_j h(x_j, x_i) · h(y_j, y_i) alone.
    """
    n = len(x.code)
    cells = len(x.count) * len(y.count)
    below = count_below_by_table(x, y) if cells <= max(n, SMALL_TABLE) else count_below_by_blocks(x, y)
    return 4 * below - 2 * (x.standing + n / 2) - 2 * (y.standing + n / 2) + n


def count_below_by_table(x: RankedValues, y: RankedValues) -> FloatArray:
    """Per entry the entries below it on both sides, a tie counting half, from the table of distinct values."""
    shape = len(x.count), len(y.count)
    flat = x.code * shape[1] + y.code
    summed = np.zeros((shape[0] + 1, shape[1] + 1))
    summed[1:, 1:] = np.bincount(flat, minlength=shape[0] * shape[1]).reshape(shape).cumsum(axis=0).cumsum(axis=1)
    # ½(less) + ½(less or equal) on each side: the mean of the four corners.
    mean = (summed[1:, 1:] + summed[:-1, 1:] + summed[1:, :-1] + summed[:-1, :-1]) / 4
    return np.asarray(mean.ravel()[flat])


def count_below_by_blocks(x: RankedValues, y: RankedValues) -> FloatArray:
    """Counts of entries below for sides with many values, from their ranks."""
    n = len(x.code)
    if len(x.count) < n or len(y.count) < n:
        return count_below_with_ties(x, y)
    rank = np.empty(n, dtype=np.int32)
    rank[x.code] = y.code
    return count_smaller_before(rank)[x.code].astype(np.float64) + 1 / 4  # an entry is half below itself on either side


def count_below_with_ties(x: RankedValues, y: RankedValues) -> FloatArray:
    """Counts of entries below for sides with ties, which are counted separately."""
    descending = radix_order(len(y.count) - 1 - y.code)
    by_x = descending[radix_order(x.code[descending])]  # of equal x the higher y first
    by_y = by_x[::-1][radix_order(y.code[by_x[::-1]])]  # of equal y the higher x first
    rank = np.empty(len(by_x), dtype=np.int32)
    rank[by_y] = np.arange(len(by_y))
    counts = np.empty(len(by_x))
    counts[by_x] = count_smaller_before(rank[by_x])
    equal_x, equal_both = find_run_ends(x.code[by_x], y.code[by_x])
    counts[by_x] += (equal_x - equal_both) / 2 + np.bincount(equal_both)[equal_both] / 4
    equal_y, equal_both = find_run_ends(y.code[by_y], x.code[by_y])
    counts[by_y] += (equal_y - equal_both) / 2
    return counts


def find_run_ends(first: IntArray, second: IntArray) -> tuple[IntArray, IntArray]:
    """For entries sorted by both sides, the end of the run of equals by the first and by both."""
    new = first[1:] != first[:-1]
    return run_end(new), run_end(new | (second[1:] != second[:-1]))


def run_end(new: BoolArray) -> IntArray:
    end = np.append(np.flatnonzero(new) + 1, len(new) + 1)
    return np.repeat(end, np.diff(end, prepend=0))


def count_smaller_before(rank: Places) -> IntArray:
    """Per position of a permutation, how many positions before it have a smaller rank.

    Positions and ranks are cut into blocks. A table counts entries in an earlier block of both; entries that share a
    block of positions, or only one of ranks, are compared pair by pair, for all blocks together.
    """
    blocks = int(BLOCKS * sqrt(len(rank))) | 1  # odd: rows of a power of two fall on the same lines of the cache
    size = -(-len(rank) // blocks)
    n = len(rank)
    rank = np.append(rank, np.arange(n, blocks * size, dtype=np.int32))
    position = np.empty_like(rank)
    position[rank] = np.arange(len(rank))
    counts = count_before_in_both(rank // size, blocks, size) + count_pairs_in_block(rank, blocks)
    counts[position] += count_pairs_in_block((position // size).astype(np.uint16), blocks)
    return counts[:n]


def count_before_in_both(block_of_rank: Places, blocks: int, size: int) -> IntArray:
    row = np.repeat(np.arange(blocks), size)
    inner = np.bincount(row * blocks + block_of_rank, minlength=blocks * blocks).reshape(blocks, blocks)
    table = np.zeros((blocks + 1, blocks + 1), dtype=np.int64)
    np.cumsum(inner.cumsum(axis=0), axis=1, out=table[1:, 1:])
    return np.asarray(table.ravel()[row * (blocks + 1) + block_of_rank])


def count_pairs_in_block(value: Small, blocks: int) -> IntArray:
    """Per entry, how many before it in its block are smaller."""
    across = np.ascontiguousarray(value.reshape(blocks, -1).T)
    counts = np.zeros(across.shape, dtype=np.uint16)
    for apart in range(1, len(across)):
        counts[apart:] += across[:-apart] < across[apart:]
    return counts.T.ravel().astype(np.int64)


DRAWN_CELLS: Final = 121  # of a table of the distinct values, 11 × 11; with more its resamples take too long
CONSTANT: Final = "One side gives every response the same score, so the correlation is undefined."


@dataclass(frozen=True)
class RankedPair:
    """Two sides of the same entries as ranks."""

    x: RankedValues
    y: RankedValues
    clusters: Clusters

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.x.count), len(self.y.count)

    @cached_property
    def table(self) -> Spread | None:
        """How totals of the table of distinct values vary, where it is small enough to be resampled."""
        rows, columns = self.shape
        if rows * columns > DRAWN_CELLS or self.clusters.count > BOOTSTRAP_UP_TO:
            return None
        return Spread(Contributions(self.clusters.of, self.x.code * columns + self.y.code, rows * columns))

    def with_interval(
        self, value: float, of_table: Callable[[FloatArray], FloatArray], influence: Callable[[], FloatArray]
    ) -> Estimate:
        number = Estimate(value, len(self.x.code))
        if self.table is not None:
            return self.table.interval(number, self.of_totals(of_table))
        return fisher_z_interval(number, Influence(influence(), self.clusters))

    def of_totals(self, of_table: Callable[[FloatArray], FloatArray]) -> Statistic:
        return lambda totals: of_table(totals.reshape(*totals.shape[:-1], *self.shape))


def spearman(orders: RankedPair) -> Estimate:
    """Pearson's correlation of mid-ranks (Spearman 1904). Undefined where a side is constant.

    By bootstrap of clusters where the table of values is small and the clusters few, else linearised.
    """
    if orders.x.is_constant or orders.y.is_constant:
        return undefined_estimate(CONSTANT, len(orders.x.code))
    x, y = orders.x.standing, orders.y.standing
    product, of_x, of_y = float((x * y).sum()), float((x * x).sum()), float((y * y).sum())
    scale = sqrt(of_x * of_y)
    value = product / scale

    def influence() -> FloatArray:
        # An entry counts at its own position and moves the ranks of those above it on either side.
        moved = x * y + orders.x.above(y) + orders.y.above(x)
        spread_x, spread_y = x * x + 2 * orders.x.above(x), y * y + 2 * orders.y.above(y)
        return moved / scale - value / 2 * (spread_x / of_x + spread_y / of_y)

    return orders.with_interval(value, spearman_of_tables, influence)


def kendall_tau_b(orders: RankedPair) -> Estimate:
    """(concordant − discordant) ÷ √(pairs not tied on x · pairs not tied on y) (Kendall 1945).

    Undefined where a side is constant. By bootstrap of clusters for small tables and few clusters, else linearised.
    """
    n = len(orders.x.code)
    if orders.x.is_constant or orders.y.is_constant:
        return undefined_estimate(CONSTANT, n)
    concordant = concordance_sums(orders.x, orders.y)
    untied_x, untied_y = (n - side.count[side.code] for side in (orders.x, orders.y))
    of_x, of_y = float(untied_x.sum()), float(untied_y.sum())
    scale = sqrt(of_x * of_y)
    value = float(concordant.sum()) / scale

    def influence() -> FloatArray:
        # Each pair has two members: the derivative by one of them is twice its part of the sum.
        return 2 * concordant / scale - value * (untied_x / of_x + untied_y / of_y)

    return orders.with_interval(value, tau_b_of_tables, influence)


def spearman_of_tables(table: FloatArray) -> FloatArray:
    x, y = midranks_from_margin(table.sum(axis=-1)), midranks_from_margin(table.sum(axis=-2))
    product = np.einsum("...ij,...i,...j", table, x, y)
    of_x, of_y = (table.sum(axis=-1) * x * x).sum(axis=-1), (table.sum(axis=-2) * y * y).sum(axis=-1)
    return np.asarray(product / np.sqrt(of_x * of_y))


def midranks_from_margin(margin: FloatArray) -> FloatArray:
    return np.asarray(np.cumsum(margin, axis=-1) - margin / 2 - margin.sum(axis=-1, keepdims=True) / 2)


def tau_b_of_tables(table: FloatArray) -> FloatArray:
    n = table.sum(axis=(-1, -2))
    pairs_in_order = 2 * (table * lower_concordant_by_cell(table)).sum(axis=(-1, -2))
    tied = [(table.sum(axis=side) ** 2).sum(axis=-1) for side in (-1, -2)]
    return np.asarray(pairs_in_order / np.sqrt((n**2 - tied[0]) * (n**2 - tied[1])))


def lower_concordant_by_cell(table: FloatArray) -> FloatArray:
    """Per cell the entries of lower rows: those in lower columns less those in higher."""
    lower = np.cumsum(table, axis=-2) - table
    left = np.cumsum(lower, axis=-1) - lower
    right = lower.sum(axis=-1, keepdims=True) - left - lower
    return np.asarray(left - right)
