"""The comparisons from which a ranking is fitted, as a table of wins and as residuals by cluster."""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from evaluations.stats.bradley_terry import WinTable, win_probabilities
from evaluations.stats.cluster_totals import Contributions, effective_cluster_count
from evaluations.stats.coding import BoolArray, FloatArray, IntArray
from evaluations.stats.confidence_intervals import MIN_DISAGREEING
from evaluations.stats.matches import Matches

AT_ONCE: Final = 1_000_000  # numbers in memory at the same time


@dataclass(frozen=True)
class ScoreResiduals:
    """Residuals of comparisons, added to the score of the first candidate of a pair, subtracted from the second's.

    ``first`` and ``second``: of each pair, numbers below ``candidates``. The other arrays are by comparison, in order
    of clusters: ``cluster``, from 0 on, and ``extra``, added to one more coordinate, if there is one.
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
        """Σ s_g s_gᵀ over clusters g, s_g their sums: (candidates + 1) × (candidates + 1)."""
        if self.clusters == len(self.pair):
            return self.of_single()
        products = np.zeros((self.candidates + 1, self.candidates + 1))
        some = max(AT_ONCE // (self.candidates + 1), 1)
        for start in range(0, self.clusters, some):
            part = self.by_cluster(start, min(start + some, self.clusters))
            products += part.T @ part
        return products

    def by_cluster(self, start: int, end: int) -> FloatArray:
        """s_g of the clusters of this range: clusters × (candidates + 1)."""
        inside = slice(*np.searchsorted(self.cluster, [start, end]))
        cluster = self.cluster[inside] - start
        row, width = cluster * (self.candidates + 1), self.candidates + 1
        pair, residual, size = self.pair[inside], self.residual[inside], (end - start) * width
        sums: FloatArray = np.bincount(row + self.first[pair], residual, size).astype(np.float64)
        sums -= np.bincount(row + self.second[pair], residual, size)
        if self.extra is not None:
            sums[self.candidates :: width] = np.bincount(cluster, self.extra[inside], end - start)
        return sums.reshape(end - start, -1)

    def of_single(self) -> FloatArray:
        """`products` where every cluster is one comparison, from three sums for each pair."""
        pairs = np.arange(len(self.first))
        x = np.zeros((len(self.first), self.candidates + 1))
        x[pairs, self.first], x[pairs, self.second] = 1, -1
        products: FloatArray = x.T @ (x * np.bincount(self.pair, self.residual**2, len(pairs))[:, None])
        if self.extra is not None:
            products[-1] = products[:, -1] = x.T @ np.bincount(self.pair, self.residual * self.extra, len(pairs))
            products[-1, -1] = (self.extra**2).sum()
        return products


@dataclass(frozen=True)
class RankingEvidence:
    """Comparisons by cluster: index, pair, cluster and outcome for the pair's first candidate.

    ``weight``: 0 where there is no choice.
    """

    matches: Matches
    item: IntArray
    pair: IntArray
    cluster: IntArray
    weight: FloatArray
    outcome: FloatArray

    @cached_property
    def has_choice(self) -> BoolArray:
        return self.weight > 0

    @property
    def comparisons(self) -> int:
        return int(np.count_nonzero(self.has_choice))

    @cached_property
    def clusters(self) -> int:
        """How many clusters have a choice."""
        if self.has_choice.all():
            return int(self.cluster[-1]) + 1 if len(self.cluster) else 0
        return int(np.count_nonzero(np.bincount(self.cluster, self.has_choice)))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the candidates that are in any comparison."""
        return tuple(self.matches.items.candidates[candidate] for candidate in self.matches.compared_candidates)

    @cached_property
    def comparison_counts(self) -> IntArray:
        """In how many comparisons with a choice each candidate of ``names`` is."""
        pairs = np.bincount(self.pair, self.has_choice, len(self.matches.compared_pairs)).astype(np.int64)
        return self.matches.sum_over_pairs(pairs)[self.matches.compared_candidates]

    @cached_property
    def effective_clusters(self) -> float:
        """The effective number of clusters, (Σn)² ÷ Σn² of their comparisons with a choice."""
        return effective_cluster_count(np.bincount(self.cluster, self.has_choice).astype(np.float64))

    @property
    def varied(self) -> IntArray:
        """For each candidate, how many clusters have an outcome other than its commonest, up to MIN_DISAGREEING."""
        has_choice, (first, second) = self.has_choice, pair_positions(self.matches)
        pair, outcome = self.pair[has_choice], np.rint(2 * self.outcome[has_choice]).astype(np.int64)
        to_first = np.bincount(3 * pair + outcome, minlength=3 * len(first)).reshape(-1, 3)  # lost, tied and won
        counts = np.zeros((len(self.names), 3), dtype=np.int64)
        np.add.at(counts, first, to_first)
        np.add.at(counts, second, to_first[:, ::-1])
        commonest, others = counts.argmax(axis=1), counts.sum(axis=1) - counts.max(axis=1)
        differing_clusters = np.full(len(counts), MIN_DISAGREEING)
        cluster = self.cluster[has_choice]
        few = others < MIN_DISAGREEING * np.bincount(cluster, minlength=1).max()
        if few.any():
            sides = ((first[pair], outcome), (second[pair], 2 - outcome))
            uncommon = [np.flatnonzero(few[side] & (had != commonest[side])) for side, had in sides]
            candidate = np.concatenate([side[where] for (side, _), where in zip(sides, uncommon, strict=True)])
            clusters = int(cluster.max(initial=0)) + 1
            candidate_clusters = np.unique(candidate * clusters + cluster[np.concatenate(uncommon)]) // clusters
            differing_clusters[few] = np.bincount(candidate_clusters, minlength=len(counts))[few]
        return differing_clusters

    @cached_property
    def totals(self) -> FloatArray:
        """The weighted matches of each pair, and then the wins of its first candidate: 2 × pairs."""
        values = self.weight, self.weight * self.outcome
        return np.concatenate([np.bincount(self.pair, value, len(self.matches.compared_pairs)) for value in values])

    @property
    def contributions(self) -> Contributions:
        """The contributions of clusters to ``totals``."""
        pair, cluster, weight = self.pair[self.has_choice], self.cluster[self.has_choice], self.weight[self.has_choice]
        return Contributions(
            cluster=np.concatenate([cluster, cluster]),
            cell=np.concatenate([pair, pair + len(self.matches.compared_pairs)]),
            cells=2 * len(self.matches.compared_pairs),
            weight=np.concatenate([weight, weight * self.outcome[self.has_choice]]),
        )

    def table(self, totals: FloatArray) -> WinTable:
        return win_table_of(self.matches, *np.split(totals, 2, axis=-1))

    def residuals(self, at: FloatArray) -> ScoreResiduals:
        """The contribution of each comparison to the gradient at these scores."""
        surplus = self.outcome - win_probabilities(self.table(self.totals), at)[self.pair]
        return score_residuals(self.matches, self.pair, self.cluster, self.weight * surplus)


def win_table_of(matches: Matches, met: FloatArray, wins: FloatArray) -> WinTable:
    """The table of wins of the candidates that are in any comparison, in order."""
    first, second = pair_positions(matches)
    return WinTable(first, second, len(matches.compared_candidates), met, wins)


def pair_positions(matches: Matches) -> tuple[IntArray, IntArray]:
    """The positions of the first and of the second candidate of each pair among these candidates."""
    return np.searchsorted(matches.compared_candidates, matches.first), np.searchsorted(
        matches.compared_candidates, matches.second
    )


def score_residuals(
    matches: Matches, pair: IntArray, cluster: IntArray, residual: FloatArray, extra: FloatArray | None = None
) -> ScoreResiduals:
    return ScoreResiduals(*pair_positions(matches), len(matches.compared_candidates), pair, cluster, residual, extra)
