"""A pass rate corrected for a judge's known errors (Rogan and Gladen 1978).

    θ = (p + TNR − 1) ÷ (TPR + TNR − 1),

p the judge's pass rate over all responses, TPR and TNR the shares of the passing and of the failing responses, by
reviewers, on which the judge agrees. As the interval of Lang and Reiczigel (2014), which Lee, Zeng, Lee and Sohn (2025)
recommend for LLM judges, ours has the uncertainty of p, TPR and TNR, and counts one more response of each class that
the judge gets right, and one that it gets wrong. Ours is Fieller's (1954) for the ratio, with the covariance of all
three by cluster: reviewed responses are part of all, and responses to one query are alike. From p the difference is
taken that responses make on which reviewers are evenly split, as far as they are known. Reviewed responses have the
weight 1/π (`post_stratification`); within a class weights have the mean 1.
"""

from dataclasses import dataclass
from functools import cached_property
from math import isnan
from typing import Final

import numpy as np

from evaluations.stats.coding import BoolArray, FloatArray, IntArray
from evaluations.stats.confidence_intervals import ONE_CLUSTER
from evaluations.stats.estimates import Estimate, undefined_estimate
from evaluations.stats.grouped_shares import GroupedEntries, group_entries
from evaluations.stats.mean_influences import ReviewedResponses, find_reviewed
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
    """Responses in groups with a rate each: 1 for a pass, 0 for none, NaN where the judge has no result.

    ``reference``: from reviewers, NaN where they gave none, or are evenly ``split``. ``cluster`` and ``stratum``: of
    each; None for a single stratum. ``group``: of each, a number below ``groups``; None for a single group.
    """

    judge: FloatArray
    reference: FloatArray
    cluster: IntArray
    split: BoolArray | None = None
    stratum: IntArray | None = None
    group: IntArray | None = None
    groups: int = 1

    @cached_property
    def entries(self) -> GroupedEntries:
        group = np.zeros(len(self.judge), dtype=np.int64) if self.group is None else self.group
        return group_entries(group, self.groups, self.cluster)

    @cached_property
    def reviewed(self) -> ReviewedResponses:
        return find_reviewed(self.reference, self.judge, self.split, self.stratum)

    @cached_property
    def has_both_classes(self) -> BoolArray:
        """Whether each group has responses of both classes by reviewers."""
        of_class = (self.reviewed.reviewed & (self.reference == result) for result in (0, 1))
        fails, passes = (self.entries.total(members) > 0 for members in of_class)
        return np.asarray(fails & passes)


@dataclass(frozen=True)
class ErrorRates:
    """p, TPR and TNR of each group, groups × 3, with their covariance by cluster, groups × 3 × 3.

    ``clusters``: how many reviewed ones each has.
    """

    rates: FloatArray
    covariance: FloatArray
    clusters: IntArray

    def along(self, slopes: FloatArray, offset: float) -> FloatArray:
        return np.asarray(self.rates @ slopes + offset)

    def covariance_along(self, one: FloatArray, other: FloatArray) -> FloatArray:
        return np.asarray(np.einsum("i,kij,j->k", one, self.covariance, other))


def error_rates(passes: JudgedPasses, added: int = 1) -> ErrorRates:
    """``added``: how many right and as many wrong responses are added to each class, each a cluster of its own."""
    of, entries = passes.reviewed, passes.entries
    judge = np.where(of.scored, passes.judge, 0.0)
    p, of_p = judge_pass_rate(judge, of, entries)
    rates, influences, extra = [p], [of_p], [np.zeros(passes.groups)]
    for result, right in ((1, judge), (0, 1 - judge)):
        members = of.reviewed & (passes.reference == result)
        count, weight = entries.total(members), np.where(members, of.weight, 0.0)
        size = count + 2 * added
        with np.errstate(invalid="ignore", divide="ignore"):
            weight = weight * (count / entries.total(weight))[entries.group]
            rate = (entries.total(np.where(members, weight * right, 0.0)) + added) / size
            influence = weight * (right - rate[entries.group]) / size[entries.group]
            extra.append(added * ((1 - rate) ** 2 + rate**2) / size**2)
        rates.append(rate)
        influences.append(np.where(members, influence, 0.0))
    clusters = entries.clusters(of.reviewed)
    covariance = entries.products(*influences)
    covariance[:, range(3), range(3)] += np.stack(extra, axis=1)
    bessel = np.divide(clusters, clusters - 1, out=np.ones(passes.groups), where=clusters > 1)
    return ErrorRates(np.stack(rates, axis=1), covariance * bessel[:, None, None], clusters)


def judge_pass_rate(judge: FloatArray, of: ReviewedResponses, entries: GroupedEntries) -> tuple[FloatArray, FloatArray]:
    """p of each group, and each response's influence on it."""
    rate, influence = np.zeros(entries.groups), np.zeros(len(judge))
    for weight, sign in ((of.scored.astype(np.float64), 1), (of.reviewed_weight, 1), (of.weight, -1)):
        total = entries.total(weight)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = entries.total(weight * judge) / total
            part = weight * (judge - mean[entries.group]) / total[entries.group]
        rate += sign * mean
        influence += sign * np.where(weight > 0, part, 0.0)
    return rate, influence


def rogan_gladen(passes: JudgedPasses) -> list[Estimate]:
    """The corrected pass rate of each group, cut off at 0 and 1; n counts the reviewed responses.

    Undefined without reviewed responses of both classes, and where TPR + TNR − 1 is not shown to be above 0.
    """
    adjusted, plain = error_rates(passes), error_rates(passes, added=0)
    t = np.array([t_975(max(clusters - 1, 1)) for clusters in adjusted.clusters.tolist()])
    with np.errstate(invalid="ignore", divide="ignore"):
        value = plain.along(NUMERATOR, -1) / plain.along(DENOMINATOR, -1)
        low, high = (np.clip(end, 0.0, 1.0) for end in widen(fieller_bounds(adjusted, t), value))
    columns = (
        passes.entries.total(passes.reviewed.reviewed).astype(np.int64),
        passes.has_both_classes,
        *(adjusted.clusters, np.clip(value, 0.0, 1.0), low, high),
    )
    return [corrected_rate(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


def widen(bounds: tuple[FloatArray, FloatArray], value: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Bounds that hold the value; NaN where there are none."""
    return np.minimum(bounds[0], value), np.maximum(bounds[1], value)


def corrected_rate(n: int, has_both: bool, clusters: int, value: float, low: float, high: float) -> Estimate:
    if not has_both:
        return undefined_estimate(ONE_CLASS, n)
    if clusters < 2:
        return undefined_estimate(ONE_CLUSTER, n)
    if isnan(low):
        return undefined_estimate(NOT_INFORMATIVE, n)
    rule = f"Fieller with the errors of TPR and TNR over {clusters:,} clusters"
    return Estimate(value, n).with_interval(low, high, rule)


def fieller_bounds(rates: ErrorRates, t: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The ends of {θ: (N − θ D)² ≤ t² Var(N − θ D)}; NaN where D is not above 0 by t standard errors."""
    numerator, denominator = rates.along(NUMERATOR, -1), rates.along(DENOMINATOR, -1)
    slopes = ((NUMERATOR, NUMERATOR), (NUMERATOR, DENOMINATOR), (DENOMINATOR, DENOMINATOR))
    aa, bb, cc = (rates.covariance_along(one, other) for one, other in slopes)
    quadratic = denominator**2 - t**2 * cc
    is_informative = (denominator > 0) & (quadratic > 0)
    middle, constant = numerator * denominator - t**2 * bb, numerator**2 - t**2 * aa
    root = np.sqrt(np.maximum(middle**2 - quadratic * constant, 0.0))
    low, high = ((middle + sign * root) / np.where(is_informative, quadratic, np.nan) for sign in (-1, 1))
    return low, high
