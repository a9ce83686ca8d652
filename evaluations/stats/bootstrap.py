"""A seeded cluster bootstrap with bias-corrected and accelerated (BCa) bounds."""

from functools import lru_cache
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt

from evaluations.stats.coding import FloatArray
from evaluations.stats.distributions import t_975

SEED: Final = 95
RESAMPLES: Final = 2_000
CLUSTERS_PER_CHUNK: Final = 250
MAX_COUNTED: Final = 2**20  # in a sample; a resample that drew the largest clusters alone stays below 2**24
NORMAL: Final = NormalDist()


@lru_cache(maxsize=8)
def poisson_draws(part: int) -> npt.NDArray[np.uint8]:
    """How often each of CLUSTERS_PER_CHUNK clusters is drawn in each resample, by Poisson: clusters × RESAMPLES."""
    rng = np.random.default_rng([SEED, part])
    return rng.poisson(1, size=(CLUSTERS_PER_CHUNK, RESAMPLES)).astype(np.uint8)


def resample_totals(by_cluster: FloatArray, *, whole: bool = False) -> FloatArray:
    """Totals of RESAMPLES resamples of clusters: RESAMPLES × cells, each cell contiguous in memory.

    Each takes every cluster a number of times that is Poisson with mean 1, independent of the others (Hanley and
    MacGibbon 2006). The number of clusters in a resample then varies, on which no share or coefficient depends, and the
    same draws serve for any number of clusters. ``whole``: whether totals are counts, which float32 holds exactly.
    """
    kind: type[np.floating] = np.float32 if whole and by_cluster.sum() < MAX_COUNTED else np.float64
    totals = np.zeros((by_cluster.shape[1], RESAMPLES))
    for part, first in enumerate(range(0, len(by_cluster), CLUSTERS_PER_CHUNK)):
        some = by_cluster[first : first + CLUSTERS_PER_CHUNK].astype(kind)
        totals += some.T @ poisson_draws(part)[: len(some)].astype(kind)
    return totals.T


def bca_bounds(ordered: FloatArray, observed: float, skewness: float, clusters: int) -> tuple[float, float]:
    """The 95% bounds, bias-corrected and accelerated (Efron 1987), from sorted resampled numbers.

    ``observed``: the number itself. ``skewness``: its acceleration. ``clusters``: the effective number of clusters.
    Plain quantiles are too narrow for few clusters, having normal tails in place of those of t (Hesterberg 2015), and
    miss a number that cannot exceed 1 mostly on one side: at 60 clusters and agreement .92 they cover 92.4 %, these
    94.8 %.
    """
    below = (np.searchsorted(ordered, observed) + np.searchsorted(ordered, observed, side="right")) / (2 * len(ordered))
    bias = NORMAL.inv_cdf(min(max(float(below), 1 / len(ordered)), 1 - 1 / len(ordered)))
    z = t_975(clusters - 1)
    low, high = (NORMAL.cdf(bias + at / (1 - skewness * at)) for at in (bias - z, bias + z))
    return interpolated_quantile(ordered, low), interpolated_quantile(ordered, high)


def bca_accelerations(influences: FloatArray) -> FloatArray:
    """A sixth of the skewness of the sum over clusters, between −1/6 and 1/6; 0 where nothing varies.

    ``influences``: numbers × clusters, what each cluster adds to each number, around 0.
    """
    squares = influences * influences
    spread = squares.sum(axis=1) ** 1.5
    cubes = (squares * influences).sum(axis=1)
    return np.asarray(np.divide(cubes, 6 * spread, out=np.zeros_like(cubes), where=spread > 0))


def interpolated_quantile(ordered: FloatArray, level: float) -> float:
    """A quantile, interpolated linearly between the two nearest values."""
    position = level * (len(ordered) - 1)
    lower = int(position)
    upper = min(lower + 1, len(ordered) - 1)
    return float(ordered[lower] + (position - lower) * (ordered[upper] - ordered[lower]))
