"""Coefficients of agreement of two raters, as functions of the square table of what they chose on the same items.

``counts[…, i, j]`` counts the items on which the first chose i and the second j; a function gives one number for
each table, NaN where it is undefined. Counts stay whole until the last division, so that perfect agreement comes
out as exactly 1 and chance as exactly 0.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from evaluations.stats.coding import BoolArray
from evaluations.stats.contributions import FloatArray

SIDES: Final = 2  # the first categories

# A – tie – B: both bad stands with tie between the sides.
IN_ORDER: FloatArray = np.array([[1.0, 0, 0, 0], [0, 0, 1, 1], [0, 1, 0, 0]])


@dataclass(frozen=True)
class Tables:
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
    def sides(self) -> "Tables":
        """The same where both chose a side."""
        return Tables(self.counts[..., :SIDES, :SIDES])

    def in_order(self) -> "Tables":
        """The same on A – tie – B."""
        return Tables(IN_ORDER @ self.counts @ IN_ORDER.T)


def raw_agreement(table: Tables) -> FloatArray:
    """The share of items on which both chose the same."""
    return np.asarray(table.agree / table.n)


def cohen_kappa(table: Tables) -> FloatArray:
    """(po − pe) ÷ (1 − pe), chance from each rater's own choices (Cohen 1960)."""
    by_chance = (table.rows * table.columns).sum(axis=-1)
    return np.asarray((table.n * table.agree - by_chance) / (table.n**2 - by_chance))


def kappa_of_varying(table: Tables) -> FloatArray:
    """Cohen's kappa of two raters who both make more than one choice; NaN where either does not."""
    return np.where(table.has_constant, np.nan, cohen_kappa(table))


def weighted_kappa(table: Tables) -> FloatArray:
    """1 − observed ÷ expected distance, categories in order and one step apart each (Cohen 1968, linear weights)."""
    apart = distances(table.counts.shape[-1])
    expected = ((table.rows @ apart) * table.columns).sum(axis=-1)
    observed = table.n * (table.counts * apart).sum(axis=(-2, -1))
    return np.asarray((expected - observed) / expected)


def scott_pi(table: Tables) -> FloatArray:
    """(po − pe) ÷ (1 − pe), chance from the choices of both together (Scott 1955)."""
    by_chance = (table.together**2).sum(axis=-1)
    return np.asarray((4 * table.n * table.agree - by_chance) / (4 * table.n**2 - by_chance))


def gwet_ac1(table: Tables, q: int) -> FloatArray:
    """Gwet's AC1 of two raters (Gwet 2008): chance = Σ π(1 − π) ÷ (q − 1), q ≥ 2 the choices on offer."""
    by_chance = uncertainty(table) / (q - 1)
    return np.asarray((table.agree / table.n - by_chance) / (1 - by_chance))


def gwet_ac2(table: Tables, q: int) -> FloatArray:
    """AC1 with linear weights w = 1 − distance ÷ (q − 1) (Gwet 2014, chapter 3): chance = Σw · Σ π(1 − π) ÷ (q(q − 1)).

    Of q ≥ 2 categories in order. A table of more, in which nobody chose those between, counts as one of q.
    """
    size = table.counts.shape[-1]
    near = 1 - distances(size) / (size - 1)
    all_weights = float((1 - distances(q) / (q - 1)).sum())
    by_chance = uncertainty(table) * all_weights / (q * (q - 1))
    return np.asarray(((table.counts * near).sum(axis=(-2, -1)) / table.n - by_chance) / (1 - by_chance))


def prevalence_index(table: Tables) -> FloatArray:
    """(a − d) ÷ n of a table of two by two: how unlike the two choices are in frequency (Byrt, Bishop, Carlin 1993)."""
    return np.asarray((table.counts[..., 0, 0] - table.counts[..., 1, 1]) / table.n)


def bias_index(table: Tables) -> FloatArray:
    """(b − c) ÷ n: how much more often the first makes the first choice than the second (Byrt, Bishop, Carlin 1993)."""
    return np.asarray((table.counts[..., 0, 1] - table.counts[..., 1, 0]) / table.n)


def uncertainty(table: Tables) -> FloatArray:
    """Σ π(1 − π), π how often a category was chosen by both together."""
    prevalence = table.together / (2 * table.n)[..., None]
    return np.asarray((prevalence * (1 - prevalence)).sum(axis=-1))


def distances(size: int) -> FloatArray:
    """How many steps each category is from each: size × size."""
    place = np.arange(float(size))
    return np.abs(place[:, None] - place)
