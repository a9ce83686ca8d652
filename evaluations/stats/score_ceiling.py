"""The human ceiling of scores: judge and left-out reviewer compared with the mean of the remaining reviewers.

As for choices (`human_ceiling`), each reviewer is left out in turn, judge and reviewer are compared with the same mean
on the same responses, and the results are averaged over the reviewers with equal weights. Numbers are linearised
reviewer by reviewer, so that a resample without a reviewer leaves none undefined.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Final

import numpy as np

from evaluations.stats.cluster_totals import number_clusters, sum_by_cluster
from evaluations.stats.coding import FloatArray, IntArray
from evaluations.stats.confidence_intervals import (
    CORRELATION_BOUNDS,
    MIN_CLUSTERS,
    UNBOUNDED,
    Bounds,
    Spread,
    Statistic,
    why_counts_withhold_interval,
)
from evaluations.stats.estimates import Estimate, JudgeVersusPeople, drop_rounding_noise, undefined_estimate
from evaluations.stats.human_ceiling import RaterAverage, judge_people_difference_statistic
from evaluations.stats.score_agreement import NOT_NEGATIVE, t_interval_by_effective_clusters
from evaluations.stats.score_reliability import PersonScores

NO_OTHER_SCORES: Final = "No response that the judge scored has scores of two reviewers."
TOO_SHORT: Final = (
    "No reviewer has {} responses to compare on which judge, reviewer and the mean of the others all vary."
)
MIN_RESPONSES: Final = 10  # of a reviewer: a correlation of fewer says little and is biased
MEASURES: Final = 3
BOUNDS: Final[tuple[Bounds, ...]] = (
    *(NOT_NEGATIVE, NOT_NEGATIVE, UNBOUNDED),
    *(NOT_NEGATIVE, NOT_NEGATIVE, UNBOUNDED),
    *(CORRELATION_BOUNDS, CORRELATION_BOUNDS, (-2.0, 2.0)),
)


DISTANCES: Final = range(3)  # of these, the mean absolute differences


@dataclass(frozen=True)
class LeftOutScores:
    """One entry for each left-out score. ``others``: the mean of the remaining reviewers on the same response."""

    person: IntArray
    judge: FloatArray
    own: FloatArray
    others: FloatArray
    cluster: IntArray

    @property
    def sides(self) -> tuple[FloatArray, FloatArray]:
        return self.judge, self.own

    def by_person(self) -> Iterator[IntArray]:
        """The entries of each person."""
        order = np.argsort(self.person, kind="stable")
        yield from np.split(order, np.flatnonzero(np.diff(self.person[order])) + 1)


def left_out_scores(judge: FloatArray, each: PersonScores, cluster: IntArray) -> LeftOutScores:
    """``judge``: its score of each response, NaN where it has none. ``each``: a person's one score of each response."""
    scores, totals = np.bincount(each.unit, minlength=len(judge)), np.bincount(each.unit, each.value, len(judge))
    kept = (scores[each.unit] > 1) & ~np.isnan(judge[each.unit])
    unit, own = each.unit[kept], each.value[kept]
    others = drop_rounding_noise((totals[unit] - own) / (scores[unit] - 1))
    return LeftOutScores(each.rater[kept], judge[unit], own, others, cluster[unit])


@dataclass(frozen=True)
class LeftOutDistance(JudgeVersusPeople):
    """Mean absolute differences where one reviewer is left out; ``people`` is that reviewer."""

    rater: str


@dataclass(frozen=True)
class ScoreCeiling:
    """The numbers of the judge, of left-out reviewers, and judge − reviewers, averaged over reviewers.

    ``n``: the scores that were left out. A judge as close as a reviewer has differences of 0.
    """

    n: int
    mean_absolute_difference: JudgeVersusPeople
    root_mean_square_difference: JudgeVersusPeople
    pearson: JudgeVersusPeople
    left_out: tuple[LeftOutDistance, ...]


def score_ceiling(judge: FloatArray, each: PersonScores, names: Sequence[str], cluster: IntArray) -> ScoreCeiling:
    """``judge`` and ``cluster``: of each response. ``names``: the person of each rater number."""
    scores = left_out_scores(judge, each, cluster)
    if not (n := len(scores.own)):
        nothing = JudgeVersusPeople(*[undefined_estimate(NO_OTHER_SCORES)] * 3)
        return ScoreCeiling(0, nothing, nothing, nothing, ())
    absolute, square, correlation = average_measures(scores)
    return ScoreCeiling(n, absolute, square, correlation, tuple(left_out_distances(scores, names)))


def average_measures(scores: LeftOutScores) -> list[JudgeVersusPeople]:
    """Mean absolute difference, root mean square difference and Pearson's correlation."""
    average = average_over_reviewers(scores)
    values = judge_people_difference_statistic(average.values).tolist()
    spread, reasons = Spread(average.influence), withheld_reasons(scores)
    numbers = [
        ceiling_interval(ceiling_number(value, len(scores.own)), spread, average, place, reasons[place % 3])
        for place, value in enumerate(values)
    ]
    return [JudgeVersusPeople(*numbers[first : first + 3]) for first in range(0, len(numbers), 3)]


def ceiling_number(value: float, n: int) -> Estimate:
    return Estimate(value, n) if np.isfinite(value) else undefined_estimate(TOO_SHORT.format(MIN_RESPONSES), n)


def statistic_at(average: RaterAverage, place: int) -> Statistic:
    def statistic(totals: FloatArray) -> FloatArray:
        return np.asarray(judge_people_difference_statistic(average.values_at(totals))[..., place])

    return statistic


def ceiling_interval(
    number: Estimate, spread: Spread, average: RaterAverage, place: int, reason: "WithheldReason"
) -> Estimate:
    """Below 40 effective clusters, mean absolute differences have an interval of t and the others none."""
    if number.value is None:
        return number
    if reason.few is None:
        return spread.interval(number, statistic_at(average, place), BOUNDS[place])
    if place in DISTANCES:
        return distance_interval(number, spread, average, place, reason)
    return number.without_interval(reason.few)


def distance_interval(
    number: Estimate, spread: Spread, average: RaterAverage, place: int, reason: "WithheldReason"
) -> Estimate:
    if reason.alike is not None:
        return number.without_interval(reason.alike)
    return t_interval_by_effective_clusters(number, spread, statistic_at(average, place), BOUNDS[place])


@dataclass(frozen=True)
class WithheldReason:
    """``few``: why an interval would promise too much, if so; ``alike``: the same, whatever the number of clusters."""

    few: str | None
    alike: str | None


def withheld_reasons(scores: LeftOutScores) -> list[WithheldReason]:
    """Of the judge, of reviewers, and of their difference."""
    clusters = number_clusters(scores.cluster)
    judge, own = (drop_rounding_noise(np.abs(side - scores.others)) for side in scores.sides)
    counts = [clusters.holding(distance) for distance in (judge, own, drop_rounding_noise(judge - own))]
    return [
        WithheldReason(
            why_counts_withhold_interval(clusters.effective, count, clusters=clusters.count),
            why_counts_withhold_interval(MIN_CLUSTERS, count),
        )
        for count in counts
    ]


def average_over_reviewers(scores: LeftOutScores) -> RaterAverage:
    """The measures of both sides averaged over people, with the influence of each cluster."""
    measured = [measure_person(scores, entries) for entries in scores.by_person()]
    values = np.array([value for value, _ in measured])  # people × measures × sides
    counted = np.isfinite(values).all(axis=2)
    people = np.maximum(counted.sum(axis=0), 1)
    influences = np.zeros((MEASURES, 2, len(scores.own)))
    for entries, (_, influence), is_counted in zip(scores.by_person(), measured, counted, strict=True):
        influences[:, :, entries] = np.where(is_counted[:, None, None], influence, 0.0) / people[:, None, None]
    sums = sum_by_cluster(number_clusters(scores.cluster), *influences.reshape(-1, len(scores.own)))
    total = np.where(counted[:, :, None], values, 0.0).sum(axis=0)
    return RaterAverage(np.where(counted.any(axis=0)[:, None], total / people[:, None], np.nan), sums)


def measure_person(scores: LeftOutScores, entries: IntArray) -> tuple[FloatArray, FloatArray]:
    """The measures of one person, measures × sides, and the influence of each entry, measures × sides × entries."""
    others = scores.others[entries]
    sides = [side[entries] for side in scores.sides]
    measured = [(distance(side, others), root_distance(side, others), correlation(side, others)) for side in sides]
    values = np.array([[value for value, _ in of_side] for of_side in measured]).T
    influences = np.array([[influence for _, influence in of_side] for of_side in measured])
    return values, influences.transpose(1, 0, 2)


Measured = tuple[float, FloatArray]


def distance(side: FloatArray, others: FloatArray) -> Measured:
    apart = np.abs(side - others)
    return float(apart.mean()), (apart - apart.mean()) / len(apart)


def root_distance(side: FloatArray, others: FloatArray) -> Measured:
    squares = (side - others) ** 2
    root = sqrt(float(squares.mean()))
    return root, (squares - squares.mean()) / (2 * root * len(squares)) if root else np.zeros(len(squares))


def correlation(side: FloatArray, others: FloatArray) -> Measured:
    """Pearson's, NaN where a side does not vary or there are few responses."""
    n = len(side)
    if n < MIN_RESPONSES or np.ptp(side) == 0 or np.ptp(others) == 0:
        return np.nan, np.zeros(n)
    x, y = ((values - values.mean()) / values.std() for values in (side, others))
    r = float((x * y).mean())
    return min(max(r, -1.0), 1.0), (x * y - r * (x * x + y * y) / 2) / n


def left_out_distances(scores: LeftOutScores, names: Sequence[str]) -> Iterator[LeftOutDistance]:
    """The mean absolute differences of judge and each reviewer, over the responses of that reviewer, all by t."""
    for entries in scores.by_person():
        part = LeftOutScores(*(column[entries] for column in vars(scores).values()))
        average, reasons = average_over_reviewers(part), withheld_reasons(part)
        values, spread = judge_people_difference_statistic(average.values).tolist(), Spread(average.influence)
        judge, people, difference = (
            distance_interval(Estimate(values[place], len(entries)), spread, average, place, reasons[place])
            for place in DISTANCES
        )
        yield LeftOutDistance(judge, people, difference, names[int(part.person[0])])
