"""How the odds of being chosen grow with the length of a response."""

from typing import Final

import numpy as np

from evaluations.stats.bias.strata import Strata, number_keys
from evaluations.stats.bias.stratified_shares import linearised_interval
from evaluations.stats.bias.traits import LengthTraits
from evaluations.stats.cluster_totals import effective_cluster_count
from evaluations.stats.coding import MISSING, A, BoolArray, FloatArray, IntArray, Sides
from evaluations.stats.confidence_intervals import (
    MIN_CLUSTERS,
    MIN_DISAGREEING,
    UNBOUNDED,
    why_counts_withhold_interval,
)
from evaluations.stats.estimates import Estimate, undefined_estimate
from evaluations.stats.logistic import cluster_scores, firth_logistic, robust_covariance

NO_CHOICE: Final = "No side was preferred between responses of different lengths."
NO_SLOPE: Final = "The slope cannot be estimated from these response lengths."


def length_slope(lengths: LengthTraits, strata: Strata, item: IntArray, side: Sides) -> Estimate:
    """b in log odds(A is chosen) = a + b · log(length of A ÷ length of B), by Firth's penalised logistic regression.

    ``item`` and ``side``: of each choice; ``strata``: one stratum with their clusters. A length is characters + 1; the
    intercept a absorbs preferences for A that do not depend on length. The interval is cluster-robust, with t.
    """
    unequal = lengths.longer[item] != MISSING
    if not unequal.any():
        return undefined_estimate(NO_CHOICE)
    item, side = item[unequal], side[unequal]
    row, won = lengths.ratio[item], side == A
    design = np.column_stack([np.ones(len(lengths.log_ratios)), lengths.log_ratios])
    fit = firth_logistic(design, count_per_row(row[won], design), count_per_row(row, design))
    if not fit.converged:
        return undefined_estimate(NO_SLOPE, len(item))
    number = Estimate(float(fit.coefficients[1]), len(item))
    clusters, cluster = number_keys(strata.group[unequal], int(strata.starts[-1]))
    if why := explain_slope_withheld(cluster, side == lengths.longer[item], len(clusters)):
        return number.without_interval(why)
    scores = cluster_scores(fit, design, row, won.astype(np.float64), cluster)
    return linearised_interval(number, len(clusters), float(robust_covariance(fit, scores)[1, 1]), UNBOUNDED)


def count_per_row(row: IntArray, design: FloatArray) -> FloatArray:
    return np.bincount(row, minlength=len(design)).astype(np.float64)


def explain_slope_withheld(cluster: IntArray, chose_longer: BoolArray, clusters: int) -> str | None:
    """Why the slope has no interval: too few clusters, or lengths that all but determine the choices; else None."""
    effective = effective_cluster_count(np.bincount(cluster).astype(np.float64))
    if effective < MIN_CLUSTERS:
        return why_counts_withhold_interval(effective, MIN_DISAGREEING, clusters=clusters)
    for what, chose in (("longer", chose_longer), ("shorter", ~chose_longer)):
        count = int(np.count_nonzero(np.bincount(cluster[chose], minlength=1)))
        if count < MIN_DISAGREEING:
            return f"The {what} response wins in only {count:,} clusters: length almost determines the choice."
    return None
