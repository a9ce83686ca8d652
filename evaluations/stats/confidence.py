"""Whether a judge is as sure as it is right: the weight that it put on A against what people chose.

The weight comes from the probabilities of the judge's labels: A is 1, a tie ½, B 0. So do people's majorities.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.stats.bootstrap import RESAMPLES, SEED
from evaluations.stats.cluster_sums import Clusters, cluster_sums, numbered
from evaluations.stats.coding import MISSING, ORDERS, IntArray
from evaluations.stats.consolidation import Choices
from evaluations.stats.contributions import FloatArray
from evaluations.stats.grouped_shares import grouped, shares
from evaluations.stats.intervals import LEAST_CLUSTERS, LEAST_DISAGREEING, SHARE, Spread, too_few_of
from evaluations.stats.numbers import Number, undefined

BINS: Final = 10  # of equal width
WORTH: Final[FloatArray] = np.array([1.0, 0.0, 0.5, 0.5])  # of each choice, to A

NO_WEIGHTS: Final = "The judge's replies came without probabilities of their labels."
NOTHING_SHARED: Final = "No comparison has both a majority of people and probabilities of the judge."
EMPTY_BIN: Final = "No comparison lies here."
TOO_FEW: Final = f"An interval is given from {LEAST_CLUSTERS} clusters on."
RULE: Final = f"{RESAMPLES:,} draws of the bins' noise by cluster"


@dataclass(frozen=True)
class ConfidenceBin:
    """The comparisons on which the judge's weight on A is ``low`` or more and below ``high``; 1 is in the last."""

    low: float
    high: float
    n: int
    mean_weight: float | None
    chosen_by_people: Number


@dataclass(frozen=True)
class Confidence:
    """``brier_score`` = ``reliability`` − ``resolution`` + ``uncertainty``.

    ``by_chance``: the calibration error that as many comparisons would show of a judge without any.
    """

    n: int
    bins: tuple[ConfidenceBin, ...]
    calibration_error: Number
    by_chance: float | None
    brier_score: Number
    reliability: float | None
    resolution: float | None
    uncertainty: float | None


def weight_of(item: IntArray, shown: IntArray, weighted: FloatArray, choice: Choices) -> FloatArray:
    """A judge's weight on A for each item: the mean of its orders, each the mean of its samples.

    The first three have one entry for each verdict. ``weighted``: NaN where it has none; then the item has none, for
    one order alone leans towards a place. ``choice``: the judge's one verdict on each item; where it is MISSING there
    is no weight either.
    """
    shape = len(choice), len(ORDERS)
    key = item * len(ORDERS) + shown
    samples = np.bincount(key, minlength=shape[0] * shape[1])
    total = np.bincount(key, weighted, len(samples))
    with np.errstate(all="ignore"):
        of_order = np.where(samples > 0, total / samples, 0.0).reshape(shape)
        found = of_order.sum(axis=1) / np.count_nonzero(samples.reshape(shape), axis=1)
    return np.where(choice == MISSING, np.nan, found)


def confidence(weight: FloatArray, majority: Choices | IntArray, cluster: IntArray) -> Confidence:
    """One entry for each item: the judge's weight on A, NaN where there is none, people's majority, and the cluster."""
    weighed = ~np.isnan(weight)
    kept = weighed & (majority != MISSING)
    if not kept.any():
        return nothing(NOTHING_SHARED if weighed.any() else NO_WEIGHTS)
    weight, people = weight[kept], WORTH[majority[kept]]
    place = np.minimum((weight * BINS).astype(np.int64), BINS - 1)
    clusters = numbered(cluster[kept])
    noise = noise_of_bins(place, weight - people, clusters)
    score = brier_score(weight - people, clusters)
    return Confidence(
        n=len(weight),
        bins=bins(place, weight, people, clusters),
        calibration_error=calibration_error(place, weight - people, noise),
        by_chance=None if noise is None else float(np.abs(noise).sum(axis=1).mean()),
        brier_score=score,
        **decomposed(score, place, weight, people),
    )


def nothing(why: str) -> Confidence:
    return Confidence(0, (), undefined(why), None, undefined(why), None, None, None)


def bins(place: IntArray, weight: FloatArray, people: FloatArray, clusters: Clusters) -> tuple[ConfidenceBin, ...]:
    counts = np.bincount(place, minlength=BINS).tolist()
    weights = np.bincount(place, weight, BINS).tolist()
    found = shares(grouped(place, BINS, clusters.of), people, np.ones(len(place), dtype=bool), EMPTY_BIN)
    return tuple(
        ConfidenceBin(at / BINS, (at + 1) / BINS, n, total / n if n else None, share)
        for at, (n, total, share) in enumerate(zip(counts, weights, found, strict=True))
    )


# ---- calibration error ---------------------------------------------------------------------


def calibration_error(place: IntArray, difference: FloatArray, noise: FloatArray | None) -> Number:
    """Σ over bins of |mean weight − mean of people| · share of comparisons (Naeini, Cooper and Hauskrecht 2015).

    Chance alone makes it more than 0. Its lower bound is the number less what noise alone adds up to in 97.5 % of
    draws: it cannot be too high by more. The upper one is that of the basic bootstrap, which takes out the bias.
    """
    in_bins = np.bincount(place, difference, BINS) / len(place)
    value = float(np.abs(in_bins).sum())
    number = Number(value, len(place))
    if noise is None:
        return number.without_interval(TOO_FEW)
    by_noise = float(np.quantile(np.abs(noise).sum(axis=1), 0.975))
    lowest = float(np.quantile(np.abs(in_bins + noise).sum(axis=1), 0.025))
    return number.within(max(value - by_noise, 0.0), max(value, 2 * value - lowest), RULE)


def noise_of_bins(place: IntArray, difference: FloatArray, clusters: Clusters) -> FloatArray | None:
    """Draws of what the bins' parts of the calibration error are off by: draws × bins, normal with their covariance

    by cluster. None where there are too few clusters.
    """
    if clusters.effective < LEAST_CLUSTERS:
        return None
    flat = np.bincount(clusters.of * BINS + place, difference, clusters.count * BINS)
    by_cluster = flat.reshape(clusters.count, BINS) / len(place)
    size = np.bincount(clusters.of) / len(place)
    influence = by_cluster - by_cluster.sum(axis=0) * size[:, None]
    spread, directions = np.linalg.eigh(influence.T @ influence * clusters.count / (clusters.count - 1))
    drawn = np.random.default_rng(SEED).normal(size=(RESAMPLES, BINS))
    return np.asarray(drawn * np.sqrt(np.maximum(spread, 0.0)) @ directions.T)


# ---- Brier score ---------------------------------------------------------------------------


def brier_score(difference: FloatArray, clusters: Clusters) -> Number:
    """The mean squared difference of weight and people's choice (Brier 1950)."""
    spread = Spread(cluster_sums(clusters, difference**2))
    number = Number(float((difference**2).mean()), len(difference))
    few = too_few_of(clusters.effective, LEAST_DISAGREEING, clusters=clusters.count)
    return number.without_interval(few) if few else spread.interval(number, mean_of_squares, SHARE)


def mean_of_squares(totals: FloatArray) -> FloatArray:
    return np.asarray(totals[..., 1] / totals[..., 0])


def decomposed(score: Number, place: IntArray, weight: FloatArray, people: FloatArray) -> dict[str, float]:
    """Murphy's decomposition (1973) over the bins.

    What weights and choices do inside a bin counts for the resolution (Stephenson, Coelho and Jolliffe 2008), so that
    reliability − resolution + uncertainty is the score itself.
    """
    assert score.value is not None
    n = np.maximum(np.bincount(place, minlength=BINS), 1)
    apart = np.bincount(place, weight - people, BINS) / n
    reliability = float((n * apart**2).sum()) / len(place)
    uncertainty = float(people.var())
    resolution = reliability + uncertainty - score.value
    return {"reliability": reliability, "resolution": resolution, "uncertainty": uncertainty}
