"""One-sided t tests of each person left out: is a judge's advantage more than ε short of that person's?"""

from dataclasses import dataclass
from math import nan, sqrt
from typing import Final

import numpy as np

from evaluations.stats.advantage import Advantage
from evaluations.stats.coding import IntArray
from evaluations.stats.contributions import FloatArray
from evaluations.stats.distributions import t_upper_tail

LEAST_VALUES: Final = 10  # below, a t of means of clusters leans on a bell shape that nobody has seen
NO_VARIANCE: Final = 1e-12  # as a share of the sum of squares: what rounding leaves of none
DIGITS: Final = 9


@dataclass(frozen=True)
class Differences:
    """Human less judge advantage: of each person how many values, their sum, and the sum of their squares."""

    n: IntArray
    total: FloatArray
    squares: FloatArray

    def p_values(self, epsilon: float) -> FloatArray:
        """Of H0: the mean is ε or more. NaN below LEAST_VALUES."""
        found = zip(self.n.tolist(), self.total.tolist(), self.squares.tolist(), strict=True)
        return np.array([p_below(epsilon, *one) for one in found])


def p_below(epsilon: float, n: int, total: float, squares: float) -> float:
    """P(T ≤ t), t = (mean − ε) ÷ standard error; without variance 0 where the mean is below ε, else 1."""
    if n < LEAST_VALUES:
        return nan
    mean, around = total / n, squares - total * total / n
    if around <= NO_VARIANCE * squares:
        return 0.0 if round(mean, DIGITS) < epsilon else 1.0
    return t_upper_tail((epsilon - mean) / sqrt(around / (n - 1) / n), n - 1)


def by_item(found: Advantage, people: int) -> Differences:
    return of_values(found.rater, found.human.astype(np.float64) - found.judge, people)


def by_cluster(found: Advantage, people: int) -> Differences:
    """Of the mean in each cluster that a person has items in, however many they are."""
    clusters = int(found.cluster.max(initial=0)) + 1
    # Each cell of person and cluster is sorted along with its difference, as 0, 1 or 2: quicker than sorting places.
    keys = (found.rater * clusters + found.cluster) * 3 + 1 + found.human - found.judge
    cell, difference = np.divmod(np.sort(keys), 3)
    starts = np.flatnonzero(np.diff(cell, prepend=-1))
    means = np.add.reduceat(difference - 1.0, starts) / np.diff(starts, append=len(cell))
    return of_values(cell[starts] // clusters, means, people)


def of_values(person: IntArray, value: FloatArray, people: int) -> Differences:
    return Differences(
        n=np.bincount(person, minlength=people),
        total=np.bincount(person, value, people).astype(np.float64),
        squares=np.bincount(person, value * value, people).astype(np.float64),
    )
