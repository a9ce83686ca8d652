"""Intraclass correlations of single scores, from a two-way analysis of variance: responses × raters, none missing."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.stats.cluster_sums import Clusters, ClusterSums, cluster_sums
from evaluations.stats.contributions import FloatArray

ROUNDING: Final = 1e-9  # of the mean squares together


@dataclass(frozen=True)
class MeanSquares:
    """Between responses, between raters, and what is left; NaN below two responses or two raters."""

    responses: FloatArray
    raters: FloatArray
    rest: FloatArray


def mean_squares(totals: FloatArray) -> MeanSquares:
    """From (…, 3 + k) totals: n, Σ of responses' sums squared, Σ of all squares, the sum of each of k raters."""
    n, of_responses, squares, of_raters = totals[..., 0], totals[..., 1], totals[..., 2], totals[..., 3:]
    k = of_raters.shape[-1]
    mean = of_raters.sum(axis=-1) ** 2 / (n * k)
    between_responses = of_responses / k - mean
    between_raters = (of_raters**2).sum(axis=-1) / n - mean
    # A sum of squares is never below 0, but rounding may bring it there.
    rest = np.maximum(squares - mean - between_responses - between_raters, 0.0)
    return MeanSquares(between_responses / (n - 1), between_raters / (k - 1), rest / ((n - 1) * (k - 1)))


def icc_agreement(totals: FloatArray) -> FloatArray:
    """ICC(2,1) of Shrout and Fleiss (1979), ICC(A,1) of McGraw and Wong (1996): a rater's leniency counts as error.

    (MSR − MSE) ÷ (MSR + (k − 1) MSE + k (MSC − MSE) ÷ n). Totals as for `mean_squares`.
    """
    found, k = mean_squares(totals), totals.shape[-1] - 3
    lenient = k * (found.raters - found.rest) / totals[..., 0]
    return share(found.responses - found.rest, found.responses + (k - 1) * found.rest + lenient, found)


def icc_consistency(totals: FloatArray) -> FloatArray:
    """ICC(3,1), ICC(C,1): the same with raters' leniency taken out. (MSR − MSE) ÷ (MSR + (k − 1) MSE)."""
    found, k = mean_squares(totals), totals.shape[-1] - 3
    return share(found.responses - found.rest, found.responses + (k - 1) * found.rest, found)


def share(part: FloatArray, whole: FloatArray, of: MeanSquares) -> FloatArray:
    """NaN where ``whole`` is 0 but for rounding: two raters who give two responses the same two scores crosswise."""
    scale = of.responses + of.raters + of.rest
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(whole > ROUNDING * scale, part / whole, np.nan)


def icc_sums(value: FloatArray, clusters: Clusters) -> ClusterSums:
    """What `mean_squares` reads, by cluster. ``value``: raters × responses, best centred."""
    return cluster_sums(clusters, value.sum(axis=0) ** 2, (value**2).sum(axis=0), *value)
