"""The chance of each comparison or response to be reviewed, from how much of its stratum is (docs/decisions/0013).

Queues draw from every stratum in one random order, so that all that counts of a stratum is a simple random sample of
it. Imported votes and scores are assumed to be one, too.
"""

from typing import Final

import numpy as np

from evaluations.stats.coding import BoolArray, FloatArray, IntArray

SEED: Final = 13


def inclusion_probabilities(stratum: IntArray, counted: BoolArray) -> FloatArray:
    """π of each unit: the share of its stratum that counts. All 1 where there is a single stratum, numbered 0."""
    if not stratum.any():
        return np.ones(len(stratum))
    size = np.bincount(stratum)
    return np.asarray((np.bincount(stratum[counted], minlength=len(size)) / np.maximum(size, 1))[stratum])


def response_strata(stratum: IntArray, a: IntArray, b: IntArray, responses: int) -> IntArray:
    """Strata of responses: those whose comparisons are in the same strata, equally often, have the same chance.

    ``stratum``, ``a`` and ``b``: of each comparison its stratum and the places of its two responses among so many.
    """
    if not stratum.any():
        return np.zeros(responses, dtype=np.int64)
    # Sums of random numbers of 64 bits, one for each stratum, tell collections of strata apart.
    numbers = np.random.default_rng(SEED).integers(2**64, size=int(stratum.max()) + 1, dtype=np.uint64)
    sums = np.zeros(responses, dtype=np.uint64)
    for side in (a, b):
        np.add.at(sums, side, numbers[stratum])
    return np.unique(sums, return_inverse=True)[1]
