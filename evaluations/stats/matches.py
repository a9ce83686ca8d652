"""Comparisons grouped by the pair of candidates that they are about, or by each candidate."""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import numpy.typing as npt

from evaluations.stats.coding import BOTH_BAD, CHOICES, MISSING, TIE, A, B, BoolArray, FloatArray, IntArray
from evaluations.stats.items import Items

HalfArray = npt.NDArray[np.uint8]
# The outcome of a choice for the candidate on side A, in halves of a win: 0, 1 or 2; both bad is a tie.
LOST, TIED, WON, UNKNOWN = range(4)
TO_A: Final = {B: LOST, TIE: TIED, BOTH_BAD: TIED, A: WON, MISSING: UNKNOWN}
CODES: Final = CHOICES + 1
# The type of indices of comparisons, sides and pairs, which stay below 2³¹: half the memory of int64.
INDEX_TYPE: Final = np.int32
MAX_RESTRICTIONS: Final = 4
MAX_MARKED: Final = 1 << 22  # possible pairs: up to this many are marked in an array, else the actual ones are sorted


@dataclass(frozen=True)
class MatchGroups:
    """Comparisons in groups, as entries sorted by group and within it by cluster.

    ``side``: of each entry 2 × the comparison's position, plus 1 where its group is about B. ``cell``: of each entry
    its cluster, numbered through all groups. ``entries`` and ``cells``: where each group begins among them, and the
    end. ``share``: of each entry 1 ÷ how many its query has in the group; None where that is the same everywhere.
    """

    side: IntArray
    cell: IntArray
    entries: IntArray
    cells: IntArray
    share: FloatArray | None

    def __len__(self) -> int:
        return len(self.cells) - 1

    @property
    def has_single_entries(self) -> bool:
        """Whether no cluster has two comparisons of one group."""
        return len(self.cell) == int(self.cells[-1])

    @cached_property
    def sizes(self) -> FloatArray:
        """The size of each cell: the sum of the shares of its entries."""
        return np.bincount(self.cell, self.share, int(self.cells[-1])).astype(np.float64)

    def where(self, chosen: BoolArray) -> IntArray:
        """The entries of the comparisons chosen, ascending. The last are kept: reviews are mostly of all aspects."""
        for known, entries in self.last_chosen:
            if np.array_equal(known, chosen):
                return entries
        made = np.flatnonzero(chosen[self.side >> 1])
        self.last_chosen[:] = [(chosen, made)]
        return made

    @cached_property
    def last_chosen(self) -> "list[tuple[BoolArray, IntArray]]":
        return []


@dataclass(frozen=True)
class Matches:
    """The comparisons of an evaluation as matches. Made once; all aspects and judges use it.

    ``known_pairs``: the pairs of the report, where these are more than the pairs of these comparisons.
    """

    items: Items
    known_pairs: IntArray | None = None

    def restricted_to(self, chosen: BoolArray) -> "Matches":
        """The matches of the chosen comparisons, with the same candidates and pairs at the same indices.

        The last few are kept: a call that fails lacks the verdicts of all aspects.
        """
        for known, made in self.restrictions:
            if np.array_equal(known, chosen):
                return made
        made = Matches(self.items.where(chosen), self.compared_pairs)
        self.restrictions.append((chosen, made))
        del self.restrictions[:-MAX_RESTRICTIONS]
        return made

    @cached_property
    def restrictions(self) -> "list[tuple[BoolArray, Matches]]":
        return []

    @cached_property
    def is_turned(self) -> BoolArray:
        """Whether A is the later of each comparison's two candidates in ``items.candidates``."""
        return self.items.candidate_a > self.items.candidate_b

    @property
    def pair_numbers(self) -> IntArray:
        """The number of each comparison's pair: earlier candidate × number of candidates + later candidate."""
        a, b = self.items.candidate_a, self.items.candidate_b
        return np.minimum(a, b).astype(np.int64) * len(self.items.candidates) + np.maximum(a, b)

    @cached_property
    def compared_pairs_and_index(self) -> tuple[IntArray, IntArray]:
        """The pairs of the report, by number in ascending order, and of each comparison the index of its pair."""
        if self.known_pairs is not None:
            return self.known_pairs, np.searchsorted(self.known_pairs, self.pair_numbers).astype(INDEX_TYPE)
        possible = len(self.items.candidates) ** 2
        if possible > MAX_MARKED:
            met, pair = np.unique(self.pair_numbers, return_inverse=True)
            return met, pair.astype(INDEX_TYPE)
        met = np.flatnonzero(np.bincount(self.pair_numbers, minlength=possible))
        positions = np.zeros(possible, dtype=INDEX_TYPE)
        positions[met] = np.arange(len(met))
        return met, positions[self.pair_numbers]

    @property
    def compared_pairs(self) -> IntArray:
        return self.compared_pairs_and_index[0]

    @property
    def first(self) -> IntArray:
        """The earlier candidate of each compared pair."""
        return self.compared_pairs // len(self.items.candidates)

    @property
    def second(self) -> IntArray:
        """The later candidate of each compared pair."""
        return self.compared_pairs % len(self.items.candidates)

    @property
    def pair(self) -> IntArray:
        return self.compared_pairs_and_index[1]

    @cached_property
    def compared_candidates(self) -> IntArray:
        """The candidates that are in any comparison, in ascending order."""
        return np.union1d(self.first, self.second)

    @cached_property
    def cluster_order(self) -> IntArray:
        """The comparisons by cluster and within it by query."""
        return np.lexsort((self.items.query, self.items.cluster)).astype(INDEX_TYPE)

    @cached_property
    def cluster_position(self) -> IntArray:
        """The position of each comparison in ``cluster_order``."""
        position = np.empty_like(self.cluster_order)
        position[self.cluster_order] = np.arange(len(position), dtype=INDEX_TYPE)
        return position

    def by_cluster(self, items: IntArray) -> IntArray:
        """These comparisons in order of clusters."""
        return items[np.argsort(self.items.cluster[items], kind="stable")]

    @cached_property
    def pair_by_cluster(self) -> IntArray:
        return self.pair[self.cluster_order]

    @cached_property
    def number_by_cluster(self) -> IntArray:
        """The clusters of the comparisons by cluster, numbered from 0."""
        return number_sorted_clusters(self.items.cluster[self.cluster_order])

    def of_first(self, halves: HalfArray, items: IntArray) -> FloatArray:
        """The outcome, 0, ½ or 1, for the earlier candidate of each of these comparisons, from `halves_by_side`."""
        return halves[2 * items + self.is_turned[items]] / 2

    @cached_property
    def pairs(self) -> MatchGroups:
        """One group for each compared pair, with outcomes for the earlier candidate."""
        return group_matches(
            self.pair[self.cluster_order],
            2 * self.cluster_order + self.is_turned[self.cluster_order],
            self.items,
            len(self.compared_pairs),
        )

    @cached_property
    def candidates(self) -> MatchGroups:
        """One group for each candidate, with all its comparisons."""
        both = np.stack([self.items.candidate_a, self.items.candidate_b], axis=1)[self.cluster_order]
        sides = np.stack([2 * self.cluster_order, 2 * self.cluster_order + 1], axis=1)
        return group_matches(both.ravel(), sides.ravel(), self.items, len(self.items.candidates))

    @cached_property
    def pair_sizes(self) -> IntArray:
        """How many comparisons each compared pair has."""
        return np.bincount(self.pair, minlength=len(self.compared_pairs))

    @cached_property
    def tally_codes(self) -> IntArray:
        return (2 * self.pair.astype(np.int64) + self.is_turned) * CODES

    def tally(self, choice: IntArray) -> IntArray:
        """Counts of the outcomes of each pair's earlier candidate, LOST, TIED, WON and UNKNOWN: pairs × 4."""
        counts = np.bincount(self.tally_codes + (choice - MISSING), minlength=2 * CODES * len(self.compared_pairs))
        tallies = np.zeros((len(self.compared_pairs), 4), dtype=np.int64)
        for code, worth in TO_A.items():
            straight, turned = counts.reshape(-1, 2, CODES)[:, :, code - MISSING].T
            tallies[:, worth] += straight
            tallies[:, opposite_outcome(worth)] += turned
        return tallies

    def tally_of_candidates(self, pairs: IntArray) -> IntArray:
        """The outcome counts of each candidate, candidates × 4, from those of pairs."""
        return np.stack(
            [self.sum_over_pairs(pairs[:, worth], pairs[:, opposite_outcome(worth)]) for worth in range(UNKNOWN + 1)],
            axis=1,
        )

    def sum_over_pairs(self, of_first: IntArray, of_second: IntArray | None = None) -> IntArray:
        """The sum over each candidate's pairs of the value of a pair for it, ``of_first`` or ``of_second``."""
        sums = np.zeros(len(self.items.candidates), dtype=of_first.dtype)
        np.add.at(sums, self.first, of_first)
        np.add.at(sums, self.second, of_first if of_second is None else of_second)
        return sums


def opposite_outcome(worth: int) -> int:
    return worth if worth == UNKNOWN else WON - worth


def group_matches(group: IntArray, side: IntArray, items: Items, count: int) -> MatchGroups:
    """The groups of entries that are sorted by cluster and query."""
    # Sorting the smallest integer type is ten times as quick.
    side = side[np.argsort(group.astype(np.min_scalar_type(max(count - 1, 0))), kind="stable")]
    sizes = np.bincount(group, minlength=count)
    entries = np.concatenate([[0], np.cumsum(sizes)])
    within = items.cluster[side >> 1]
    begins = np.ones(len(side), dtype=np.bool_)
    begins[1:] = within[1:] != within[:-1]
    begins[entries[:-1][sizes > 0]] = True
    cell = np.cumsum(begins) - 1  # of the type that sums by cell need: another would be copied for each
    cells = np.append(cell, cell[-1:] + 1)[entries] if len(cell) else entries
    return MatchGroups(side, cell, entries, cells, query_weights(cell, items.query[side >> 1]))


def query_weights(cell: IntArray, query: IntArray) -> FloatArray | None:
    """1 ÷ the number of entries of a query in its cell; None where that is constant."""
    begins = np.ones(len(cell), dtype=np.bool_)
    begins[1:] = (cell[1:] != cell[:-1]) | (query[1:] != query[:-1])
    sizes = np.diff(np.append(np.flatnonzero(begins), len(cell)))
    return None if not len(sizes) or sizes.min() == sizes.max() else 1 / np.repeat(sizes, sizes)


def number_sorted_clusters(cluster: IntArray) -> IntArray:
    """Clusters in order, numbered from 0."""
    begins = np.zeros(len(cluster), dtype=np.bool_)
    begins[1:] = cluster[1:] != cluster[:-1]
    return np.cumsum(begins)


# By choice, MISSING being the last; it counts as a tie.
HALVES_TO_A: Final[HalfArray] = np.array([*(TO_A[code] for code in range(CHOICES)), TIED], dtype=np.uint8)


def halves_by_side(choice: IntArray) -> HalfArray:
    """The outcomes of A and B of each comparison, alternating, in halves; a missing choice counts as a tie."""
    to_a = HALVES_TO_A[choice]
    return np.stack([to_a, WON - to_a], axis=1).ravel()


def halves_at(choice: IntArray, side: IntArray) -> HalfArray:
    """`halves_by_side` at some sides."""
    to_a = HALVES_TO_A[choice[side >> 1]]
    return np.asarray(np.where(side & 1, WON - to_a, to_a), dtype=np.uint8)
