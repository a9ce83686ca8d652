"""How reviewers score what a judge scores so and so, and on how many responses the two are far apart."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.stats.cluster_totals import Contributions
from evaluations.stats.coding import BoolArray, FloatArray, IntArray
from evaluations.stats.confidence_intervals import ROUNDING, Spread, estimate_share
from evaluations.stats.corrected_means import mean_score_estimate
from evaluations.stats.estimates import Estimate, drop_rounding_noise, undefined_estimate
from evaluations.stats.score_agreement import NOTHING_SHARED

MAX_VALUES: Final = 11  # of a judge: up to so many, each has a bin of its own
QUANTILE_BINS: Final = 10
LARGE_SHARE: Final = 0.25  # of the range of the scores
ONE_SCORE: Final = "Every score is the same, so no difference is large."
FAR: Final[BoolArray] = np.array([False, True])
ANY: Final[BoolArray] = np.array([True, True])


@dataclass(frozen=True)
class CalibrationBin:
    """Responses that the judge scored from ``low`` to ``high``, on average ``judge``. ``people``: reviewers' mean."""

    low: float
    high: float
    judge: float
    n: int
    people: Estimate


@dataclass(frozen=True)
class LargeDifferences:
    """The share of responses whose two scores differ by ``threshold`` or more, a quarter of the observed range."""

    threshold: float
    share: Estimate


@dataclass(frozen=True)
class ScoreCalibration:
    """``by_value``: a bin for each score of the judge; else ten with about as many responses each."""

    by_value: bool
    bins: tuple[CalibrationBin, ...]


def score_calibration(judge: FloatArray, people: FloatArray, cluster: IntArray) -> ScoreCalibration:
    """Reviewers' mean score by the judge's. All arrays have an entry for each response; NaN is no score."""
    both = ~np.isnan(judge) & ~np.isnan(people)
    judge, people, cluster = judge[both], people[both], cluster[both]
    values = np.unique(judge)
    by_value = len(values) <= MAX_VALUES
    number = np.searchsorted(values, judge) if by_value else quantile_bins(judge)
    bins = (number == place for place in np.unique(number))
    return ScoreCalibration(by_value, tuple(calibration_bin(judge, people, cluster, chosen) for chosen in bins))


def quantile_bins(values: FloatArray) -> IntArray:
    """Bins of about equal counts; equal values share one."""
    edges = np.quantile(values, np.arange(1, QUANTILE_BINS) / QUANTILE_BINS)
    return np.searchsorted(np.unique(edges), values, side="left")


def calibration_bin(judge: FloatArray, people: FloatArray, cluster: IntArray, chosen: BoolArray) -> CalibrationBin:
    scores, n = judge[chosen], int(np.count_nonzero(chosen))
    low, high, mean = (float(drop_rounding_noise(score)) for score in (scores.min(), scores.max(), scores.mean()))
    return CalibrationBin(low, high, mean, n, mean_score_estimate(people[chosen], cluster[chosen]))


def large_differences(
    judge: FloatArray, people: FloatArray, cluster: IntArray, observed_range: float
) -> LargeDifferences:
    """``observed_range``: the highest score of reviewers and the judge − the lowest."""
    threshold = LARGE_SHARE * observed_range
    both = ~np.isnan(judge) & ~np.isnan(people)
    if not threshold:
        return LargeDifferences(threshold, undefined_estimate(ONE_SCORE, int(both.sum())))
    far = is_far_apart(judge[both], people[both], threshold)
    spread = Spread(Contributions(cluster[both], far.astype(np.int64), 2))
    share = estimate_share(spread, FAR, ANY, NOTHING_SHARED)
    return LargeDifferences(threshold, share)


def is_far_apart(judge: FloatArray, people: FloatArray, threshold: float) -> BoolArray:
    return np.asarray(np.abs(judge - people) >= threshold - ROUNDING)


def largest_differences(judge: FloatArray, people: FloatArray, threshold: float, limit: int) -> IntArray:
    """The responses whose scores differ by the threshold or more, the largest difference first."""
    apart = np.abs(judge - people)
    far = np.flatnonzero(np.nan_to_num(apart, nan=-1.0) >= threshold - ROUNDING)
    return far[np.argsort(-np.round(apart[far], 9), kind="stable")][:limit]
