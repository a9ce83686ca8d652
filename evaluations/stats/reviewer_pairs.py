"""Each two reviewers: how often their verdicts are the same, and weighted kappa with what comparisons add to it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from evaluations.stats.agreement_coefficients import ContingencyTables
from evaluations.stats.coding import CHOICES, MISSING, BoolArray, FloatArray, IntArray
from evaluations.stats.shared_verdicts import AspectVerdicts, VerdictDesign, group_by_design, is_shared

MIN_SHARED: Final = 20  # verdicts; two reviewers with fewer have no kappa here
MAX_SUMS: Final = 2**24  # by reviewer and cluster, in memory
CODES: Final = CHOICES + 1  # the last is that of a missing choice
CELLS: Final = CODES**2
HAS_BOTH: Final[FloatArray] = np.pad(np.ones((CHOICES, CHOICES)), (0, 1)).ravel()


# Of the choices A, B, tie and both bad, on a line from A over tie to B; with A and B alone, kappa is Cohen's.
DISTANCES: Final[FloatArray] = np.array([[0, 2, 1, 1], [2, 0, 1, 1], [1, 1, 0, 0], [1, 1, 0, 0]]) / 2

MERGED: Final[FloatArray] = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]])


def weighted_kappas(tables: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Cohen's weighted kappa (1968) of each table, pairs × CHOICES × CHOICES, with its slope by cell.

    1 − N · D ÷ E, D = Σ distance · count, E = Σ distance · row · column; NaN where E is 0.
    """
    n = tables.sum(axis=(1, 2), keepdims=True)
    rows, columns = tables.sum(axis=2, keepdims=True), tables.sum(axis=1, keepdims=True)
    to_columns, to_rows = (columns @ DISTANCES).swapaxes(1, 2), (DISTANCES @ rows).swapaxes(1, 2)
    observed, expected = (tables * DISTANCES).sum(axis=(1, 2), keepdims=True), columns @ DISTANCES @ rows
    with np.errstate(all="ignore"):
        # One more of cell (i, j) adds 1 to N, its distance to D, and to E those of i to columns and of j to rows.
        slope = n * observed * (to_columns + to_rows) / expected**2 - (observed + n * DISTANCES) / expected
        return (1 - n * observed / expected)[:, 0, 0], slope


@dataclass(frozen=True)
class SharedEntries:
    """One design with the aspects that share it. ``cluster``: of each entry, below the number kept apart in sums.

    ``shared``: on how many aspects another reviewer has a verdict too.
    ``rows``, ``columns``: on each aspect, what an entry adds to the cell in reviewers × CODES × CODES as that of the
    reviewer in rows, and as that of another one in columns.
    """

    design: VerdictDesign
    cluster: IntArray
    shared: IntArray
    rows: tuple[IntArray, ...]
    columns: tuple[IntArray, ...]

    def table(self, reviewer: int, reviewers: int) -> FloatArray:
        """The verdicts of one reviewer, in rows, with those of each one of a higher number: reviewers × CELLS."""
        counts = np.zeros(reviewers * CELLS)
        for cell in self.cells(*self.design.facing_higher(reviewer)):
            counts += np.bincount(cell, minlength=len(counts))
        return counts.reshape(reviewers, CELLS)

    def cells(self, own: IntArray, other: IntArray) -> Iterator[IntArray]:
        """On each aspect, the cell of each pair of entries."""
        for row, column in zip(self.rows, self.columns, strict=True):
            yield row[own] + column[other]


@dataclass(frozen=True)
class KappaInfluence:
    """What the comparisons that a reviewer shares add to the kappas with the others: one entry for each of both."""

    other: IntArray
    cluster: IntArray
    influence: FloatArray


@dataclass(frozen=True)
class AddedByCluster:
    """What each cluster adds, around 0, to the share of identical verdicts of a pair and to its kappa."""

    identical: FloatArray
    kappa: FloatArray


@dataclass(frozen=True)
class ReviewerPairs:
    """The pairs of reviewers with MIN_SHARED shared verdicts. ``low``, ``high``: the reviewer numbers of each.

    ``tables``: their shared verdicts, all aspects pooled, pairs × CHOICES × CHOICES, those of ``low`` in rows.
    """

    reviewers: int
    low: IntArray
    high: IntArray
    tables: FloatArray
    entries: tuple[SharedEntries, ...]
    clusters: int

    @cached_property
    def n(self) -> FloatArray:
        """How many verdicts each pair shares."""
        return np.asarray(self.tables.sum(axis=(1, 2)))

    @cached_property
    def identical(self) -> FloatArray:
        """The share of the shared verdicts of each pair that are the same."""
        return np.asarray(np.trace(self.tables, axis1=1, axis2=2) / self.n)

    @cached_property
    def has_kappa(self) -> BoolArray:
        """Whether neither of a pair made one choice throughout, tie and both bad counted as one."""
        merged = self.tables @ MERGED
        return ~ContingencyTables(MERGED.T @ merged).has_constant

    @cached_property
    def kappa_with_slopes(self) -> tuple[FloatArray, FloatArray]:
        """The kappa of each pair, NaN without one, and its slopes: pairs × CODES × CODES, 0 without one."""
        kappa, slope = weighted_kappas(self.tables)
        slope = np.where(self.has_kappa[:, None, None], slope, 0.0)
        return np.where(self.has_kappa, kappa, np.nan), np.pad(slope, ((0, 0), (0, 1), (0, 1)))

    @property
    def kappa(self) -> FloatArray:
        return self.kappa_with_slopes[0]

    def slopes_of(self, reviewer: int) -> FloatArray:
        """The slopes of a reviewer's kappas by the other reviewer and the cell, with own choices in rows."""
        slopes = np.zeros((self.reviewers, CODES, CODES))
        first, second = np.flatnonzero(self.low == reviewer), np.flatnonzero(self.high == reviewer)
        slopes[self.high[first]] = self.kappa_with_slopes[1][first]
        slopes[self.low[second]] = self.kappa_with_slopes[1][second].swapaxes(1, 2)
        return slopes.ravel()

    def influences_of(self, reviewer: int) -> Iterator[KappaInfluence]:
        """For each design, the influences on the kappas of a reviewer."""
        slopes = self.slopes_of(reviewer)
        for shared in self.entries:
            own, other = shared.design.facing(reviewer)
            influence = np.zeros(len(own))
            for cell in shared.cells(own, other):
                influence += slopes[cell]
            yield KappaInfluence(shared.design.rater[other], shared.cluster[own], influence)

    def shared_by_cluster(self) -> FloatArray:
        """How many verdicts each reviewer shares with anybody in each cluster: reviewers × clusters."""
        counts = np.zeros(self.reviewers * self.clusters)
        for shared in self.entries:
            cell = shared.design.rater.astype(np.int64) * self.clusters + shared.cluster
            counts += np.bincount(cell, shared.shared, len(counts))
        return counts.reshape(self.reviewers, self.clusters)

    def added_by_cluster(self, pair: int) -> AddedByCluster:
        """What each cluster adds to the numbers of one pair."""
        low, high = int(self.low[pair]), int(self.high[pair])
        is_same = np.pad(np.eye(CHOICES), (0, 1)).ravel() - self.identical[pair] * HAS_BOTH
        slopes = self.kappa_with_slopes[1][pair].ravel()
        sums = np.zeros((2, self.clusters))
        for shared in self.entries:
            own, other = shared.design.facing(low)
            facing_high = shared.design.rater[other] == high
            own, other = own[facing_high], other[facing_high]
            for cell in shared.cells(own, other):
                for total, values in zip(sums, (is_same / self.n[pair], slopes), strict=True):
                    total += np.bincount(shared.cluster[own], values[cell % CELLS], self.clusters)
        return AddedByCluster(*sums)

    def square(self, values: FloatArray) -> FloatArray:
        """Values of pairs as a symmetric matrix, reviewers × reviewers; NaN for the other pairs."""
        matrix = np.full((self.reviewers, self.reviewers), np.nan)
        matrix[self.low, self.high] = matrix[self.high, self.low] = values
        return matrix


def pair_reviewers(verdicts: Iterable[AspectVerdicts], reviewers: int) -> ReviewerPairs:
    """The pairs of reviewers with MIN_SHARED shared verdicts. ``reviewers``: how many there are, with numbers from 0.

    Above MAX_SUMS, clusters are put together: sums of independent clusters have the variance of their parts.
    """
    designs = group_by_design(verdicts)
    most = 1 + max((int(design.cluster.max(initial=0)) for design, _ in designs), default=0)
    clusters = min(most, max(MAX_SUMS // max(reviewers, 1), 1))
    entries = tuple(shared_entries(design, aspects, clusters) for design, aspects in designs)
    low, high, tables = [], [], [np.zeros((0, CHOICES, CHOICES))]
    for reviewer in range(reviewers):
        counts = sum((shared.table(reviewer, reviewers) for shared in entries), np.zeros((reviewers, CELLS)))
        own = counts.reshape(reviewers, CODES, CODES)[:, :CHOICES, :CHOICES]
        others = np.flatnonzero(own.sum(axis=(1, 2)) >= MIN_SHARED)
        low.append(np.full(len(others), reviewer))
        high.append(others)
        tables.append(own[others])
    nothing = np.empty(0, dtype=np.int64)
    return ReviewerPairs(
        reviewers,
        np.concatenate([nothing, *low]),
        np.concatenate([nothing, *high]),
        np.concatenate(tables),
        entries,
        clusters,
    )


def shared_entries(design: VerdictDesign, aspects: Sequence[AspectVerdicts], clusters: int) -> SharedEntries:
    codes = [np.where(aspect.choice == MISSING, CHOICES, aspect.choice).astype(np.int64) for aspect in aspects]
    rows, columns = (code * CODES for code in codes), (design.rater * CELLS + code for code in codes)
    shared = np.sum([is_shared(design, aspect.choice) for aspect in aspects], axis=0)
    return SharedEntries(design, design.cluster % clusters, shared, tuple(rows), tuple(columns))
