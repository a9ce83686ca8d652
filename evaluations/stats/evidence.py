"""The comparisons that a ranking is made from, with what was said of them, as a table and by cluster."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from evaluations.stats.bradley_terry import Table, chances
from evaluations.stats.coding import BoolArray, IntArray
from evaluations.stats.contributions import Contributions, FloatArray, effective_number
from evaluations.stats.intervals import LEAST_DISAGREEING
from evaluations.stats.matches import Matches
from evaluations.stats.sandwich import Residuals


@dataclass(frozen=True)
class Evidence:
    """Comparisons by cluster: the place and pair of each, its cluster from 0 on, and what its pair's first had of it.

    ``weight``: 0 where there is no choice.
    """

    matches: Matches
    item: IntArray
    pair: IntArray
    cluster: IntArray
    weight: FloatArray
    outcome: FloatArray

    @cached_property
    def said(self) -> BoolArray:
        return self.weight > 0

    @property
    def comparisons(self) -> int:
        return int(np.count_nonzero(self.said))

    @cached_property
    def clusters(self) -> int:
        """How many have a choice."""
        if self.said.all():
            return int(self.cluster[-1]) + 1 if len(self.cluster) else 0
        return int(np.count_nonzero(np.bincount(self.cluster, self.said)))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Of the candidates that are in any comparison."""
        return tuple(self.matches.items.candidates[candidate] for candidate in self.matches.entrants)

    @cached_property
    def met(self) -> IntArray:
        """In how many comparisons with a choice each of them is."""
        pairs = np.bincount(self.pair, self.said, len(self.matches.met)).astype(np.int64)
        return self.matches.over_pairs(pairs)[self.matches.entrants]

    @cached_property
    def effective_clusters(self) -> float:
        """How many clusters of one size would tell as much, by their comparisons with a choice."""
        return effective_number(np.bincount(self.cluster, self.said).astype(np.float64))

    @property
    def varied(self) -> IntArray:
        """How many clusters hold, for each of them, anything but its commonest outcome; or LEAST_DISAGREEING."""
        said, (first, second) = self.said, places(self.matches)
        pair, outcome = self.pair[said], np.rint(2 * self.outcome[said]).astype(np.int64)
        to_first = np.bincount(3 * pair + outcome, minlength=3 * len(first)).reshape(-1, 3)  # lost, tied and won
        counts = np.zeros((len(self.names), 3), dtype=np.int64)
        np.add.at(counts, first, to_first)
        np.add.at(counts, second, to_first[:, ::-1])
        commonest, others = counts.argmax(axis=1), counts.sum(axis=1) - counts.max(axis=1)
        found = np.full(len(counts), LEAST_DISAGREEING)
        cluster = self.cluster[said]
        few = others < LEAST_DISAGREEING * np.bincount(cluster, minlength=1).max()
        if few.any():
            sides = ((first[pair], outcome), (second[pair], 2 - outcome))
            held = [np.flatnonzero(few[one] & (had != commonest[one])) for one, had in sides]
            candidate = np.concatenate([one[where] for (one, _), where in zip(sides, held, strict=True)])
            clusters = int(cluster.max(initial=0)) + 1
            met = np.unique(candidate * clusters + cluster[np.concatenate(held)]) // clusters
            found[few] = np.bincount(met, minlength=len(counts))[few]
        return found

    @cached_property
    def totals(self) -> FloatArray:
        """How often each pair met, and then what the first had of it: 2 × pairs."""
        values = self.weight, self.weight * self.outcome
        return np.concatenate([np.bincount(self.pair, value, len(self.matches.met)) for value in values])

    @property
    def contributions(self) -> Contributions:
        """To these totals."""
        pair, cluster, weight = self.pair[self.said], self.cluster[self.said], self.weight[self.said]
        return Contributions(
            cluster=np.concatenate([cluster, cluster]),
            cell=np.concatenate([pair, pair + len(self.matches.met)]),
            cells=2 * len(self.matches.met),
            weight=np.concatenate([weight, weight * self.outcome[self.said]]),
        )

    def table(self, totals: FloatArray) -> Table:
        return table(self.matches, *np.split(totals, 2, axis=-1))

    def residuals(self, at: FloatArray) -> Residuals:
        """What each comparison adds to the gradient at these scores."""
        surplus = self.outcome - chances(self.table(self.totals), at)[self.pair]
        return residuals(self.matches, self.pair, self.cluster, self.weight * surplus)


def table(matches: Matches, met: FloatArray, wins: FloatArray) -> Table:
    """Of the candidates that are in any comparison, in order."""
    first, second = places(matches)
    return Table(first, second, len(matches.entrants), met, wins)


def places(matches: Matches) -> tuple[IntArray, IntArray]:
    """Where the first and the second of each pair stand among these."""
    return np.searchsorted(matches.entrants, matches.first), np.searchsorted(matches.entrants, matches.second)


def residuals(
    matches: Matches, pair: IntArray, cluster: IntArray, residual: FloatArray, extra: FloatArray | None = None
) -> Residuals:
    return Residuals(*places(matches), len(matches.entrants), pair, cluster, residual, extra)
