"""Sums of values by cluster, all at hand at once: quicker than entry by entry where every entry adds to every total."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from evaluations.stats.coding import BoolArray, IntArray
from evaluations.stats.contributions import FloatArray, effective_number


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
        return effective_number(np.bincount(self.of, minlength=self.count).astype(np.float64))

    def holding(self, entries: FloatArray) -> int:
        """How many clusters hold an entry that is not 0."""
        return int(np.count_nonzero(np.bincount(self.of[entries != 0], minlength=self.count)))


def numbered(cluster: IntArray) -> Clusters:
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
        return effective_number(self.of_cluster[:, 0])

    def clusters_with(self, cells: BoolArray, enough: int | None = None) -> int:
        """How many clusters have something in one of these cells, or just ``enough`` where there are as many."""
        found = int(np.count_nonzero((self.of_cluster[:, cells] != 0).any(axis=1)))
        return found if enough is None else min(found, enough)


def cluster_sums(clusters: Clusters, *values: FloatArray) -> ClusterSums:
    """Each value added to a total of its own; the first total counts the entries."""
    found = np.empty((1 + len(values), clusters.count))
    found[0] = np.bincount(clusters.of, minlength=clusters.count)
    for cell, value in enumerate(values, 1):
        found[cell] = clusters.total(value)
    return ClusterSums(found.T)
