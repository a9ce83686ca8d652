"""Student's t without scipy, and p values adjusted for several tests."""

from functools import lru_cache
from math import exp, isinf, lgamma, log
from statistics import NormalDist
from typing import Final

import numpy as np

from evaluations.stats.coding import FloatArray, IntArray

TINY: Final = 1e-300
PRECISE: Final = 1e-14
MAX_STEPS: Final = 400
Z_975: Final = NormalDist().inv_cdf(0.975)
EXPANDED_FROM: Final = 30  # degrees of freedom
EXACTLY_EXPANDED_FROM: Final = 1_000  # there the expansion is exact to 1e-9 for p from 1e-5 to 1 − 1e-5


def t_upper_tail(t: float, degrees: float) -> float:
    """P(T ≥ t) for Student's t with that many degrees of freedom."""
    if isinf(t):
        return 0.0 if t > 0 else 1.0
    tail = 0.5 * regularised_incomplete_beta(degrees / 2, 0.5, degrees / (degrees + t * t))
    return tail if t >= 0 else 1 - tail


def t_quantile(p: float, degrees: float) -> float:
    """The quantile p of the t distribution, exact to 1e-9. ``p``: strictly between 0 and 1.

    By bisection, which takes milliseconds; with many degrees of freedom by its expansion.
    """
    if not 0 < p < 1:
        raise ValueError(f"p must lie between 0 and 1, not {p}")
    if degrees >= EXACTLY_EXPANDED_FROM:
        return t_quantile_by_expansion(NormalDist().inv_cdf(p), degrees)
    low, high = -1.0, 1.0
    while t_upper_tail(low, degrees) < 1 - p:
        low *= 2
    while t_upper_tail(high, degrees) > 1 - p:
        high *= 2
    while high - low > 1e-12 * max(1.0, abs(high)):
        middle = (low + high) / 2
        low, high = (middle, high) if t_upper_tail(middle, degrees) > 1 - p else (low, middle)
    return (low + high) / 2


@lru_cache(maxsize=1_024)
def t_975(degrees: int) -> float:
    """The 97.5 % quantile of t, cached because a report needs it hundreds of times."""
    return t_quantile(0.975, degrees) if degrees < EXPANDED_FROM else t_quantile_by_expansion(Z_975, degrees)


def t_quantile_by_expansion(z: float, degrees: float) -> float:
    """The t with the tail that z has of the normal, by its expansion (A&S 26.7.5): to seven digits at z = 1.96."""
    terms = (
        (z**3 + z) / 4,
        (5 * z**5 + 16 * z**3 + 3 * z) / 96,
        (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384,
        (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / 92_160,
    )
    return z + sum(term / float(degrees) ** power for power, term in enumerate(terms, 1))


def regularised_incomplete_beta(a: float, b: float, x: float) -> float:
    """The regularised I_x(a, b), by Lentz's continued fraction (DLMF 8.17.22)."""
    if x <= 0:
        return 0.0
    if x >= 1:
        return 1.0
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(1 - x))
    if x < (a + 1) / (a + b + 2):
        return front * continued_fraction(a, b, x) / a
    return 1 - front * continued_fraction(b, a, 1 - x) / b


def continued_fraction(a: float, b: float, x: float) -> float:
    c, d = 1.0, 1 / keep_from_zero(1 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, MAX_STEPS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / keep_from_zero(1 + term * d)
            c = keep_from_zero(1 + term / c)
            value *= c * d
        if abs(c * d - 1) < PRECISE:
            return value
    return value


def keep_from_zero(value: float) -> float:
    return value if abs(value) > TINY else TINY


def holm_adjust(p: FloatArray) -> FloatArray:
    """Adjusted p values that control the family-wise error rate (Holm 1979), in the order of ``p``.

    The i-th smallest of m is multiplied by m − i + 1, and is never below one that is smaller.
    """
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    return restore_order(np.minimum(stepped, 1.0), order)


def benjamini_yekutieli_adjust(p: FloatArray) -> FloatArray:
    """Adjusted p values that control the false discovery rate under any dependence (2001).

    The i-th smallest of m is multiplied by (1 + 1/2 + … + 1/m) · m ÷ i, and is never above one that is larger.
    """
    order = np.argsort(p, kind="stable")
    ranks = np.arange(1, len(p) + 1)
    stretched = p[order] * float((1 / ranks).sum()) * len(p) / ranks
    stepped = np.minimum.accumulate(stretched[::-1])[::-1]
    return restore_order(np.minimum(stepped, 1.0), order)


def restore_order(values: FloatArray, order: IntArray) -> FloatArray:
    restored = np.empty(len(values))
    restored[order] = values
    return restored
