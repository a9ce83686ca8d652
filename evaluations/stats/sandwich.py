"""The middle of a cluster-robust covariance: Σ s_g s_gᵀ, s_g what a cluster adds to the gradient of a likelihood."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.stats.coding import IntArray
from evaluations.stats.contributions import FloatArray

AT_ONCE: Final = 1_000_000  # numbers that stand in memory side by side


@dataclass(frozen=True)
class Residuals:
    """What each comparison adds: ``residual`` to the score of its pair's first candidate, and takes from the second's.

    ``first`` and ``second``: of each pair, below ``candidates``. The rest stands by cluster, one for each comparison:
    ``cluster`` from 0 on, and ``extra``, what it adds to one more coordinate, if to any.
    """

    first: IntArray
    second: IntArray
    candidates: int
    pair: IntArray
    cluster: IntArray
    residual: FloatArray
    extra: FloatArray | None = None

    @property
    def clusters(self) -> int:
        return int(self.cluster[-1]) + 1 if len(self.cluster) else 0

    @property
    def products(self) -> FloatArray:
        """(candidates + 1) × (candidates + 1)."""
        if self.clusters == len(self.pair):
            return self.of_single()
        found = np.zeros((self.candidates + 1, self.candidates + 1))
        some = max(AT_ONCE // (self.candidates + 1), 1)
        for start in range(0, self.clusters, some):
            part = self.by_cluster(start, min(start + some, self.clusters))
            found += part.T @ part
        return found

    def by_cluster(self, start: int, end: int) -> FloatArray:
        """s_g of the clusters of this range: clusters × (candidates + 1)."""
        inside = slice(*np.searchsorted(self.cluster, [start, end]))
        cluster = self.cluster[inside] - start
        row, width = cluster * (self.candidates + 1), self.candidates + 1
        pair, residual, size = self.pair[inside], self.residual[inside], (end - start) * width
        found: FloatArray = np.bincount(row + self.first[pair], residual, size).astype(np.float64)
        found -= np.bincount(row + self.second[pair], residual, size)
        if self.extra is not None:
            found[self.candidates :: width] = np.bincount(cluster, self.extra[inside], end - start)
        return found.reshape(end - start, -1)

    def of_single(self) -> FloatArray:
        """The same where every cluster is one comparison: three sums for each pair say it all."""
        pairs = np.arange(len(self.first))
        x = np.zeros((len(self.first), self.candidates + 1))
        x[pairs, self.first], x[pairs, self.second] = 1, -1
        found: FloatArray = x.T @ (x * np.bincount(self.pair, self.residual**2, len(pairs))[:, None])
        if self.extra is not None:
            found[-1] = found[:, -1] = x.T @ np.bincount(self.pair, self.residual * self.extra, len(pairs))
            found[-1, -1] = (self.extra**2).sum()
        return found
