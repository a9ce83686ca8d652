"""Strata of the comparisons with counts by cluster: all, by category, by pair of candidates."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Final

import numpy as np
import numpy.typing as npt

from evaluations.stats.coding import MISSING, BoolArray, FloatArray, IntArray
from evaluations.stats.items import Items

CELLS_AT_ONCE: Final = 16_384  # clusters squared at a time, so that they stay in the processor's cache


@dataclass(frozen=True)
class CountsByStratum:
    """Counts of entries by stratum, cell and cluster.

    ``totals``: strata × cells. ``table``: cells × clusters, those of stratum s from ``starts[s]`` to ``starts[s + 1]``;
    None where every cluster has one entry, so that the totals are enough.
    """

    totals: IntArray
    table: IntArray | None
    starts: IntArray

    @cached_property
    def moments(self) -> FloatArray:
        """S = Σ n_g n_gᵀ over the clusters g of each stratum: strata × cells × cells."""
        strata, cells = self.totals.shape
        if self.table is None:
            return np.asarray(np.eye(cells) * self.totals[:, None, :])
        products = np.zeros((strata, cells, cells))
        for stratum in range(strata):
            for first in range(self.starts[stratum], self.starts[stratum + 1], CELLS_AT_ONCE):
                part = self.table[:, first : min(first + CELLS_AT_ONCE, self.starts[stratum + 1])].astype(np.float64)
                products[stratum] += part @ part.T
        return products

    @cached_property
    def clusters(self) -> IntArray:
        """How many clusters of each stratum have an entry."""
        return self.clusters_with(np.ones(self.totals.shape[1], dtype=bool))

    def clusters_with(self, cells: BoolArray) -> IntArray:
        """How many clusters of each stratum have an entry in one of these cells."""
        if self.table is None:
            return np.asarray(self.totals[:, cells].sum(axis=1))
        occupied = reduce(np.bitwise_or, (row for row, chosen in zip(self.table, cells, strict=True) if chosen))
        return sum_by_stratum((occupied > 0)[None, :], self.starts)[:, 0]

    def effective(self, cells: BoolArray) -> FloatArray:
        """The effective number of clusters of each stratum, (Σn)² ÷ Σn² of their entries in these cells."""
        counted = cells.astype(np.float64)
        squares = np.einsum("scd,c,d->s", self.moments, counted, counted)
        effective_n: FloatArray = np.divide(
            (self.totals @ counted) ** 2, squares, out=np.zeros(len(squares)), where=squares > 0
        )
        return effective_n

    def variance(self, u: FloatArray, n: IntArray, clusters: IntArray) -> FloatArray:
        """uᵀSu · G ÷ (G − 1) ÷ n² for each stratum, 0 where G < 2. ``u``, strata × cells, sums to 0 over the totals."""
        squares = np.einsum("sc,scd,sd->s", u, self.moments, u).clip(min=0)
        divisor = n.astype(np.float64) ** 2 * (clusters - 1)
        variances: FloatArray = np.divide(squares * clusters, divisor, out=np.zeros(len(n)), where=divisor > 0)
        return variances


def sum_by_stratum(values: IntArray | BoolArray, starts: IntArray) -> IntArray:
    """Sums of each row's entries from ``starts[s]`` to ``starts[s + 1]``, 0 where there are none: strata × rows."""
    sums = np.zeros((len(starts) - 1, len(values)), dtype=np.int64)
    filled = starts[:-1] < starts[1:]
    if filled.any():
        sums[filled] = np.add.reduceat(values, starts[:-1][filled], axis=1, dtype=np.int64).T
    return sums


MAX_STRATA: Final = 50
SPARSE: Final = 8  # where fewer than one entry in so many counts, these are selected first
DENSEST: Final = 1 << 24  # keys below this are marked in an array, others are sorted
Name = tuple[str, ...]
Small = npt.NDArray[np.int8]


@dataclass(frozen=True)
class Strata:
    """Entries sorted by stratum, and by cluster within it into groups numbered stratum after stratum.

    ``stratum`` and ``group``: one for each entry, MISSING outside. Groups ``starts[s]`` to ``starts[s + 1]`` are in
    stratum s. ``left_out``: how many further strata there are. ``is_single``: whether no group has two entries.
    """

    names: tuple[Name, ...]
    left_out: int
    stratum: Small
    group: IntArray
    starts: IntArray
    is_single: bool

    def __len__(self) -> int:
        return len(self.names)

    def where(self, selected: BoolArray) -> "Strata":
        return replace(self, stratum=self.stratum[selected], group=self.group[selected])

    def for_entries(self, entry: IntArray) -> "Strata":
        """The strata of entries that each belong to one of these, as votes belong to items: ``entry``, of each."""
        stratum, group = self.stratum[entry], self.group[entry]
        inside = stratum != MISSING
        present, number = number_keys(group[inside], int(self.starts[-1]))
        group[inside] = number
        starts = np.searchsorted(present, self.starts)
        return Strata(self.names, self.left_out, stratum, group, starts, len(present) == len(number))

    def counts(self, cell: IntArray, cells: int) -> CountsByStratum:
        """Counts of the entries by stratum, group and ``cell``; entries whose cell is MISSING are not counted."""
        counted = cell != MISSING
        if SPARSE * np.count_nonzero(counted) < len(cell):
            return self.where(counted).counts(cell[counted], cells)
        # MISSING, −1, makes the first row and column: to cut them off is quicker than to pick what is counted.
        if self.is_single:
            at = (self.stratum + np.int16(1)) * np.int16(cells + 1) + (cell + np.int16(1))
            flat = np.bincount(at, minlength=(len(self) + 1) * (cells + 1))
            return CountsByStratum(flat.reshape(len(self) + 1, cells + 1)[1:, 1:], None, self.starts)
        groups = int(self.starts[-1])
        within = cell.astype(np.int64) + 1
        within *= groups + 1
        within += self.group
        flat = np.bincount(within + 1, minlength=(cells + 1) * (groups + 1))
        table = flat.reshape(cells + 1, groups + 1)[1:, 1:]
        return CountsByStratum(sum_by_stratum(table, self.starts), table, self.starts)


def single_stratum(cluster: IntArray) -> Strata:
    """All entries in one unnamed stratum."""
    return make_strata(np.zeros(len(cluster), dtype=np.int8), cluster, ((),))


def strata_by_category(items: Items) -> Strata:
    names = [(name,) for name in items.categories]
    return largest_strata(items.category, items.cluster, names)


def strata_by_candidate_pair(items: Items) -> Strata:
    """Strata by the two candidates of a comparison, A first."""
    candidates = len(items.candidates)
    pairs, stratum = number_keys(items.candidate_a * candidates + items.candidate_b, candidates**2)
    names = [(items.candidates[pair // candidates], items.candidates[pair % candidates]) for pair in pairs.tolist()]
    return largest_strata(stratum, items.cluster, names)


def largest_strata(stratum: IntArray, cluster: IntArray, names: Sequence[Name]) -> Strata:
    """The strata with the most entries, in this order. ``stratum``: of each entry, an index of the names or MISSING."""
    sizes = np.bincount(stratum[stratum != MISSING], minlength=len(names))
    occurring = int(np.count_nonzero(sizes))
    largest = np.argsort(-sizes, kind="stable")[: min(occurring, MAX_STRATA)]
    rank = np.full(len(names) + 1, MISSING, dtype=np.int8)  # the last entry is that of MISSING
    rank[largest] = np.arange(len(largest))
    return make_strata(
        rank[stratum], cluster, tuple(names[index] for index in largest.tolist()), occurring - len(largest)
    )


def make_strata(stratum: Small, cluster: IntArray, names: tuple[Name, ...], left_out: int = 0) -> Strata:
    """Two stable sorts, the first quick where clusters come in order, the second of small numbers."""
    entry = np.argsort(cluster, kind="stable")
    entry = entry[np.argsort(stratum[entry], kind="stable")]
    entry = entry[np.searchsorted(stratum[entry], 0) :]  # MISSING comes first
    strata, clusters = stratum[entry], cluster[entry]
    begins = np.concatenate([[True], (strata[1:] != strata[:-1]) | (clusters[1:] != clusters[:-1])])[: len(entry)]
    group = np.full(len(cluster), MISSING)
    group[entry] = np.cumsum(begins) - 1
    starts = np.searchsorted(strata[begins], np.arange(len(names) + 1))
    return Strata(names, left_out, stratum, group, starts, bool(begins.all()))


def number_keys(key: IntArray, limit: int) -> tuple[IntArray, IntArray]:
    """The distinct keys below ``limit`` in rising order, and the position of each entry's key among them."""
    if limit > DENSEST:
        present, number = np.unique(key, return_inverse=True)
        return present, number
    marked = np.zeros(limit, dtype=bool)
    marked[key] = True
    return np.flatnonzero(marked), (np.cumsum(marked) - 1)[key]
