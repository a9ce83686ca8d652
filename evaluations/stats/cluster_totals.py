"""What each cluster adds to the totals from which a statistic is computed.

Every statistic here is a function of a few totals: the cells of a table, sums of values, counts. Items of one cluster
are not independent, so an interval asks how the totals vary when whole clusters are drawn.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, Final

import numpy as np

from evaluations.domain.packed_votes import PACKED_CHOICES
from evaluations.stats.coding import MISSING, BoolArray, FloatArray, IntArray

AT_ONCE: Final = 65_536  # clusters whose totals stand in memory side by side
FEW_ENTRIES: Final = 12  # up to this many in a cluster every two of them are met one by one
# Above, a matrix of cells × cells costs more than another walk through the entries; it also fits sixteen bits.
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
        """The sum over all clusters: one for each cell."""
        return np.bincount(self.cell, self.weight, self.cells).astype(np.float64)

    @cached_property
    def numbered(self) -> IntArray:
        """The cluster of each entry, numbered from 0 among those that occur."""
        if not (self.cluster[1:] >= self.cluster[:-1]).all():
            present = np.bincount(self.cluster) > 0
            return np.asarray((np.cumsum(present) - 1)[self.cluster])
        if not len(self.cluster) or (self.cluster[-1] == np.count_nonzero(self.begins) and self.cluster[0] == 0):
            return self.cluster
        return np.concatenate([[0], np.cumsum(self.begins)])

    @property
    def begins(self) -> BoolArray:
        """Whether another cluster begins, for each entry after the first."""
        return np.not_equal(self.cluster[1:], self.cluster[:-1])

    @cached_property
    def clusters(self) -> int:
        """How many clusters contribute."""
        return int(self.numbered.max(initial=-1)) + 1

    @cached_property
    def largest(self) -> int:
        """The most entries that a cluster has."""
        return 1 if len(self.cell) == self.clusters else int(np.bincount(self.numbered).max(initial=0))

    @property
    def stand_together(self) -> bool:
        """Whether the entries of every cluster follow each other."""
        return int(np.count_nonzero(self.begins)) + 1 == self.clusters

    def by_cluster(self, first: int = 0, last: int | None = None) -> FloatArray:
        """The totals of each cluster in this range: clusters × cells."""
        last = self.clusters if last is None else last
        if (first, last) == (0, self.clusters):
            cluster, cell, weight = self.numbered, self.cell, self.weight
        else:
            inside = (self.numbered >= first) & (self.numbered < last)
            cluster, cell = self.numbered[inside] - first, self.cell[inside]
            weight = None if self.weight is None else self.weight[inside]
        flat = np.bincount(cluster * self.cells + cell, weight, (last - first) * self.cells)
        return flat.reshape(last - first, self.cells).astype(np.float64)

    @cached_property
    def moments(self) -> FloatArray:
        """S = Σ n_g n_gᵀ over clusters g: cells × cells."""
        if len(self.cell) == self.clusters:  # one entry each: nothing stands beside anything else
            squared = None if self.weight is None else self.weight**2
            return np.diag(np.bincount(self.cell, squared, self.cells).astype(np.float64))
        if self.largest <= FEW_ENTRIES and self.cells <= FEW_CELLS and self.stand_together:
            return self.moments_of_neighbours()
        found = np.zeros((self.cells, self.cells))
        for first in range(0, self.clusters, AT_ONCE):
            part = self.by_cluster(first, min(first + AT_ONCE, self.clusters))
            found += part.T @ part
        return found

    def moments_of_neighbours(self) -> FloatArray:
        """The same from the cells of every two entries of a cluster: quick where clusters are small and many."""
        squared = None if self.weight is None else self.weight**2
        found = np.diag(np.bincount(self.cell, squared, self.cells).astype(np.float64))
        for apart in range(1, self.largest):
            same = self.numbered[apart:] == self.numbered[:-apart]
            two = self.cell[apart:][same] * np.int16(self.cells) + self.cell[:-apart][same]
            weight = None if self.weight is None else (self.weight[apart:] * self.weight[:-apart])[same]
            met = np.bincount(two, weight, self.cells**2).reshape(self.cells, self.cells)
            found += met + met.T
        return found

    def squares(self, u: FloatArray) -> FloatArray:
        """uᵀSu for each column of u, cells × numbers: the sum over clusters of (u · n_g)²."""
        if self.cells <= FEW_CELLS:
            return np.asarray((u * (self.moments @ u)).sum(axis=0))
        return np.array([float((added**2).sum()) for added in map(self.added, u.T)])

    def added(self, u: FloatArray) -> FloatArray:
        """u · n_g for each cluster."""
        weight = u[self.cell] if self.weight is None else u[self.cell] * self.weight
        return np.bincount(self.numbered, weight, self.clusters).astype(np.float64)

    def effective_clusters(self, cells: BoolArray, enough: float = np.inf) -> float:
        """(Σn)² ÷ Σn², n the entries that a cluster has in these cells: as many equal clusters would tell as much.

        Just ``enough`` where the totals alone show that there are as many.
        """
        n = float(self.totals[cells].sum())
        if self.weight is None and n >= enough * self.largest:
            return enough
        return effective_cluster_count(self.added(cells.astype(np.float64)))

    def clusters_with(self, cells: BoolArray, enough: int | None = None) -> int:
        """How many clusters have an entry in one of these cells, or just ``enough`` where the totals tell as much."""
        if enough is not None and self.weight is None and self.totals[cells].sum() >= enough * self.largest:
            return enough
        seen = np.zeros(self.clusters, dtype=bool)
        seen[self.numbered[cells[self.cell]]] = True
        return int(np.count_nonzero(seen))


def effective_cluster_count(sizes: FloatArray) -> float:
    """(Σn)² ÷ Σn² of the sizes of clusters: their number where all are of one size, fewer where some are large."""
    squares = float((sizes * sizes).sum())
    return float(sizes.sum()) ** 2 / squares if squares else 0.0


def join_contributions(*parts: Contributions) -> Contributions:
    """The totals of several, one after the other, so that a number may be made of all of them."""
    starts = np.cumsum([0, *(part.cells for part in parts)])
    weighted = any(part.weight is not None for part in parts)
    return Contributions(
        cluster=np.concatenate([part.cluster for part in parts]),
        cell=np.concatenate([part.cell + start for part, start in zip(parts, starts, strict=False)]),
        cells=int(starts[-1]),
        weight=np.concatenate([contribution_weights(part) for part in parts]) if weighted else None,
    )


def contribution_weights(part: Contributions) -> FloatArray:
    return np.ones(len(part.cell)) if part.weight is None else part.weight


def cross_tabulate_by_cluster(rows: IntArray, columns: IntArray, cluster: IntArray) -> Contributions:
    """How often each choice in ``rows`` met each in ``columns``: 4 × 4 cells, row by row.

    All three have one entry for each meeting; those with a MISSING side are left out.
    """
    both = (rows != MISSING) & (columns != MISSING)
    if not both.all():
        rows, columns, cluster = rows[both], columns[both], cluster[both]
    return Contributions(
        cluster, narrow_codes(rows) * len(PACKED_CHOICES) + narrow_codes(columns), len(PACKED_CHOICES) ** 2
    )


def narrow_codes(codes: IntArray) -> IntArray:
    """Codes of choices, or cells of a few, in a byte each: that is what moving them about costs."""
    return codes.astype(np.int8, copy=False)


@dataclass(frozen=True)
class Clusters:
    """``of``: the cluster of each entry, numbered from 0 without gaps; ``count``: how many there are."""

    of: IntArray
    count: int

    def total(self, value: FloatArray) -> FloatArray:
        """The sum of a value in each cluster."""
        return np.bincount(self.of, value, self.count).astype(np.float64, copy=False)

    @cached_property
    def effective(self) -> float:
        """How many clusters of one size would tell as much."""
        return effective_cluster_count(np.bincount(self.of, minlength=self.count).astype(np.float64))

    def holding(self, entries: FloatArray) -> int:
        """How many clusters hold an entry that is not 0."""
        return int(np.count_nonzero(np.bincount(self.of[entries != 0], minlength=self.count)))


def number_clusters(cluster: IntArray) -> Clusters:
    present = np.bincount(cluster) > 0
    return Clusters(np.asarray((np.cumsum(present) - 1)[cluster]), int(np.count_nonzero(present)))


@dataclass(frozen=True)
class ClusterSums:
    """``of_cluster``: clusters × cells. Stands wherever `Contributions` does in a `Spread`."""

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
        """How many clusters of one size would tell as much: the same in all cells, for every entry adds to each."""
        return effective_cluster_count(self.of_cluster[:, 0])

    def clusters_with(self, cells: BoolArray, enough: int | None = None) -> int:
        """How many clusters have something in one of these cells, or just ``enough`` where there are as many."""
        found = int(np.count_nonzero((self.of_cluster[:, cells] != 0).any(axis=1)))
        return found if enough is None else min(found, enough)


def sum_by_cluster(clusters: Clusters, *values: FloatArray) -> ClusterSums:
    """Sums of each value by cluster; the first total counts the entries."""
    found = np.empty((1 + len(values), clusters.count))
    found[0] = np.bincount(clusters.of, minlength=clusters.count)
    for cell, value in enumerate(values, 1):
        found[cell] = clusters.total(value)
    return ClusterSums(found.T)
