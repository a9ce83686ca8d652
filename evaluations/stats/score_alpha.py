"""Krippendorff's alpha of scores: any number of raters, each on as many responses as they like.

1 − observed ÷ expected disagreement (Krippendorff 2004) over responses with two scores or more. Interval: the
disagreement of two scores is the square of their difference. Ordinal: the square of the difference of their mid-ranks
among all scores, which is his Σ of the scores between them.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from evaluations.stats.alpha import alpha_ordinal
from evaluations.stats.cluster_sums import Clusters, cluster_sums, numbered
from evaluations.stats.coding import IntArray
from evaluations.stats.contributions import Contributions, FloatArray
from evaluations.stats.correlation import DRAWN_CELLS
from evaluations.stats.influence import Influence, on_fisher_scale
from evaluations.stats.intervals import BOOTSTRAP_UP_TO, CORRELATION, Spread, Statistic, too_few_of
from evaluations.stats.numbers import Number, undefined
from evaluations.stats.ranks import Ranked, ranked
from evaluations.stats.votes import pairs_on_an_item

ROUNDING: Final = 1e-9  # a disagreement of scores in standard deviations that is none

TOO_FEW_SCORES: Final = "No response has two scores."
ONE_VALUE: Final = "Every score is the same: there is no variation that agreement could explain."


@dataclass(frozen=True)
class Paired:
    """The scores of units that have two or more. ``unit``: numbers of these without gaps. ``clusters``: of units."""

    unit: IntArray
    value: FloatArray
    clusters: Clusters

    @cached_property
    def scores(self) -> FloatArray:
        """How many each unit has."""
        return np.bincount(self.unit).astype(np.float64)

    @property
    def units(self) -> int:
        return len(self.scores)

    def total(self, value: FloatArray) -> FloatArray:
        return np.bincount(self.unit, value, self.units).astype(np.float64, copy=False)

    def disagreement(self, value: FloatArray) -> FloatArray:
        """Per unit: Σ of (v − w)² over ordered pairs of its scores ÷ (scores − 1)."""
        apart = self.scores * self.total(value**2) - self.total(value) ** 2
        return np.asarray(2 * apart / (self.scores - 1))

    @property
    def spread_out(self) -> FloatArray:
        """The values centred and of standard deviation 1."""
        centred = self.value - self.value.mean()
        return np.asarray(centred / centred.std())

    def why_not(self) -> str | None:
        """Why there is no alpha, where there is none."""
        if not len(self.unit):
            return TOO_FEW_SCORES
        return ONE_VALUE if self.value.min() == self.value.max() else None

    def few(self) -> str | None:
        """Why its interval would promise too much, where it would."""
        apart = self.disagreement(self.spread_out)
        differing = self.clusters.holding(np.where(apart > ROUNDING, apart, 0.0))
        return too_few_of(self.clusters.effective, differing, clusters=self.clusters.count)


def paired(unit: IntArray, value: FloatArray, cluster: IntArray) -> Paired:
    """``unit``, ``value``: one entry for each score. ``cluster``: of each unit."""
    counts = np.bincount(unit, minlength=len(cluster))
    kept = counts[unit] > 1
    return Paired(numbered(unit[kept]).of, value[kept], numbered(cluster[counts > 1]))


def interval_alpha(found: Paired) -> Number:
    """Alpha of scores whose distances mean something. n counts the units.

    Undefined where no unit has two scores, and where every score is the same.
    """
    if (why := found.why_not()) is not None:
        return undefined(why, found.units)
    number, spread = number_of_sums(found, found.spread_out)
    few = found.few()
    return number.without_interval(few) if few else spread.interval(number, alpha_of_sums, CORRELATION)


def ordinal_alpha(found: Paired) -> Number:
    """Alpha of scores of which only the order counts. n and undefined as for `interval_alpha`.

    By bootstrap of clusters where there are up to eleven values and few clusters, else linearised.
    """
    if (why := found.why_not()) is not None:
        return undefined(why, found.units)
    ranks = ranked(found.value)
    number, _ = number_of_sums(found, ranks.standing / len(ranks.code))
    if (few := found.few()) is not None:
        return number.without_interval(few)
    if len(ranks.count) ** 2 <= DRAWN_CELLS and found.clusters.count <= BOOTSTRAP_UP_TO:
        statistic = of_coincidences(len(ranks.count))
        return Spread(coincidences(found, ranks)).interval(number, statistic, CORRELATION)
    return on_fisher_scale(number, Influence(influence(found, ranks), found.clusters))


# ---- of sums -------------------------------------------------------------------------------


def number_of_sums(found: Paired, value: FloatArray) -> tuple[Number, Spread]:
    sums = cluster_sums(
        found.clusters, found.scores, found.total(value), found.total(value**2), found.disagreement(value)
    )
    return Number(min(float(alpha_of_sums(sums.totals)), 1.0), found.units), Spread(sums)


def alpha_of_sums(totals: FloatArray) -> FloatArray:
    """From (…, 5): units, scores, their sum, their squares' sum, the sum of disagreements."""
    scores, summed, squares, disagreement = (totals[..., cell] for cell in range(1, 5))
    return np.asarray(1 - (scores - 1) * disagreement / (2 * (scores * squares - summed**2)))


# ---- of ranks, which every score of a resample moves ---------------------------------------


def coincidences(found: Paired, ranks: Ranked) -> Contributions:
    """How often two values meet on a unit, each unit's pairs weighing 1 ÷ (scores − 1): values × values cells."""
    one, other = pairs_on_an_item(found.unit)
    unit, values = found.unit[one], len(ranks.count)
    cell = ranks.code[one] * values + ranks.code[other]
    return Contributions(found.clusters.of[unit], cell, values**2, 1 / (found.scores[unit] - 1))


def of_coincidences(values: int) -> Statistic:
    def ordinal(totals: FloatArray) -> FloatArray:
        one_way = totals.reshape(*totals.shape[:-1], values, values)
        return alpha_ordinal(one_way + np.swapaxes(one_way, -1, -2))

    return ordinal


def influence(found: Paired, ranks: Ranked) -> FloatArray:
    """Of each unit on 1 − observed ÷ expected, both of which a score enters at its own rank and by moving others'."""
    rank, scores = ranks.standing, found.scores[found.unit]
    observed = found.disagreement(rank)
    slope = 4 * (scores * rank - found.total(rank)[found.unit]) / (scores - 1)
    on_observed = observed + found.total(ranks.above(slope))
    on_expected = found.total(rank**2 + 2 * ranks.above(rank))
    total, variation = float(observed.sum()), float((rank**2).sum())
    return -(on_observed - total / variation * on_expected) / (2 * variation)
