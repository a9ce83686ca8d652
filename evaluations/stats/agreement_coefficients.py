"""Coefficients of agreement as functions of totals: kappa, pi, AC1, alpha and intraclass correlation.

Two raters: ``counts[…, i, j]`` is the number of items on which the first chose i and the second j; a function returns
one number for each table, NaN where it is undefined. Counts stay integers until the last division, so that perfect
agreement is exactly 1 and chance agreement exactly 0.

Alpha is 1 − observed ÷ expected disagreement, from coincidences: every pair of votes on a unit of m votes, in both
directions, weighs 1 ÷ (m − 1) (Krippendorff 2019, chapter 12). Units with one vote are ignored.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from evaluations.stats.cluster_totals import Clusters, ClusterSums, sum_by_cluster
from evaluations.stats.coding import CHOICES, BoolArray, FloatArray

SIDES: Final = 2  # the first categories
# The order A – tie – B, with both bad counted as a tie.
IN_ORDER: FloatArray = np.array([[1.0, 0, 0, 0], [0, 0, 1, 1], [0, 1, 0, 0]])


@dataclass(frozen=True)
class ContingencyTables:
    """One or many tables with their sums. ``counts``: … × categories × categories."""

    counts: FloatArray

    @cached_property
    def n(self) -> FloatArray:
        return np.asarray(self.counts.sum(axis=(-2, -1)))

    @cached_property
    def agree(self) -> FloatArray:
        return np.asarray(np.trace(self.counts, axis1=-2, axis2=-1))

    @cached_property
    def rows(self) -> FloatArray:
        return np.asarray(self.counts.sum(axis=-1))

    @cached_property
    def columns(self) -> FloatArray:
        return np.asarray(self.counts.sum(axis=-2))

    @cached_property
    def has_constant(self) -> BoolArray:
        """Whether a rater makes the same one choice throughout."""
        n = self.n[..., None]
        return np.asarray(((self.rows == n) | (self.columns == n)).any(axis=-1))

    @cached_property
    def together(self) -> FloatArray:
        """How often each category was chosen by either."""
        return self.rows + self.columns

    @property
    def sides(self) -> "ContingencyTables":
        """The tables of the items on which both raters chose a side."""
        return ContingencyTables(self.counts[..., :SIDES, :SIDES])

    def in_order(self) -> "ContingencyTables":
        """The tables of ordered choices A – tie – B, both bad counted as a tie: … × 3 × 3."""
        return ContingencyTables(IN_ORDER @ self.counts @ IN_ORDER.T)


def contingency_tables(totals: FloatArray) -> ContingencyTables:
    """Tables from totals, row by row on the last axis: … × 16 → … × 4 × 4."""
    return ContingencyTables(totals.reshape(*totals.shape[:-1], CHOICES, CHOICES))


def raw_agreement(table: ContingencyTables) -> FloatArray:
    """The share of items on which both chose the same."""
    return np.asarray(table.agree / table.n)


def cohen_kappa(table: ContingencyTables) -> FloatArray:
    """Cohen's kappa (1960): (po − pe) ÷ (1 − pe), chance agreement from each rater's own choices."""
    by_chance = (table.rows * table.columns).sum(axis=-1)
    return np.asarray((table.n * table.agree - by_chance) / (table.n**2 - by_chance))


def cohen_kappa_unless_constant(table: ContingencyTables) -> FloatArray:
    """Cohen's kappa of two raters who both make more than one choice; NaN where either does not."""
    return np.where(table.has_constant, np.nan, cohen_kappa(table))


def weighted_kappa(table: ContingencyTables) -> FloatArray:
    """Cohen's weighted kappa (1968), linear weights: 1 − observed ÷ expected distance of ordered categories."""
    apart = category_distances(table.counts.shape[-1])
    expected = ((table.rows @ apart) * table.columns).sum(axis=-1)
    observed = table.n * (table.counts * apart).sum(axis=(-2, -1))
    return np.asarray((expected - observed) / expected)


def scott_pi(table: ContingencyTables) -> FloatArray:
    """Scott's pi (1955): (po − pe) ÷ (1 − pe), chance agreement from the choices of both together."""
    by_chance = (table.together**2).sum(axis=-1)
    return np.asarray((4 * table.n * table.agree - by_chance) / (4 * table.n**2 - by_chance))


def gwet_ac1(table: ContingencyTables, q: int) -> FloatArray:
    """Gwet's AC1 of two raters (2008): chance = Σ π(1 − π) ÷ (q − 1), q ≥ 2 the number of offered choices."""
    by_chance = gini_impurity(table) / (q - 1)
    return np.asarray((table.agree / table.n - by_chance) / (1 - by_chance))


def gwet_ac2(table: ContingencyTables, q: int) -> FloatArray:
    """AC1 with linear weights w = 1 − distance ÷ (q − 1) (Gwet 2014, chapter 3): chance = Σw · Σ π(1 − π) ÷ (q(q − 1)).

    Of q ≥ 2 categories in order. A table of more, in which nobody chose those between, counts as one of q.
    """
    size = table.counts.shape[-1]
    near = 1 - category_distances(size) / (size - 1)
    all_weights = float((1 - category_distances(q) / (q - 1)).sum())
    by_chance = gini_impurity(table) * all_weights / (q * (q - 1))
    return np.asarray(((table.counts * near).sum(axis=(-2, -1)) / table.n - by_chance) / (1 - by_chance))


def prevalence_index(table: ContingencyTables) -> FloatArray:
    """(a − d) ÷ n of a table of two by two: how unlike the two choices are in frequency (Byrt, Bishop, Carlin 1993)."""
    return np.asarray((table.counts[..., 0, 0] - table.counts[..., 1, 1]) / table.n)


def bias_index(table: ContingencyTables) -> FloatArray:
    """(b − c) ÷ n: how much more often the first makes the first choice than the second (Byrt, Bishop, Carlin 1993)."""
    return np.asarray((table.counts[..., 0, 1] - table.counts[..., 1, 0]) / table.n)


def gini_impurity(table: ContingencyTables) -> FloatArray:
    """Σ π(1 − π), where π is the share of a category in the choices of both raters."""
    prevalence = table.together / (2 * table.n)[..., None]
    return np.asarray((prevalence * (1 - prevalence)).sum(axis=-1))


def category_distances(size: int) -> FloatArray:
    """The number of steps between each two categories: size × size."""
    position = np.arange(float(size))
    return np.abs(position[:, None] - position)


def alpha_nominal(coincidences: FloatArray) -> FloatArray:
    """Krippendorff's alpha of unordered choices: … × k × k coincidences → …, NaN where all votes are for one choice."""
    of_choice = coincidences.sum(axis=-1)
    total = of_choice.sum(axis=-1)
    apart = total - np.trace(coincidences, axis1=-2, axis2=-1)
    expected = (total**2 - (of_choice**2).sum(axis=-1)) / (total - 1)
    return np.asarray(1 - apart / expected)


def alpha_ordinal(coincidences: FloatArray) -> FloatArray:
    """Krippendorff's alpha of ordered choices: … × k × k coincidences → ….

    The distance of two choices is the number of votes between them, each end counted half, squared.
    """
    of_choice = coincidences.sum(axis=-1)
    middle = np.cumsum(of_choice, axis=-1) - of_choice / 2
    apart = (middle[..., :, None] - middle[..., None, :]) ** 2
    total = of_choice.sum(axis=-1)
    observed = (coincidences * apart).sum(axis=(-2, -1))
    expected = (of_choice[..., :, None] * of_choice[..., None, :] * apart).sum(axis=(-2, -1)) / (total - 1)
    return np.asarray(1 - observed / expected)


ROUNDING: Final = 1e-9  # of the mean squares together


@dataclass(frozen=True)
class AnovaMeanSquares:
    """Mean squares between responses, between raters and residual; NaN below two responses or two raters."""

    responses: FloatArray
    raters: FloatArray
    rest: FloatArray


def anova_mean_squares(totals: FloatArray) -> AnovaMeanSquares:
    """From (…, 3 + k) totals: n, Σ of responses' sums squared, Σ of all squares, the sum of each of k raters."""
    n, of_responses, squares, of_raters = totals[..., 0], totals[..., 1], totals[..., 2], totals[..., 3:]
    k = of_raters.shape[-1]
    mean = of_raters.sum(axis=-1) ** 2 / (n * k)
    between_responses = of_responses / k - mean
    between_raters = (of_raters**2).sum(axis=-1) / n - mean
    # A sum of squares is never below 0, but rounding may bring it there.
    rest = np.maximum(squares - mean - between_responses - between_raters, 0.0)
    return AnovaMeanSquares(between_responses / (n - 1), between_raters / (k - 1), rest / ((n - 1) * (k - 1)))


def icc_agreement(totals: FloatArray) -> FloatArray:
    """ICC(2,1) of Shrout and Fleiss (1979), ICC(A,1) of McGraw and Wong (1996): a rater's leniency counts as error.

    (MSR − MSE) ÷ (MSR + (k − 1) MSE + k (MSC − MSE) ÷ n). ``totals``: as for `anova_mean_squares`, (…, 3 + k) → (…).
    """
    squares, k = anova_mean_squares(totals), totals.shape[-1] - 3
    lenient = k * (squares.raters - squares.rest) / totals[..., 0]
    return ratio_or_nan(squares.responses - squares.rest, squares.responses + (k - 1) * squares.rest + lenient, squares)


def icc_consistency(totals: FloatArray) -> FloatArray:
    """ICC(3,1) of Shrout and Fleiss (1979), ICC(C,1): (MSR − MSE) ÷ (MSR + (k − 1) MSE), without raters' leniency.

    ``totals``: as for `anova_mean_squares`, (…, 3 + k) → (…).
    """
    squares, k = anova_mean_squares(totals), totals.shape[-1] - 3
    return ratio_or_nan(squares.responses - squares.rest, squares.responses + (k - 1) * squares.rest, squares)


def ratio_or_nan(part: FloatArray, whole: FloatArray, of: AnovaMeanSquares) -> FloatArray:
    """A ratio, or NaN where ``whole`` is 0 up to rounding, as with two raters who swap two scores."""
    scale = of.responses + of.raters + of.rest
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(whole > ROUNDING * scale, part / whole, np.nan)


def icc_totals(value: FloatArray, clusters: Clusters) -> ClusterSums:
    """The totals that `anova_mean_squares` takes, by cluster. ``value``: raters × responses, best centred."""
    return sum_by_cluster(clusters, value.sum(axis=0) ** 2, (value**2).sum(axis=0), *value)
