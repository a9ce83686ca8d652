"""A share in each of many groups, with intervals by cluster, computed for all groups at once."""

from dataclasses import dataclass
from itertools import combinations_with_replacement

import numpy as np

from evaluations.stats.cluster_totals import number_clusters
from evaluations.stats.coding import BoolArray, FloatArray, IntArray
from evaluations.stats.confidence_intervals import wilson_from_variance
from evaluations.stats.estimates import Estimate, undefined_estimate
from evaluations.stats.ranks import radix_order


@dataclass(frozen=True)
class GroupedEntries:
    """Entries in groups and clusters. ``cell``: of each entry, a number for its group and cluster together."""

    group: IntArray
    groups: int
    cell: IntArray
    group_of_cell: IntArray

    def total(self, value: FloatArray | BoolArray) -> FloatArray:
        return np.bincount(self.group, value, self.groups).astype(np.float64, copy=False)

    def squares(self, value: FloatArray | BoolArray) -> FloatArray:
        """Per group: the sum over clusters of the squared sum of the value in the cluster."""
        by_cell = np.bincount(self.cell, value, len(self.group_of_cell))
        return np.bincount(self.group_of_cell, by_cell**2, self.groups).astype(np.float64, copy=False)

    def products(self, *values: FloatArray) -> FloatArray:
        """Per group: the sum over clusters of v vᵀ, v the sums of all values in the cluster: groups × n × n."""
        by_cell = [np.bincount(self.cell, value, len(self.group_of_cell)) for value in values]
        products = np.empty((self.groups, len(values), len(values)))
        for i, j in combinations_with_replacement(range(len(values)), 2):
            sums = np.bincount(self.group_of_cell, by_cell[i] * by_cell[j], self.groups)
            products[:, i, j] = products[:, j, i] = sums
        return products

    def clusters(self, counted: BoolArray) -> IntArray:
        """Per group: how many clusters have an entry that counts."""
        occupied = np.bincount(self.cell, counted, len(self.group_of_cell)) > 0
        return np.bincount(self.group_of_cell[occupied], minlength=self.groups)

    def effective(self, counted: BoolArray) -> FloatArray:
        """Per group: the effective number of clusters, (Σn)² ÷ Σn² of their entries that count."""
        squares = self.squares(counted)
        return np.divide(self.total(counted) ** 2, squares, out=np.zeros(self.groups), where=squares > 0)

    def variance(self, influence: FloatArray, clusters: IntArray) -> FloatArray:
        """Per group: the variance by cluster of a number, from the influence of each entry; NaN below two clusters."""
        with np.errstate(all="ignore"):
            return np.asarray(self.squares(influence) * clusters / (clusters - 1))


def group_entries(group: IntArray, groups: int, cluster: IntArray) -> GroupedEntries:
    key = number_clusters(cluster).of * groups + group
    order = radix_order(key)
    in_order = key[order]
    starts = np.append(True, in_order[1:] != in_order[:-1])[: len(key)]
    cell = np.empty(len(key), dtype=np.int64)
    cell[order] = np.cumsum(starts) - 1
    return GroupedEntries(group, groups, cell, in_order[starts] % groups)


def shares_by_group(
    entries: GroupedEntries, value: FloatArray | BoolArray, counted: BoolArray, empty: str
) -> list[Estimate]:
    """Per group the mean of ``value``, between 0 and 1, over the entries that count; Wilson's interval by cluster.

    ``empty``: the reason where no entry of a group counts.
    """
    n = entries.total(counted)
    with np.errstate(all="ignore"):
        share = entries.total(np.where(counted, value, 0.0)) / n
        influence = np.where(counted, value - share[entries.group], 0.0) / n[entries.group]
    clusters = entries.clusters(counted)
    variance = entries.variance(influence, clusters)
    columns = share, n.astype(np.int64), clusters, variance, entries.effective(counted)
    rows = zip(*(column.tolist() for column in columns), strict=True)
    return [
        wilson_from_variance(Estimate(p, n), g, v, effective) if n else undefined_estimate(empty)
        for p, n, g, v, effective in rows
    ]
