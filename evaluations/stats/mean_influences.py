"""What each cluster adds to the means of candidates, and the sums from which means and differences have variances.

`corrected_means` defines y_g and d_g, the influences of a cluster. Everything is computed for all candidates at once.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from math import floor
from operator import itemgetter
from typing import Final, NamedTuple

import numpy as np

from evaluations.stats.coding import BoolArray, FloatArray, IntArray
from evaluations.stats.confidence_intervals import ROUNDING
from evaluations.stats.estimates import DECIMALS, drop_rounding_noise
from evaluations.stats.group_means import slice_sums
from evaluations.stats.post_stratification import inclusion_probabilities
from evaluations.stats.ppi import optimal_lambda
from evaluations.stats.ranks import rank_values

NO_REST: Final = 1e-9  # as a share: beside a cluster there is nothing else
# The rows of `ClusterInfluences`; all but the weight and the influences are 1 where the cluster has such a response.
WEIGHT, REVIEWED, Y, D, VARIED, DIFFERING = range(6)


@dataclass(frozen=True)
class ResponseCells:
    """Responses by candidate and within it by cluster; those of one candidate in one cluster are a cell.

    ``order``: the responses so ordered, of which ``candidate`` and ``cell`` have the candidate and the cell.
    ``starts``: where each candidate begins among the cells, and the end. ``cluster``: of each cell.
    """

    order: IntArray
    candidate: IntArray
    cell: IntArray
    starts: IntArray
    cluster: IntArray

    @property
    def candidates(self) -> int:
        return len(self.starts) - 1

    def count(self, chosen: BoolArray) -> IntArray:
        """How many responses are chosen of each candidate; ``chosen``: in the order of cells."""
        return np.bincount(self.candidate[chosen], minlength=self.candidates)

    def total(self, value: FloatArray) -> FloatArray:
        """The sum over each candidate's responses."""
        return np.bincount(self.candidate, value, self.candidates).astype(np.float64, copy=False)

    def mean(self, value: FloatArray, weight: FloatArray) -> FloatArray:
        """The weighted mean of each candidate's responses, NaN where all weights are 0."""
        with np.errstate(invalid="ignore"):
            return np.asarray(self.total(value * weight) / self.total(weight))

    def influence(self, value: FloatArray, mean: FloatArray, weight: FloatArray) -> FloatArray:
        """Of each cell, by how much its candidate's weighted mean is more with it than without, times √((G − 1) ÷ G).

        G is the number of the candidate's cells with a weight. The squares thus add up to the jackknife's variance,
        which for cells of equal weight is the usual one, and does not shrink where a few cells have most of the weight.
        """
        candidate = np.repeat(np.arange(self.candidates), np.diff(self.starts))
        sizes = self.by_cell(weight)
        with np.errstate(invalid="ignore", divide="ignore"):
            rest = self.total(weight)[candidate] - sizes
            added = self.by_cell(weight * (value - mean[self.candidate])) / rest
        counted = (sizes > 0) & (rest > NO_REST * sizes)
        clusters = np.bincount(candidate[counted], minlength=self.candidates)
        factor = np.sqrt(1 - 1 / np.maximum(clusters, 1))
        return np.where(counted, added, 0.0) * factor[candidate]

    def by_cell(self, value: FloatArray | BoolArray) -> FloatArray:
        return np.bincount(self.cell, value, len(self.cluster)).astype(np.float64, copy=False)


def response_cells(candidate: IntArray, cluster: IntArray, candidates: int) -> ResponseCells:
    order = np.lexsort((cluster, candidate))
    of, within = candidate[order], cluster[order]
    begins = np.ones(len(order), dtype=np.bool_)
    begins[1:] = (of[1:] != of[:-1]) | (within[1:] != within[:-1])
    first = np.flatnonzero(begins)
    return ResponseCells(
        order, of, np.cumsum(begins) - 1, np.searchsorted(of[first], np.arange(candidates + 1)), within[first]
    )


@dataclass(frozen=True)
class ClusterInfluences:
    """What the clusters add to the mean of each candidate.

    ``rows``: of each cell the summed weight of reviewed responses, whether there is one, y_g, d_g, whether one differs
    from the candidate's commonest value, and whether judge and reviewers differ on one. ``n``: reviewed responses of
    each candidate. ``weight``: their summed weight. ``means``: Ȳ, F̂ and F̄ of each, 3 × candidates.
    """

    cells: ResponseCells
    rows: FloatArray
    n: IntArray
    weight: FloatArray
    means: FloatArray


@dataclass(frozen=True)
class ReviewedResponses:
    """Responses with a value of the judge, and of these the reviewed ones; all arrays in the order of cells.

    ``reviewed``: whether reviewers gave a value; ``seen``: the same, or reviewed without a value. ``weight``: 1/π of
    those seen, which is 1 without strata, 0 of others.
    """

    scored: BoolArray
    reviewed: BoolArray
    seen: BoolArray
    weight: FloatArray

    @property
    def reviewed_weight(self) -> FloatArray:
        return np.where(self.reviewed, self.weight, 0.0)


def find_reviewed(
    reviewers: FloatArray, judge: FloatArray, split: BoolArray | None, stratum: IntArray | None
) -> ReviewedResponses:
    """``split``: the responses that were reviewed and have no value. ``stratum``: of each response, None for one."""
    scored = ~np.isnan(judge)
    reviewed = scored & ~np.isnan(reviewers)
    seen = reviewed if split is None else reviewed | (scored & split)
    weight = seen.astype(np.float64)
    if stratum is not None:
        weight[seen] /= inclusion_probabilities(stratum[scored], seen[scored])[seen[scored]]
    return ReviewedResponses(scored, reviewed, seen, weight)


def candidate_influences(
    cells: ResponseCells,
    reviewers: FloatArray,
    judge: FloatArray | None,
    split: BoolArray | None = None,
    stratum: IntArray | None = None,
) -> ClusterInfluences:
    """The influences on the means over responses with values on both sides; NaN is none.

    ``judge``: None for the means of ``reviewers`` alone. ``split`` and ``stratum``: as of `find_reviewed`.
    """
    order = cells.order
    y, f = reviewers[order], np.zeros(len(order)) if judge is None else judge[order]
    of = find_reviewed(y, f, None if split is None else split[order], None if stratum is None else stratum[order])
    y, f = np.where(of.reviewed, y, 0.0), np.where(of.scored, f, 0.0)
    weight, everywhere = of.reviewed_weight, of.scored.astype(np.float64)
    means = np.stack([cells.mean(y, weight), cells.mean(f, everywhere), cells.mean(f, of.weight)])
    added = cells.influence(y, means[0], weight)
    added_lead = cells.influence(f, means[2], of.weight) - cells.influence(f, means[1], everywhere)
    varied = np.zeros(len(y), dtype=np.bool_)
    varied[of.reviewed] = differs_from_commonest(cells.candidate[of.reviewed], y[of.reviewed])
    differing = of.reviewed & (drop_rounding_noise(y - f) != 0)
    is_reviewed, is_varied, is_differing = (cells.by_cell(flag) > 0 for flag in (of.reviewed, varied, differing))
    columns = (cells.by_cell(weight), is_reviewed, added, added_lead, is_varied, is_differing)
    rows = np.stack(columns).astype(np.float64, copy=False)
    return ClusterInfluences(cells, rows, cells.count(of.reviewed), cells.total(weight), means)


def differs_from_commonest(group: IntArray, value: FloatArray) -> BoolArray:
    """Whether each value is another than the most frequent one of its group, the lowest of several."""
    ranked = rank_values(value)
    kinds, counts = np.unique(group * len(ranked.count) + ranked.code, return_counts=True)
    owner, code = np.divmod(kinds, max(len(ranked.count), 1))
    by_frequency = np.lexsort((code, -counts, owner))
    groups, first = np.unique(owner[by_frequency], return_index=True)
    return np.asarray(ranked.code != code[by_frequency][first][np.searchsorted(groups, group)])


def cluster_influences(
    reviewers: FloatArray, judge: FloatArray | None, cluster: IntArray, split: BoolArray | None = None
) -> ClusterInfluences:
    """The influences on the mean of a single candidate, whose responses have an entry each in all arrays."""
    cells = response_cells(np.zeros(len(cluster), dtype=np.int64), cluster, 1)
    return candidate_influences(cells, reviewers, judge, split)


class MeanSums(NamedTuple):
    """The sums over clusters from which a mean, or a difference of two, has its variance.

    ``clusters``, ``varied``, ``differing`` and ``effective`` count reviewed clusters. ``judge_weight``: λ, 0 where one
    cluster alone is reviewed; else it costs a degree of freedom, as it is chosen for the least variance.
    ``unrounded``: the corrected value.
    """

    n: int
    clusters: int
    varied: int
    differing: int
    effective: float
    yy: float
    yd: float
    dd: float
    judge_weight: float
    variance: float
    unrounded: float

    @property
    def value(self) -> float:
        return round(self.unrounded, DECIMALS)

    @property
    def degrees(self) -> int:
        """The degrees of freedom of the variance."""
        return max(floor(self.effective + ROUNDING) - 1 - (self.judge_weight > 0), 1)


def mean_sums(influences: ClusterInfluences) -> MeanSums:
    """The sums of a single candidate."""
    return all_mean_sums(influences)[0]


def all_mean_sums(influences: ClusterInfluences) -> list[MeanSums]:
    """The sums of each candidate."""
    return sums_from_moments(cluster_moments(influences), influences.n, influences.weight, influences.means)


# The pairs of rows whose products over clusters are needed: four on the diagonal, and those of influences.
PRODUCTS: Final = (
    (WEIGHT, WEIGHT),
    (REVIEWED, REVIEWED),
    (VARIED, VARIED),
    (DIFFERING, DIFFERING),
    (Y, Y),
    (Y, D),
    (D, D),
)
COUNTS: Final = slice(1, 4)


def cluster_moments(influences: ClusterInfluences) -> FloatArray:
    """The sums of these products over the clusters of each candidate: 7 × candidates."""
    rows, starts = influences.rows, influences.cells.starts
    return np.stack([slice_sums(starts, rows[one] * rows[other]) for one, other in PRODUCTS])


def sums_from_moments(moments: FloatArray, n: IntArray, total: FloatArray, means: FloatArray) -> list[MeanSums]:
    """Sums of many means. ``total``: the summed weight of the responses; ``means``: Ȳ, F̂ and F̄ of each."""
    size, clusters, varied, differing, yy, yd, dd = moments
    effective = np.divide(total**2, size, out=np.zeros(len(n)), where=size > 0)
    weight = np.where(clusters > 1, optimal_lambda(yy, yd, dd), 0.0)
    variance = np.maximum(yy - 2 * weight * yd + weight**2 * dd, 0.0)
    variance *= np.where(weight > 0, np.maximum((effective - 1) / np.maximum(effective - 2, 1.0), 1.0), 1.0)
    value = means[0] + weight * (means[1] - means[2])
    counts = (np.rint(column).astype(np.int64) for column in (n, clusters, varied, differing))
    numbers = (effective, yy, yd, dd, weight, variance, value)
    return [MeanSums(*row) for row in zip(*(column.tolist() for column in (*counts, *numbers)), strict=True)]


Pair = tuple[int, int]  # of candidates, the lower number first


def all_difference_sums(influences: ClusterInfluences, pairs: Sequence[Pair], clusters: int) -> list[MeanSums | None]:
    """The sums of the difference of each pair; None where one of the two has none. ``clusters``: how many in all.

    ``pairs``: those with the same first candidate follow each other.
    """
    if not pairs:
        return []
    moments, (first, second) = cluster_moments(influences), np.array(pairs).T
    crossed = np.concatenate(list(crossed_moments(influences, pairs, clusters)), axis=1)
    crossed[0] *= -1  # weights add up
    crossed[COUNTS] /= 2  # a cluster of both counts once
    sums = sums_from_moments(
        moments[:, first] + moments[:, second] - crossed,
        influences.n[first] + influences.n[second],
        influences.weight[first] + influences.weight[second],
        influences.means[:, first] - influences.means[:, second],
    )
    has_both = (influences.n[first] > 0) & (influences.n[second] > 0)
    return [one if there else None for one, there in zip(sums, has_both.tolist(), strict=True)]


def crossed_moments(influences: ClusterInfluences, pairs: Iterable[Pair], clusters: int) -> Iterator[FloatArray]:
    """For all pairs with the same first candidate, Σ uv' + u'v over the clusters of both, for the products u v."""
    starts, rows, cluster = influences.cells.starts, influences.rows, influences.cells.cluster
    scratch = np.zeros((len(rows), clusters))
    for first, chosen in groupby(pairs, key=itemgetter(0)):
        own, later = slice(starts[first], starts[first + 1]), slice(starts[first + 1], None)
        scratch[:, cluster[own]] = rows[:, own]
        of_first, of_others = scratch[:, cluster[later]], rows[:, later]
        bounds, others = starts[first + 1 :] - starts[first + 1], [second - first - 1 for _, second in chosen]
        products = (of_first[u] * of_others[v] + of_first[v] * of_others[u] for u, v in PRODUCTS)
        yield np.stack([slice_sums(bounds, product)[others] for product in products])
        scratch[:, cluster[own]] = 0.0
