"""The comparisons that a ranking is made from, with what was said of them, as a table and by cluster."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from evaluations.stats.bradley_terry import Table, chances
from evaluations.stats.coding import BoolArray, IntArray
from evaluations.stats.contributions import Contributions, FloatArray
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
    def varied(self) -> IntArray:
        """How many clusters hold, for each of them, anything but its commonest outcome."""
        said, (first, second) = self.said, places(self.matches)
        pair, to_first = self.pair[said], np.rint(2 * self.outcome[said]).astype(np.int8)
        # By candidate as small numbers, which are quick to sort; within one the clusters stay in order.
        names = np.stack([first[pair], second[pair]], axis=1).ravel().astype(np.min_scalar_type(len(self.names)))
        order, size = np.argsort(names, kind="stable"), len(self.names)
        candidate = names[order].astype(np.int64)
        outcome, cluster = np.stack([to_first, 2 - to_first], axis=1).ravel()[order], self.cluster[said][order >> 1]
        commonest = np.bincount(3 * candidate + outcome, minlength=3 * size).reshape(size, 3).argmax(axis=1)
        other = outcome != commonest[candidate]
        candidate, cluster = candidate[other], cluster[other]
        begins = (np.diff(candidate, prepend=-1) != 0) | (np.diff(cluster, prepend=-1) != 0)
        return np.bincount(candidate[begins], minlength=size)

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
