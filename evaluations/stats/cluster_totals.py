"""What each cluster adds to the totals from which a statistic is computed.

Every statistic here is a function of a few totals: the cells of a table, sums of values, counts. Items of one cluster
are not independent, so an interval asks how the totals vary when whole clusters are drawn.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Final

import numpy as np

from evaluations.stats.coding import CHOICES, MISSING, BoolArray, FloatArray, IntArray

AT_ONCE: Final = 65_536  # clusters whose totals are in memory at the same time
FEW_ENTRIES: Final = 12  # of a cluster: up to this many, their pairs are enumerated
# Above, a matrix of cells × cells costs more than another pass over the entries; a pair of cells fits 16 bits.
FEW_CELLS: Final = 64


@dataclass(frozen=True)
class Contributions:
    """Entry j adds ``weight[j]``, or 1 where there are no weights, to total ``cell[j]`` for ``cluster[j]``.

    All three have one entry for each addition, in any order. ``cells``: how many totals there are.
    """

    cluster: IntArray
    cell: IntArray
    cells: int
    weight: FloatArray | None = None

    @property
    def is_counted(self) -> bool:
        """Whether every total is a whole number of entries."""
        return self.weight is None

    @cached_property
    def totals(self) -> FloatArray:
        """The total of each cell over all clusters."""
        return np.bincount(self.cell, self.weight, self.cells).astype(np.float64)

    @cached_property
    def cluster_number(self) -> IntArray:
        """The cluster of each entry, numbered from 0 among those that occur."""
        if not (self.cluster[1:] >= self.cluster[:-1]).all():
            present = np.bincount(self.cluster) > 0
            return np.asarray((np.cumsum(present) - 1)[self.cluster])
        if not len(self.cluster) or (self.cluster[-1] == np.count_nonzero(self.begins) and self.cluster[0] == 0):
            return self.cluster
        return np.concatenate([[0], np.cumsum(self.begins)])

    @property
    def begins(self) -> BoolArray:
        """Whether each entry after the first begins another cluster."""
        return np.not_equal(self.cluster[1:], self.cluster[:-1])

    @cached_property
    def clusters(self) -> int:
        """How many clusters contribute."""
        return int(self.cluster_number.max(initial=-1)) + 1

    @cached_property
    def largest(self) -> int:
        """The most entries that a cluster has."""
        return 1 if len(self.cell) == self.clusters else int(np.bincount(self.cluster_number).max(initial=0))

    @property
    def is_sorted_by_cluster(self) -> bool:
        """Whether the entries of each cluster are adjacent."""
        return int(np.count_nonzero(self.begins)) + 1 == self.clusters

    def by_cluster(self, first: int = 0, last: int | None = None) -> FloatArray:
        """The totals of each cluster in this range: clusters × cells."""
        last = self.clusters if last is None else last
        if (first, last) == (0, self.clusters):
            cluster, cell, weight = self.cluster_number, self.cell, self.weight
        else:
            inside = (self.cluster_number >= first) & (self.cluster_number < last)
            cluster, cell = self.cluster_number[inside] - first, self.cell[inside]
            weight = None if self.weight is None else self.weight[inside]
        flat = np.bincount(cluster * self.cells + cell, weight, (last - first) * self.cells)
        return flat.reshape(last - first, self.cells).astype(np.float64)

    @cached_property
    def moments(self) -> FloatArray:
        """S = Σ n_g n_gᵀ over clusters g: cells × cells."""
        if len(self.cell) == self.clusters:  # one entry each, so that no cell occurs with another
            squared = None if self.weight is None else self.weight**2
            return np.diag(np.bincount(self.cell, squared, self.cells).astype(np.float64))
        if self.largest <= FEW_ENTRIES and self.cells <= FEW_CELLS and self.is_sorted_by_cluster:
            return self.moments_of_sorted_runs()
        products = np.zeros((self.cells, self.cells))
        for first in range(0, self.clusters, AT_ONCE):
            part = self.by_cluster(first, min(first + AT_ONCE, self.clusters))
            products += part.T @ part
        return products

    def moments_of_sorted_runs(self) -> FloatArray:
        """`moments` from the pairs of entries of each cluster: quick where clusters are many, small and adjacent."""
        squared = None if self.weight is None else self.weight**2
        products = np.diag(np.bincount(self.cell, squared, self.cells).astype(np.float64))
        for apart in range(1, self.largest):
            same = self.cluster_number[apart:] == self.cluster_number[:-apart]
            pair = self.cell[apart:][same] * np.int16(self.cells) + self.cell[:-apart][same]
            weight = None if self.weight is None else (self.weight[apart:] * self.weight[:-apart])[same]
            counts = np.bincount(pair, weight, self.cells**2).reshape(self.cells, self.cells)
            products += counts + counts.T
        return products

    def squares(self, u: FloatArray) -> FloatArray:
        """The sum over clusters of (u · n_g)², uᵀSu, for each column of u, cells × numbers."""
        if self.cells <= FEW_CELLS:
            return np.asarray((u * (self.moments @ u)).sum(axis=0))
        return np.array([float((added**2).sum()) for added in map(self.weighted_sums, u.T)])

    def weighted_sums(self, u: FloatArray) -> FloatArray:
        """u · n_g of each cluster: the sum of its entries, weighted by ``u`` by cell."""
        weight = u[self.cell] if self.weight is None else u[self.cell] * self.weight
        return np.bincount(self.cluster_number, weight, self.clusters).astype(np.float64)

    def effective_clusters(self, cells: BoolArray, enough: float = np.inf) -> float:
        """The effective number of clusters, (Σn)² ÷ Σn², n the entries that a cluster has in these cells.

        Just ``enough`` where the totals alone show that there are at least as many.
        """
        n = float(self.totals[cells].sum())
        if self.weight is None and n >= enough * self.largest:
            return enough
        return effective_cluster_count(self.weighted_sums(cells.astype(np.float64)))

    def clusters_with(self, cells: BoolArray, enough: int | None = None) -> int:
        """How many clusters have an entry in one of these cells; ``enough`` where the totals show at least as many."""
        if enough is not None and self.weight is None and self.totals[cells].sum() >= enough * self.largest:
            return enough
        seen = np.zeros(self.clusters, dtype=bool)
        seen[self.cluster_number[cells[self.cell]]] = True
        return int(np.count_nonzero(seen))


def effective_cluster_count(sizes: FloatArray) -> float:
    """(Σn)² ÷ Σn² of cluster sizes: the number of clusters where all are of one size, less where sizes differ."""
    squares = float((sizes * sizes).sum())
    return float(sizes.sum()) ** 2 / squares if squares else 0.0


def join_contributions(*parts: Contributions) -> Contributions:
    """Several contributions as one, with the cells of each after those of the one before."""
    starts = np.cumsum([0, *(part.cells for part in parts)])
    weights = [np.ones(len(part.cell)) if part.weight is None else part.weight for part in parts]
    return Contributions(
        cluster=np.concatenate([part.cluster for part in parts]),
        cell=np.concatenate([part.cell + start for part, start in zip(parts, starts, strict=False)]),
        cells=int(starts[-1]),
        weight=None if all(part.weight is None for part in parts) else np.concatenate(weights),
    )


def cross_tabulate_by_cluster(rows: IntArray, columns: IntArray, cluster: IntArray) -> Contributions:
    """Counts by cluster of each pair of choices, from ``rows`` and ``columns``: 4 × 4 cells, row by row.

    All three arrays have one entry for each pair; pairs with a MISSING side are left out.
    """
    both = (rows != MISSING) & (columns != MISSING)
    if not both.all():
        rows, columns, cluster = rows[both], columns[both], cluster[both]
    return Contributions(cluster, narrow_codes(rows) * CHOICES + narrow_codes(columns), CHOICES**2)


def narrow_codes(codes: IntArray) -> IntArray:
    """Codes of choices, or cells of a few, in a byte each, which makes copying them cheaper."""
    return codes.astype(np.int8, copy=False)


@dataclass(frozen=True)
class Clusters:
    """``of``: the cluster of each entry, numbered from 0 without gaps; ``count``: how many there are."""

    of: IntArray
    count: int

    def total(self, value: FloatArray) -> FloatArray:
        return np.bincount(self.of, value, self.count).astype(np.float64, copy=False)

    @cached_property
    def effective(self) -> float:
        """The effective number of clusters, (Σn)² ÷ Σn² of their sizes."""
        return effective_cluster_count(np.bincount(self.of, minlength=self.count).astype(np.float64))

    def holding(self, entries: FloatArray) -> int:
        """The number of clusters with an entry other than 0."""
        return int(np.count_nonzero(np.bincount(self.of[entries != 0], minlength=self.count)))


def number_clusters(cluster: IntArray) -> Clusters:
    present = np.bincount(cluster) > 0
    return Clusters(np.asarray((np.cumsum(present) - 1)[cluster]), int(np.count_nonzero(present)))


@dataclass(frozen=True)
class ClusterSums:
    """Sums by cluster, with the interface of `Contributions` that `Spread` needs. ``of_cluster``: clusters × cells."""

    of_cluster: FloatArray

    is_counted: ClassVar = False

    @property
    def clusters(self) -> int:
        return len(self.of_cluster)

    @property
    def cells(self) -> int:
        return int(self.of_cluster.shape[1])

    @cached_property
    def totals(self) -> FloatArray:
        return np.asarray(self.of_cluster.sum(axis=0))

    @cached_property
    def moments(self) -> FloatArray:
        return np.asarray(self.of_cluster.T @ self.of_cluster)

    def squares(self, u: FloatArray) -> FloatArray:
        """uᵀSu for each column of u, cells × numbers: the sum over clusters of (u · n_g)²."""
        return np.asarray((u * (self.moments @ u)).sum(axis=0))

    def by_cluster(self) -> FloatArray:
        return self.of_cluster

    def effective_clusters(self, cells: BoolArray, enough: float = np.inf) -> float:
        """The effective number of clusters: the same for all cells, because each entry adds to every cell."""
        return effective_cluster_count(self.of_cluster[:, 0])

    def clusters_with(self, cells: BoolArray, enough: int | None = None) -> int:
        """How many clusters have a sum other than 0 in one of these cells, counted up to ``enough``."""
        clusters = int(np.count_nonzero((self.of_cluster[:, cells] != 0).any(axis=1)))
        return clusters if enough is None else min(clusters, enough)


def sum_by_cluster(clusters: Clusters, *values: FloatArray) -> ClusterSums:
    """Sums of each value by cluster; the first total counts the entries."""
    sums = np.empty((1 + len(values), clusters.count))
    sums[0] = np.bincount(clusters.of, minlength=clusters.count)
    for cell, value in enumerate(values, 1):
        sums[cell] = clusters.total(value)
    return ClusterSums(sums.T)
