"""Counts by stratum, and how they spread over its clusters: all that a number and its interval are made of."""

from dataclasses import dataclass
from functools import cached_property, reduce
from typing import Final

import numpy as np

from evaluations.stats.coding import BoolArray, IntArray
from evaluations.stats.contributions import FloatArray

AT_ONCE: Final = 16_384  # clusters squared at a time, so that they stay in the processor's cache


@dataclass(frozen=True)
class CountsByStratum:
    """``totals``: strata × cells. ``table``: cells × clusters, those of stratum s from ``starts[s]`` to
    ``starts[s + 1]``; None where every cluster has one entry, for then the totals say all.
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
        found = np.zeros((strata, cells, cells))
        for stratum in range(strata):
            for first in range(self.starts[stratum], self.starts[stratum + 1], AT_ONCE):
                part = self.table[:, first : min(first + AT_ONCE, self.starts[stratum + 1])].astype(np.float64)
                found[stratum] += part @ part.T
        return found

    @cached_property
    def clusters(self) -> IntArray:
        """How many clusters of each stratum have an entry."""
        return self.clusters_with(np.ones(self.totals.shape[1], dtype=bool))

    def clusters_with(self, cells: BoolArray) -> IntArray:
        """How many clusters of each stratum have an entry in one of these cells."""
        if self.table is None:
            return np.asarray(self.totals[:, cells].sum(axis=1))
        held = reduce(np.bitwise_or, (row for row, asked in zip(self.table, cells, strict=True) if asked))
        return sum_by_stratum((held > 0)[None, :], self.starts)[:, 0]

    def effective(self, cells: BoolArray) -> FloatArray:
        """How many clusters of one size would tell as much of each stratum, by their entries in these cells."""
        of = cells.astype(np.float64)
        squares = np.einsum("scd,c,d->s", self.moments, of, of)
        found: FloatArray = np.divide((self.totals @ of) ** 2, squares, out=np.zeros(len(squares)), where=squares > 0)
        return found

    def variance(self, u: FloatArray, n: IntArray, clusters: IntArray) -> FloatArray:
        """uᵀSu · G ÷ (G − 1) ÷ n² for each stratum, 0 where G < 2. ``u``, strata × cells, sums to 0 over the totals."""
        squares = np.einsum("sc,scd,sd->s", u, self.moments, u).clip(min=0)
        divisor = n.astype(np.float64) ** 2 * (clusters - 1)
        found: FloatArray = np.divide(squares * clusters, divisor, out=np.zeros(len(n)), where=divisor > 0)
        return found


def sum_by_stratum(values: IntArray | BoolArray, starts: IntArray) -> IntArray:
    """Sums of each row's entries from ``starts[s]`` to ``starts[s + 1]``, 0 where there are none: strata × rows."""
    found = np.zeros((len(starts) - 1, len(values)), dtype=np.int64)
    held = starts[:-1] < starts[1:]
    if held.any():
        found[held] = np.add.reduceat(values, starts[:-1][held], axis=1, dtype=np.int64).T
    return found
