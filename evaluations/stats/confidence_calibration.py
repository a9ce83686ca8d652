"""Calibration of a judge's stated confidence: expected calibration error and Brier score.

The judge's weight on A comes from the probabilities of its labels: A counts 1, a tie ½, B 0. People's majorities count
the same.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.domain.choices import PACKED_ORDERS
from evaluations.stats.cluster_totals import Clusters, number_clusters, sum_by_cluster
from evaluations.stats.coding import MISSING, FloatArray, IntArray
from evaluations.stats.confidence_intervals import (
    MIN_CLUSTERS,
    MIN_DISAGREEING,
    RESAMPLES,
    SEED,
    SHARE_BOUNDS,
    Spread,
    why_counts_withhold_interval,
)
from evaluations.stats.estimates import Estimate, undefined_estimate
from evaluations.stats.grouped_shares import group_entries, shares_by_group
from evaluations.stats.judge_verdicts import Choices

BINS: Final = 10  # of equal width
WORTH: Final[FloatArray] = np.array([1.0, 0.0, 0.5, 0.5])  # of each choice, to A
NO_WEIGHTS: Final = "The judge's replies have no label probabilities."
NOTHING_SHARED: Final = "No comparison has both a reviewer majority and probabilities of the judge."
EMPTY_BIN: Final = "No comparisons in this bin."
TOO_FEW: Final = f"Too few clusters for a CI (< {MIN_CLUSTERS})."
RULE: Final = f"{RESAMPLES:,} draws of the bins' noise by cluster"


@dataclass(frozen=True)
class CalibrationBin:
    """The comparisons on which the judge's weight on A is in [``low``, ``high``); 1 is in the last bin."""

    low: float
    high: float
    n: int
    mean_weight: float | None
    chosen_by_people: Estimate


@dataclass(frozen=True)
class ConfidenceCalibration:
    """Calibration of one judge: ``brier_score`` = ``reliability`` − ``resolution`` + ``uncertainty``.

    ``by_chance``: the calibration error that chance alone would give a perfectly calibrated judge.
    """

    n: int
    bins: tuple[CalibrationBin, ...]
    calibration_error: Estimate
    by_chance: float | None
    brier_score: Estimate
    reliability: float | None
    resolution: float | None
    uncertainty: float | None


def mean_weights(item: IntArray, shown: IntArray, weight: FloatArray, choice: Choices) -> FloatArray:
    """A judge's weight on A for each item: the mean over orders of the mean over samples; NaN where it is undefined.

    ``item``, ``shown`` and ``weight``: of each verdict. A weight is NaN where the reply has none; then the item has
    none either, because one order alone would carry position bias. ``choice``: the judge's verdict on each item; where
    it is MISSING there is no weight.
    """
    shape = len(choice), len(PACKED_ORDERS)
    key = item * len(PACKED_ORDERS) + shown
    samples = np.bincount(key, minlength=shape[0] * shape[1])
    total = np.bincount(key, weight, len(samples))
    with np.errstate(all="ignore"):
        of_order = np.where(samples > 0, total / samples, 0.0).reshape(shape)
        means = of_order.sum(axis=1) / np.count_nonzero(samples.reshape(shape), axis=1)
    return np.where(choice == MISSING, np.nan, means)


def confidence_calibration(
    weight: FloatArray, majority: Choices | IntArray, cluster: IntArray
) -> ConfidenceCalibration:
    """Calibration of the judge's weights on A (NaN where missing) against the majority of people, by item."""
    weighed = ~np.isnan(weight)
    counted = weighed & (majority != MISSING)
    if not counted.any():
        return undefined_calibration(NOTHING_SHARED if weighed.any() else NO_WEIGHTS)
    weight, people = weight[counted], WORTH[majority[counted]]
    bin_index = np.minimum((weight * BINS).astype(np.int64), BINS - 1)
    clusters = number_clusters(cluster[counted])
    noise = bin_noise_draws(bin_index, weight - people, clusters)
    score = brier_score(weight - people, clusters)
    return ConfidenceCalibration(
        n=len(weight),
        bins=calibration_bins(bin_index, weight, people, clusters),
        calibration_error=calibration_error(bin_index, weight - people, noise),
        by_chance=None if noise is None else float(np.abs(noise).sum(axis=1).mean()),
        brier_score=score,
        **murphy_decomposition(score, bin_index, weight, people),
    )


def undefined_calibration(why: str) -> ConfidenceCalibration:
    return ConfidenceCalibration(0, (), undefined_estimate(why), None, undefined_estimate(why), None, None, None)


def calibration_bins(
    bin_index: IntArray, weight: FloatArray, people: FloatArray, clusters: Clusters
) -> tuple[CalibrationBin, ...]:
    counts = np.bincount(bin_index, minlength=BINS).tolist()
    weights = np.bincount(bin_index, weight, BINS).tolist()
    shares = shares_by_group(
        group_entries(bin_index, BINS, clusters.of), people, np.ones(len(bin_index), dtype=bool), EMPTY_BIN
    )
    return tuple(
        CalibrationBin(at / BINS, (at + 1) / BINS, n, total / n if n else None, share)
        for at, (n, total, share) in enumerate(zip(counts, weights, shares, strict=True))
    )


def calibration_error(bin_index: IntArray, difference: FloatArray, noise: FloatArray | None) -> Estimate:
    """Σ over bins of |mean weight − mean of people| · share of comparisons (Naeini, Cooper and Hauskrecht 2015).

    Chance alone makes it more than 0. Its lower bound is the number less what noise alone adds up to in 97.5 % of
    draws: it cannot be too high by more. The upper one is that of the basic bootstrap, which takes out the bias.
    """
    in_bins = np.bincount(bin_index, difference, BINS) / len(bin_index)
    value = float(np.abs(in_bins).sum())
    number = Estimate(value, len(bin_index))
    if noise is None:
        return number.without_interval(TOO_FEW)
    by_noise = float(np.quantile(np.abs(noise).sum(axis=1), 0.975))
    lowest = float(np.quantile(np.abs(in_bins + noise).sum(axis=1), 0.025))
    return number.with_interval(max(value - by_noise, 0.0), max(value, 2 * value - lowest), RULE)


def bin_noise_draws(bin_index: IntArray, difference: FloatArray, clusters: Clusters) -> FloatArray | None:
    """Draws of the errors of the bins' parts of the calibration error: draws × bins; None for too few clusters.

    They are normal with the covariance of the parts by cluster.
    """
    if clusters.effective < MIN_CLUSTERS:
        return None
    flat = np.bincount(clusters.of * BINS + bin_index, difference, clusters.count * BINS)
    by_cluster = flat.reshape(clusters.count, BINS) / len(bin_index)
    size = np.bincount(clusters.of) / len(bin_index)
    influence = by_cluster - by_cluster.sum(axis=0) * size[:, None]
    spread, directions = np.linalg.eigh(influence.T @ influence * clusters.count / (clusters.count - 1))
    drawn = np.random.default_rng(SEED).normal(size=(RESAMPLES, BINS))
    return np.asarray(drawn * np.sqrt(np.maximum(spread, 0.0)) @ directions.T)


def brier_score(difference: FloatArray, clusters: Clusters) -> Estimate:
    """The mean squared difference of weight and people's choice (Brier 1950)."""
    spread = Spread(sum_by_cluster(clusters, difference**2))
    number = Estimate(float((difference**2).mean()), len(difference))
    few = why_counts_withhold_interval(clusters.effective, MIN_DISAGREEING, clusters=clusters.count)
    if few:
        return number.without_interval(few)
    return spread.interval(number, lambda totals: np.asarray(totals[..., 1] / totals[..., 0]), SHARE_BOUNDS)


def murphy_decomposition(
    score: Estimate, bin_index: IntArray, weight: FloatArray, people: FloatArray
) -> dict[str, float]:
    """Murphy's decomposition (1973) over the bins.

    What weights and choices do inside a bin counts for the resolution (Stephenson, Coelho and Jolliffe 2008), so that
    reliability − resolution + uncertainty is the score itself.
    """
    assert score.value is not None
    n = np.maximum(np.bincount(bin_index, minlength=BINS), 1)
    apart = np.bincount(bin_index, weight - people, BINS) / n
    reliability = float((n * apart**2).sum()) / len(bin_index)
    uncertainty = float(people.var())
    resolution = reliability + uncertainty - score.value
    return {"reliability": reliability, "resolution": resolution, "uncertainty": uncertainty}
