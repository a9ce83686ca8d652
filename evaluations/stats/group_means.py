"""Hájek means over groups of comparisons, with their variances by cluster.

The variance of every mean is a sum over clusters of squared influences, and an influence is linear in the cluster's
totals in a group: Σ a and Σ aF over all its comparisons, Σ w, Σ wY and Σ wF over the reviewed ones, with a = 1 ÷ the
number of the group's comparisons of the same query. The means are thus means over queries.
"""

from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement, pairwise
from typing import NamedTuple

import numpy as np

from evaluations.stats.coding import BoolArray, FloatArray, IntArray
from evaluations.stats.matches import UNKNOWN, HalfArray, MatchGroups


@dataclass(frozen=True)
class GroupMeans:
    """Means of groups, with one entry for each group in every array; NaN where undefined.

    ``clusters``: how many the variance is estimated from. ``varied``: how many of them have an outcome other than the
    commonest. ``n``: comparisons. ``effective``: the effective number of clusters, (Σn)² ÷ Σn².
    """

    value: FloatArray
    variance: FloatArray
    clusters: IntArray
    effective: FloatArray
    varied: IntArray
    n: IntArray

    @cached_property
    def rows(self) -> "list[GroupMean]":
        columns = (self.value, self.variance, self.clusters, self.effective, self.varied, self.n)
        return [GroupMean(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


class GroupMean(NamedTuple):
    """The mean of one group."""

    value: float
    variance: float
    clusters: int
    effective: float
    varied: int
    n: int


@dataclass(frozen=True)
class JudgedOutcomes:
    """A judge's outcomes F (0, ½ or 1) of all entries of the groups; it has a verdict on each of them.

    ``tally``: groups × (LOST, TIED, WON, UNKNOWN), of which the last are none. ``halves``: F of each side, in halves.
    """

    groups: MatchGroups
    tally: IntArray
    halves: HalfArray

    @property
    def counts(self) -> IntArray:
        """How many entries of each group lost, tied and won: groups × 3."""
        return self.tally[:, :UNKNOWN]

    def of_entries(self, entries: IntArray) -> FloatArray:
        return self.halves[self.groups.side[entries]] / 2

    @cached_property
    def by_cell(self) -> FloatArray:
        """The weighted sum Σ aF of each cell."""
        halves, share = self.halves[self.groups.side], self.groups.share
        weight = halves if share is None else share * halves
        sums = np.bincount(self.groups.cell, weight, int(self.groups.cells[-1])).astype(np.float64, copy=False)
        sums /= 2  # in place: there may be millions
        return sums

    def sums_at_cells(self, sample: "ReviewedSample") -> FloatArray:
        """Σ aF of each cell that has a reviewed entry, over all its entries."""
        return self.of_entries(sample.entry) if self.groups.has_single_entries else self.by_cell[sample.cells]

    @cached_property
    def products(self) -> FloatArray:
        """Σ v vᵀ over the cells of each group, v = (Σ a, Σ aF): groups × 2 × 2."""
        if self.groups.has_single_entries:
            n, total = self.counts.sum(axis=1), self.counts @ [0.0, 0.5, 1.0]
            return np.array([[n, total], [total, self.counts @ [0.0, 0.25, 1.0]]], dtype=np.float64).transpose(2, 0, 1)
        return slice_products(self.groups.cells, self.groups.sizes, self.by_cell)

    @cached_property
    def totals(self) -> tuple[FloatArray, FloatArray]:
        """Σ a and Σ aF of each group."""
        if self.groups.share is None:
            return self.counts.sum(axis=1).astype(np.float64), self.counts @ [0.0, 0.5, 1.0]
        starts = self.groups.cells
        return slice_sums(starts, self.groups.sizes), slice_sums(starts, self.by_cell)

    @cached_property
    def means(self) -> GroupMeans:
        """F̂ = Σ aF ÷ Σ a, and Σ_g (Σ a (F − F̂) ÷ Σ a)² · G ÷ (G − 1)."""
        (size, total), clusters = self.totals, np.diff(self.groups.cells)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = total / size
            influence = np.stack([-mean / size, 1 / size], axis=1)
            variance = quadratic_form(self.products, influence, influence) * bessel_factors(clusters)
            effective = size**2 / self.products[:, 0, 0]
        return GroupMeans(mean, variance, clusters, effective, self.varied, self.counts.sum(axis=1))

    @property
    def varied(self) -> IntArray:
        """How many clusters of each group do not add up to the commonest outcome throughout."""
        if self.groups.has_single_entries:
            return np.asarray(self.counts.sum(axis=1) - self.counts.max(axis=1))
        commonest = np.argmax(self.counts, axis=1) / 2
        parts = zip(pairwise(self.groups.cells), commonest, strict=True)
        sizes, sums = self.groups.sizes, self.by_cell
        return np.array([np.count_nonzero(sums[a:b] != each * sizes[a:b]) for (a, b), each in parts], dtype=np.int64)


@dataclass(frozen=True)
class ReviewedSample:
    """People's outcomes Y (0, ½ or 1) of the reviewed entries with weights w = a/π.

    ``entry``: positions in the groups' entries, ascending; the other two have one for each of them.
    """

    groups: MatchGroups
    entry: IntArray
    weight: FloatArray
    outcome: FloatArray

    @cached_property
    def n(self) -> IntArray:
        """How many entries of each group were reviewed."""
        return np.diff(np.searchsorted(self.entry, self.groups.entries))

    @cached_property
    def group(self) -> IntArray:
        """The group of each reviewed entry."""
        return np.repeat(np.arange(len(self.groups)), self.n)

    @cached_property
    def cells(self) -> IntArray:
        """The cells of the groups that have a reviewed entry."""
        cell = self.groups.cell[self.entry]
        return cell[np.diff(cell, prepend=-1) > 0]

    @cached_property
    def cell(self) -> IntArray:
        """The index in ``cells`` of the cell of each reviewed entry."""
        return np.cumsum(np.diff(self.groups.cell[self.entry], prepend=-1) > 0) - 1

    @cached_property
    def starts(self) -> IntArray:
        """Where each group begins in ``cells``, and the end."""
        return np.searchsorted(self.cells, self.groups.cells)

    def by_group(self, values: FloatArray) -> FloatArray:
        """The sum by group of ``values``, one for each reviewed entry."""
        return np.bincount(self.group, values, len(self.groups)).astype(np.float64)

    def by_cell(self, values: FloatArray) -> FloatArray:
        return np.bincount(self.cell, values, len(self.cells)).astype(np.float64)

    def clusters_where(self, flagged: BoolArray) -> IntArray:
        """How many clusters of each group have a flagged entry."""
        cells = np.bincount(self.cell[flagged], minlength=len(self.cells)) > 0
        return np.diff(np.concatenate([[0], np.cumsum(cells)])[self.starts])

    @cached_property
    def means(self) -> GroupMeans:
        """Hájek's mean Ȳ = Σ wY ÷ Σ w, and Σ_g (Σ w (Y − Ȳ) ÷ Σ w)² · G ÷ (G − 1), G the reviewed clusters."""
        w, wy, clusters = self.weight, self.weight * self.outcome, np.diff(self.starts)
        total = self.by_group(w)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = self.by_group(wy) / total
            influence = np.stack([-mean / total, 1 / total], axis=1)
            products = slice_products(self.starts, self.by_cell(w), self.by_cell(wy))
            variance = quadratic_form(products, influence, influence) * bessel_factors(clusters)
            effective = total**2 / products[:, 0, 0]
        return GroupMeans(mean, variance, clusters, effective, self.varied, self.n)

    @property
    def varied(self) -> IntArray:
        halves = np.rint(2 * self.outcome).astype(np.int64)
        counts = np.bincount(3 * self.group + halves, minlength=3 * len(self.groups)).reshape(-1, 3)
        return self.clusters_where(halves != np.argmax(counts, axis=1)[self.group])


def slice_sums(starts: IntArray, values: FloatArray) -> FloatArray:
    """The sum over each slice; ``starts``: where the slices begin, from 0 on, and the end of ``values``."""
    sums, filled = np.zeros(len(starts) - 1), np.flatnonzero(starts[1:] > starts[:-1])
    if len(filled):
        sums[filled] = np.add.reduceat(values, starts[filled])
    return sums


def slice_products(starts: IntArray, *rows: FloatArray) -> FloatArray:
    """Σ v vᵀ over each slice, v the values of all rows at a position: slices × rows × rows."""
    products = np.empty((len(starts) - 1, len(rows), len(rows)))
    for i, j in combinations_with_replacement(range(len(rows)), 2):
        products[:, i, j] = products[:, j, i] = slice_sums(starts, rows[i] * rows[j])
    return products


def quadratic_form(matrix: FloatArray, left: FloatArray, right: FloatArray) -> FloatArray:
    """leftᵀ M right of each slice."""
    return np.asarray(np.einsum("ki,kij,kj->k", left, matrix, right))


def bessel_factors(clusters: IntArray) -> FloatArray:
    """G ÷ (G − 1); NaN with fewer than two clusters."""
    return np.asarray(np.divide(clusters, clusters - 1, out=np.full(len(clusters), np.nan), where=clusters > 1))
