"""Parts of the comparisons, each with clusters of its own: all of them, by category, by pair of candidates."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from evaluations.stats.bias.counts import CountsByStratum, sum_by_stratum
from evaluations.stats.coding import MISSING, BoolArray, IntArray
from evaluations.stats.items import Items

MOST_STRATA: Final = 50
SPARSE: Final = 8  # one entry in so many: those are picked first
DENSEST: Final = 1 << 24  # numbers below this are marked in an array, else they are sorted

Name = tuple[str, ...]
Small = npt.NDArray[np.int8]


@dataclass(frozen=True)
class Strata:
    """Entries by stratum, and within it by cluster: a group. Groups are numbered stratum after stratum.

    ``stratum`` and ``group``: one for each entry, MISSING outside. Groups ``starts[s]`` to ``starts[s + 1]`` are in
    stratum s. ``left_out``: how many strata there are beyond these. ``alone``: no group has two entries.
    """

    names: tuple[Name, ...]
    left_out: int
    stratum: Small
    group: IntArray
    starts: IntArray
    alone: bool

    def __len__(self) -> int:
        return len(self.names)

    def where(self, kept: BoolArray) -> "Strata":
        """Some of the entries."""
        return replace(self, stratum=self.stratum[kept], group=self.group[kept])

    def at(self, entry: IntArray) -> "Strata":
        """The same strata over entries that each belong to one of these: votes to items."""
        stratum, group = self.stratum[entry], self.group[entry]
        inside = stratum != MISSING
        present, number = numbered(group[inside], int(self.starts[-1]))
        group[inside] = number
        starts = np.searchsorted(present, self.starts)
        return Strata(self.names, self.left_out, stratum, group, starts, len(present) == len(number))

    def counts(self, cell: IntArray, cells: int) -> CountsByStratum:
        """Each entry counts in its cell of its stratum and group, those whose cell is MISSING nowhere."""
        counted = cell != MISSING
        if SPARSE * np.count_nonzero(counted) < len(cell):
            return self.where(counted).counts(cell[counted], cells)
        # MISSING, −1, makes the first row and column: to cut them off is quicker than to pick what is counted.
        if self.alone:
            at = (self.stratum + np.int16(1)) * np.int16(cells + 1) + (cell + np.int16(1))
            flat = np.bincount(at, minlength=(len(self) + 1) * (cells + 1))
            return CountsByStratum(flat.reshape(len(self) + 1, cells + 1)[1:, 1:], None, self.starts)
        groups = int(self.starts[-1])
        within = cell.astype(np.int64) + 1
        within *= groups + 1
        within += self.group
        flat = np.bincount(within + 1, minlength=(cells + 1) * (groups + 1))
        table = flat.reshape(cells + 1, groups + 1)[1:, 1:]
        return CountsByStratum(sum_by_stratum(table, self.starts), table, self.starts)


def undivided(cluster: IntArray) -> Strata:
    """All entries in one stratum without a name."""
    return strata(np.zeros(len(cluster), dtype=np.int8), cluster, ((),))


def by_category(items: Items) -> Strata:
    names = [(name,) for name in items.categories]
    return largest(items.category, items.cluster, names)


def by_pair(items: Items) -> Strata:
    """The two candidates of a comparison, A first."""
    candidates = len(items.candidates)
    pairs, place = numbered(items.candidate_a * candidates + items.candidate_b, candidates**2)
    names = [(items.candidates[pair // candidates], items.candidates[pair % candidates]) for pair in pairs.tolist()]
    return largest(place, items.cluster, names)


def largest(place: IntArray, cluster: IntArray, names: Sequence[Name]) -> Strata:
    """The strata with the most entries, in this order. ``place``: of each entry among the names, or MISSING."""
    sizes = np.bincount(place[place != MISSING], minlength=len(names))
    occurring = int(np.count_nonzero(sizes))
    kept = np.argsort(-sizes, kind="stable")[: min(occurring, MOST_STRATA)]
    rank = np.full(len(names) + 1, MISSING, dtype=np.int8)  # the last entry is that of MISSING
    rank[kept] = np.arange(len(kept))
    return strata(rank[place], cluster, tuple(names[one] for one in kept.tolist()), occurring - len(kept))


def strata(stratum: Small, cluster: IntArray, names: tuple[Name, ...], left_out: int = 0) -> Strata:
    """Two stable sorts, the first quick where clusters come in order, the second of small numbers."""
    entry = np.argsort(cluster, kind="stable")
    entry = entry[np.argsort(stratum[entry], kind="stable")]
    entry = entry[np.searchsorted(stratum[entry], 0) :]  # MISSING comes first
    of, by = stratum[entry], cluster[entry]
    begins = np.concatenate([[True], (of[1:] != of[:-1]) | (by[1:] != by[:-1])])[: len(entry)]
    group = np.full(len(cluster), MISSING)
    group[entry] = np.cumsum(begins) - 1
    starts = np.searchsorted(of[begins], np.arange(len(names) + 1))
    return Strata(names, left_out, stratum, group, starts, bool(begins.all()))


def numbered(key: IntArray, limit: int) -> tuple[IntArray, IntArray]:
    """The keys that occur in rising order, and the place of each entry's key among them; keys are below ``limit``."""
    if limit > DENSEST:
        present, number = np.unique(key, return_inverse=True)
        return present, number
    marked = np.zeros(limit, dtype=bool)
    marked[key] = True
    return np.flatnonzero(marked), (np.cumsum(marked) - 1)[key]
