"""Numbers of two sides' scores as functions of their totals: (…, cells) → (…)."""

from typing import Final

import numpy as np

from evaluations.stats.cluster_sums import Clusters, ClusterSums, cluster_sums
from evaluations.stats.coding import BoolArray
from evaluations.stats.contributions import FloatArray
from evaluations.stats.icc import icc_agreement, icc_consistency
from evaluations.stats.intervals import Statistic

# The cells of two sides x and y. The first five are those of `icc.mean_squares`.
N, SUMMED_SQUARED, SQUARES, X, Y, SQUARES_OF_X, DIFFERENCE, DIFFERENCE_SQUARED = range(8)
OF_VARIANCE: Final = slice(N, Y + 1)
DIFFERS: Final[BoolArray] = np.arange(DIFFERENCE_SQUARED + 1) == DIFFERENCE


def score_sums(x: FloatArray, y: FloatArray, clusters: Clusters) -> ClusterSums:
    """Best of scores that are centred and of about unit size, so that no total dwarfs another."""
    return cluster_sums(clusters, (x + y) ** 2, x**2 + y**2, x, y, x**2, np.abs(x - y), (x - y) ** 2)


def pearson(totals: FloatArray) -> FloatArray:
    """Pearson's product-moment correlation (1896)."""
    n, x, y = totals[..., N], totals[..., X], totals[..., Y]
    of_x = totals[..., SQUARES_OF_X] - x**2 / n
    of_y = totals[..., SQUARES] - totals[..., SQUARES_OF_X] - y**2 / n
    of_both = (totals[..., SUMMED_SQUARED] - totals[..., SQUARES]) / 2 - x * y / n
    return np.asarray(of_both / np.sqrt(of_x * of_y))


def of_variance(icc: Statistic) -> Statistic:
    return lambda totals: icc(totals[..., OF_VARIANCE])


def alpha_of_two(totals: FloatArray) -> FloatArray:
    """Krippendorff's alpha (2004), interval, of two raters without gaps."""
    values, summed = 2 * totals[..., N], totals[..., X] + totals[..., Y]
    expected = values * totals[..., SQUARES] - summed**2
    return np.asarray(1 - (values - 1) * totals[..., DIFFERENCE_SQUARED] / expected)


def mean_difference(totals: FloatArray) -> FloatArray:
    return np.asarray((totals[..., X] - totals[..., Y]) / totals[..., N])


def mean_absolute_difference(totals: FloatArray) -> FloatArray:
    return np.asarray(totals[..., DIFFERENCE] / totals[..., N])


def mean_squared_difference(totals: FloatArray) -> FloatArray:
    return np.asarray(totals[..., DIFFERENCE_SQUARED] / totals[..., N])


OF_TWO_ICC_AGREEMENT: Final = of_variance(icc_agreement)
OF_TWO_ICC_CONSISTENCY: Final = of_variance(icc_consistency)
