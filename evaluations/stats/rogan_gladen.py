"""A pass rate corrected for a judge's known errors (Rogan and Gladen 1978).

    θ = (p + TNR − 1) ÷ (TPR + TNR − 1),

p the judge's pass rate over all responses, TPR and TNR the shares of the passing and of the failing responses, by
reviewers, on which the judge agrees. As the interval of Lang and Reiczigel (2014), which Lee, Zeng, Lee and Sohn (2025)
recommend for LLM judges, ours has the uncertainty of p, TPR and TNR, and counts one more response of each class that
the judge gets right, and one that it gets wrong. Ours is Fieller's (1954) for the ratio, with the covariance of all
three by cluster: reviewed responses are part of all, and responses to one query are alike. From p the difference is
taken that responses make on which reviewers are evenly split, as far as they are known.
"""

from dataclasses import dataclass
from math import sqrt
from typing import Final

import numpy as np

from evaluations.stats.cluster_totals import number_clusters
from evaluations.stats.coding import BoolArray, FloatArray, IntArray
from evaluations.stats.confidence_intervals import ONE_CLUSTER, bessel_factor
from evaluations.stats.estimates import Estimate, undefined_estimate
from evaluations.stats.significance import t_975

ONE_CLASS: Final = "Reviewers gave every response the same result, so TPR or TNR is undefined."
NOT_INFORMATIVE: Final = (
    "TPR + TNR − 1 is not shown to be above 0: the judge may not tell passing from failing responses."
)
# Of p, TPR and TNR, the slopes of numerator and denominator.
NUMERATOR: Final = np.array([1.0, 0.0, 1.0])
DENOMINATOR: Final = np.array([0.0, 1.0, 1.0])


@dataclass(frozen=True)
class JudgedPasses:
    """One entry for each response that the judge scored: 1 for a pass, 0 for none.

    ``reference``: from reviewers, NaN where they gave none, or are evenly ``split``. ``cluster``: of each.
    """

    judge: FloatArray
    reference: FloatArray
    cluster: IntArray
    split: BoolArray | None = None


@dataclass(frozen=True)
class ErrorRates:
    """p, TPR and TNR with their covariance by cluster, one right and one wrong response added to each class."""

    rates: FloatArray
    covariance: FloatArray
    clusters: int

    def variance(self, slopes: FloatArray) -> float:
        return float(slopes @ self.covariance @ slopes)


def error_rates(passes: JudgedPasses, added: int = 1) -> ErrorRates:
    """``added``: how many right and as many wrong responses are added to each class, each a cluster of its own."""
    judge, shared = passes.judge, ~np.isnan(passes.reference)
    positive, negative = passes.reference == 1, passes.reference == 0
    p, of_p = judge_pass_rate(passes)
    rates, influences, extra = [p], [of_p], [0.0]
    for members, right in ((positive, judge), (negative, 1 - judge)):
        size = members.sum() + 2 * added
        rate = float((right[members].sum() + added) / size)
        rates.append(rate)
        influences.append(members * (right - rate) / size)
        extra.append(added * ((1 - rate) ** 2 + rate**2) / size**2)
    clusters = number_clusters(passes.cluster)
    totals = np.stack([clusters.total(influence) for influence in influences])
    reviewed = len(np.unique(passes.cluster[shared]))
    covariance = (totals @ totals.T + np.diag(extra)) * bessel_factor(reviewed)
    return ErrorRates(np.array(rates), covariance, reviewed)


def judge_pass_rate(passes: JudgedPasses) -> tuple[float, FloatArray]:
    """p, and each response's influence on it."""
    judge, shared = passes.judge, ~np.isnan(passes.reference)
    seen = shared if passes.split is None else shared | passes.split
    rate, influence = judge.mean(), (judge - judge.mean()) / len(judge)
    for members, sign in ((shared, 1), (seen, -1)):
        mean = judge[members].mean()
        rate, influence = rate + sign * mean, influence + sign * members * (judge - mean) / members.sum()
    return float(rate), influence


def rogan_gladen(passes: JudgedPasses) -> Estimate:
    """The corrected pass rate, cut off at 0 and 1; n counts the reviewed responses.

    Undefined without reviewed responses of both classes, and where TPR + TNR − 1 is not shown to be above 0.
    """
    n = int(np.count_nonzero(~np.isnan(passes.reference)))
    if not (passes.reference == 1).any() or not (passes.reference == 0).any():
        return undefined_estimate(ONE_CLASS, n)
    adjusted = error_rates(passes)
    if adjusted.clusters < 2:
        return undefined_estimate(ONE_CLUSTER, n)
    bounds = fieller_bounds(adjusted, t_975(adjusted.clusters - 1))
    if bounds is None:
        return undefined_estimate(NOT_INFORMATIVE, n)
    p, sensitivity, specificity = error_rates(passes, added=0).rates.tolist()
    value = (p + specificity - 1) / (sensitivity + specificity - 1)
    low, high = (min(max(bound, 0.0), 1.0) for bound in (min(bounds[0], value), max(bounds[1], value)))
    rule = f"Fieller with the errors of TPR and TNR over {adjusted.clusters:,} clusters"
    return Estimate(min(max(value, 0.0), 1.0), n).with_interval(low, high, rule)


def fieller_bounds(rates: ErrorRates, t: float) -> tuple[float, float] | None:
    """The ends of {θ: (N − θ D)² ≤ t² Var(N − θ D)}; None where D is not above 0 by t standard errors."""
    slopes = NUMERATOR, DENOMINATOR
    numerator, denominator = (
        float(slope @ rates.rates) + offset for slope, offset in zip(slopes, (-1, -1), strict=True)
    )
    aa, cc = (rates.variance(slope) for slope in slopes)
    bb = float(NUMERATOR @ rates.covariance @ DENOMINATOR)
    quadratic = denominator**2 - t**2 * cc
    if denominator <= 0 or quadratic <= 0:
        return None
    middle, constant = numerator * denominator - t**2 * bb, numerator**2 - t**2 * aa
    root = sqrt(max(middle**2 - quadratic * constant, 0.0))
    return (middle - root) / quadratic, (middle + root) / quadratic
