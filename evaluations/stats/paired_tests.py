"""Tests of two judges on the same items: is one of them right more often than chance would have it?"""

from math import exp, isqrt, lgamma, log
from typing import Final

import numpy as np

from evaluations.stats.coding import IntArray

SEED: Final = 95
FLIPS: Final = 20_000
ONE_BY_ONE: Final = 500  # up to here it is quicker to toss a coin for each cluster than to draw how many are flipped
AT_ONCE: Final = 8  # clusters, whose signs are the bits of one random byte
SIGNS: Final[IntArray] = 1 - 2 * (np.arange(2**AT_ONCE)[:, None] >> np.arange(AT_ONCE) & 1)


def mcnemar(only_first: int, only_second: int) -> float:
    """Exact two-sided p: under H0 each discordant item is the toss of a fair coin (McNemar 1947).

    Only where items are independent of each other. It is 1 where there are as many on either side, or none.
    """
    fewer, n = min(only_first, only_second), only_first + only_second
    if 2 * fewer == n:
        return 1.0
    # P(X ≤ k) = P(X = k) · (1 + k/(n−k+1) + k(k−1)/((n−k+1)(n−k+2)) + …); after √n · 10 terms nothing is added.
    at_fewer = exp(lgamma(n + 1) - lgamma(fewer + 1) - lgamma(n - fewer + 1) - n * log(2))
    down = np.arange(min(fewer, 10 * isqrt(n) + 10))
    below = np.cumprod((fewer - down) / (n - fewer + 1 + down)).sum()
    return min(1.0, 2 * at_fewer * (1 + float(below)))


def sign_flip(difference: IntArray) -> float:
    """Two-sided p of a sum of differences, one whole number for each cluster.

    Under H0 either judge might as well be the one ahead in a cluster. So the sign of every cluster's difference is
    drawn anew FLIPS times: p = (b + 1) ÷ (FLIPS + 1), b of the sums as far from 0 (Phipson and Smyth 2010). Clusters
    of the same size of difference are alike, and where there are many it is drawn how many of them turn out positive.
    """
    rng = np.random.default_rng(SEED)
    size = np.abs(difference)
    clusters = np.bincount(size)
    drawn = np.zeros(FLIPS, dtype=np.int64)
    for one in np.flatnonzero(clusters[1:] > ONE_BY_ONE) + 1:
        drawn += one * (2 * rng.binomial(clusters[one], 0.5, FLIPS) - clusters[one])
    drawn += one_by_one(size[(size > 0) & (clusters[size] <= ONE_BY_ONE)], rng)
    as_far = int((np.abs(drawn) >= abs(int(difference.sum()))).sum())
    return (as_far + 1) / (FLIPS + 1)


def one_by_one(size: IntArray, rng: np.random.Generator) -> IntArray:
    """FLIPS sums of these sizes, each with a sign of its own."""
    drawn = np.zeros(FLIPS, dtype=np.int64)
    for first in range(0, len(size), AT_ONCE):
        few = size[first : first + AT_ONCE]
        sums = SIGNS[:, : len(few)] @ few
        drawn += sums[rng.integers(len(sums), size=FLIPS, dtype=np.uint8)]
    return drawn
