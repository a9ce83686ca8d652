"""Means of scores, or pass rates, of candidates: from reviewers, from a judge, and corrected by PPI++.

Every response has the same weight. With F̂ the judge's mean over all responses that it scored, and Ȳ and F̄ the means of
reviewers and judge over those that both scored,

    θ(λ) = λ F̂ + Ȳ − λ F̄,    influence of cluster g:  y_g − λ d_g,
    y_g = Σ (Y − Ȳ) ÷ n,    d_g = Σ (F − F̄) ÷ n − Σ (F − F̂) ÷ N,

as in `ppi` (Angelopoulos, Duchi and Zrnic 2023). Reviewed responses without a value, on which reviewers are evenly
split, are in F̄ and not in Ȳ, because F̂ has such responses, too. The influences of two candidates are subtracted
cluster by cluster, so that a difference has one λ, and the covariance of responses to a query is in its variance.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, pairwise
from math import floor, sqrt
from typing import Final

import numpy as np

from evaluations.stats.coding import BoolArray, FloatArray, IntArray
from evaluations.stats.confidence_intervals import (
    MIN_CLUSTERS,
    MIN_DISAGREEING,
    NOISE,
    ONE_CLUSTER,
    ROUNDING,
    SHARE_BOUNDS,
    UNBOUNDED,
    Bounds,
    bessel_factor,
    wilson_from_variance,
)
from evaluations.stats.estimates import DECIMALS, NO_INTERVAL, Estimate, drop_rounding_noise, undefined_estimate
from evaluations.stats.judge_verdicts import MIN_COVERED
from evaluations.stats.ppi import optimal_lambda
from evaluations.stats.significance import t_975

MAX_ALL_PAIRS: Final = 30  # candidates: above, the first is compared with each of the others
NOT_SCORED: Final = "No response of this model has a score."
NOT_REVIEWED: Final = "No response of this model has a score from reviewers."
NOT_JUDGED: Final = "The judge scored no response of this model."
NOT_SHARED: Final = "No response of this model has scores from both the judge and reviewers."
NOT_BOTH: Final = "At least one of the two models has no such scores."
PARTLY_SCORED: Final = "The judge scored {:,} of {:,} responses. A correction needs {}% of them."
STRATIFIED: Final = "Reviews were sampled by strata, and corrected means of scores have no weights for strata."
HARDLY_VARIED: Final = (
    "In only {} reviewed clusters do scores differ from the most common one; a CI needs {}, or it would be too narrow."
)
HARDLY_CORRECTED: Final = (
    "In only {} reviewed clusters do judge and reviewers differ; a corrected CI needs {}, or the judge's error is "
    "barely known and the CI would be too narrow."
)
DIFFERENCE_BOUNDS: Final[Bounds] = (-1.0, 1.0)  # of two shares

# The columns of `ClusterInfluences`; all but the influences are counts, or 1 where the cluster has such a response.
N, REVIEWED, Y, D, VARIED, DIFFERING = range(6)
INFLUENCES: Final = [Y, D]


@dataclass(frozen=True)
class ClusterInfluences:
    """What each cluster adds to a candidate's mean.

    ``cluster``: ascending. ``values``: clusters × (reviewed responses, whether there is one, y_g, d_g, whether one
    differs from the commonest value, whether judge and reviewers differ on one). ``n``: reviewed responses.
    """

    cluster: IntArray
    values: FloatArray
    n: int
    reviewers: float
    judge: float
    judge_reviewed: float

    @cached_property
    def moments(self) -> FloatArray:
        return np.asarray(self.values.T @ self.values)


def cluster_influences(
    reviewers: FloatArray, judge: FloatArray | None, cluster: IntArray, split: BoolArray | None = None
) -> ClusterInfluences:
    """The influences on the mean over responses with values on both sides; NaN is none.

    All arrays have an entry for each response of one candidate. ``judge``: None for the mean of ``reviewers`` alone.
    ``split``: the responses that were reviewed and have no value.
    """
    ids, of = np.unique(cluster, return_inverse=True)
    scored = np.ones(len(cluster), dtype=bool) if judge is None else ~np.isnan(judge)
    reviewed = scored & ~np.isnan(reviewers)
    seen = reviewed if split is None else reviewed | (scored & split)
    n, y = int(np.count_nonzero(reviewed)), np.where(reviewed, reviewers, 0.0)
    f = np.zeros(len(y)) if judge is None else np.where(scored, judge, 0.0)
    means = [
        value[chosen].mean() if chosen.any() else np.nan for value, chosen in ((y, reviewed), (f, scored), (f, seen))
    ]
    of_people, of_judge, of_judge_reviewed = map(float, means)
    with np.errstate(invalid="ignore", divide="ignore"):
        influence = np.where(reviewed, (y - of_people) / n, 0.0)
        lead = np.where(seen, (f - of_judge_reviewed) / seen.sum(), 0.0) - np.where(
            scored, (f - of_judge) / scored.sum(), 0.0
        )
    varied, differing = reviewed & (y != commonest(y[reviewed])), reviewed & (drop_rounding_noise(y - f) != 0)
    columns = [np.bincount(of, column, len(ids)) for column in (reviewed, influence, lead, varied, differing)]
    values = np.stack([columns[0], columns[0] > 0, *columns[1:3], *(column > 0 for column in columns[3:])], axis=1)
    return ClusterInfluences(ids, values.astype(np.float64), n, of_people, of_judge, of_judge_reviewed)


def commonest(values: FloatArray) -> float:
    """The most frequent value; the lowest of several, NaN of none."""
    found, counts = np.unique(values, return_counts=True)
    return float(found[counts.argmax()]) if len(found) else np.nan


@dataclass(frozen=True)
class MeanSums:
    """The sums over clusters from which a mean, or a difference of two, has its variance.

    ``clusters``, ``effective``, ``varied`` and ``differing`` count reviewed clusters.
    """

    n: int
    clusters: int
    effective: float
    varied: int
    differing: int
    reviewers: float
    judge: float
    judge_reviewed: float
    yy: float
    yd: float
    dd: float

    @cached_property
    def judge_weight(self) -> float:
        """λ; 0 where one cluster alone is reviewed."""
        if self.clusters < 2:
            return 0.0
        return float(optimal_lambda(*(np.array([each]) for each in (self.yy, self.yd, self.dd)))[0])

    @property
    def value(self) -> float:
        corrected = self.reviewers + self.judge_weight * (self.judge - self.judge_reviewed)
        return round(corrected, DECIMALS)

    @property
    def variance(self) -> float:
        squares = self.yy - 2 * self.judge_weight * self.yd + self.judge_weight**2 * self.dd
        return max(squares, 0.0) * bessel_factor(self.clusters)


def mean_sums(own: ClusterInfluences) -> MeanSums:
    return sums_from_moments(
        own.moments,
        own.moments,
        own.n,
        own.n**2 / own.moments[N, N] if own.n else 0.0,
        (own.reviewers, own.judge, own.judge_reviewed),
    )


def sums_from_moments(
    squares: FloatArray, counts: FloatArray, n: int, effective: float, means: tuple[float, float, float]
) -> MeanSums:
    """``squares``: of influences. ``counts``: of clusters, on the diagonal."""
    clusters, varied, differing = (round(float(counts[column, column])) for column in (REVIEWED, VARIED, DIFFERING))
    sums = (float(squares[row, column]) for row, column in ((Y, Y), (Y, D), (D, D)))
    return MeanSums(n, clusters, effective, varied, differing, *means, *sums)


def difference_sums(first: ClusterInfluences, second: ClusterInfluences, shared: FloatArray) -> MeanSums:
    """The sums of first − second. ``shared``: Σ v₁ v₂ᵀ over the clusters of both."""
    both, crossed = first.moments + second.moments, shared + shared.T
    n = first.n + second.n
    size = float(both[N, N] + crossed[N, N])
    return sums_from_moments(
        both - crossed,
        both - crossed / 2,  # a cluster of both counts once
        n,
        n**2 / size if size else 0.0,
        (
            first.reviewers - second.reviewers,
            first.judge - second.judge,
            first.judge_reviewed - second.judge_reviewed,
        ),
    )


def pairs_to_compare(candidates: Sequence[int]) -> Iterator[tuple[int, int]]:
    """All pairs of candidates; above MAX_ALL_PAIRS the first with each of the others."""
    if len(candidates) <= MAX_ALL_PAIRS:
        yield from combinations(candidates, 2)
    else:
        yield from ((candidates[0], other) for other in candidates[1:])


def all_difference_sums(
    influences: Mapping[int, ClusterInfluences], pairs: Sequence[tuple[int, int]], clusters: int
) -> Iterator[MeanSums | None]:
    """The sums of the difference of each pair; None where one of the two has none. ``clusters``: how many in all."""
    scratch, filled = np.zeros((clusters, len(INFLUENCES) + 4)), None
    for first, second in pairs:
        if first not in influences or second not in influences:
            yield None
            continue
        if filled != first:
            if filled is not None:
                scratch[influences[filled].cluster] = 0.0
            scratch[influences[first].cluster], filled = influences[first].values, first
        other = influences[second]
        yield difference_sums(influences[first], other, scratch[other.cluster].T @ other.values)


def mean_interval(number: Estimate, sums: MeanSums, bounds: Bounds) -> Estimate:
    """± t with effective clusters − 1 degrees of freedom; Wilson's for shares with few clusters, or few that differ."""
    if sums.clusters < 2:
        return number.without_interval(ONE_CLUSTER)
    if bounds is SHARE_BOUNDS and (sums.effective < MIN_CLUSTERS or sums.varied < MIN_DISAGREEING):
        return wilson_from_variance(number, sums.clusters, sums.variance, sums.effective)
    if sqrt(sums.variance) <= NOISE * max(abs(number.value or 0.0), NOISE):
        return number.without_interval(NO_INTERVAL)
    degrees = max(floor(sums.effective + ROUNDING) - 1, 1)
    return number.with_margin(t_975(degrees) * sqrt(sums.variance), bounds, f"t over {sums.clusters:,} clusters")


def mean_estimate(sums: MeanSums | None, bounds: Bounds, empty: str) -> Estimate:
    """The mean of one side alone."""
    if sums is None or not sums.n:
        return undefined_estimate(empty)
    return mean_interval(Estimate(sums.value, sums.n), sums, bounds)


def mean_score_estimate(value: FloatArray, cluster: IntArray) -> Estimate:
    """The mean score with its interval; NaN is no score."""
    return mean_estimate(mean_sums(cluster_influences(value, None, cluster)), UNBOUNDED, NOT_SCORED)


def difference_estimate(sums: MeanSums | None, bounds: Bounds) -> Estimate:
    """The difference of two means of one side alone."""
    if sums is None:
        return undefined_estimate(NOT_BOTH)
    number = Estimate(sums.value, sums.n)
    if sums.clusters >= 2 and sums.varied < MIN_DISAGREEING:
        return number.without_interval(HARDLY_VARIED.format(sums.varied, MIN_DISAGREEING))
    return mean_interval(number, sums, bounds)


def corrected_estimate(sums: MeanSums, bounds: Bounds) -> Estimate:
    number = Estimate(min(max(sums.value, bounds[0]), bounds[1]), sums.n)
    if sums.clusters >= 2 and sums.varied < MIN_DISAGREEING:
        return number.without_interval(HARDLY_VARIED.format(sums.varied, MIN_DISAGREEING))
    if sums.judge_weight and sums.differing < MIN_DISAGREEING:
        return number.without_interval(HARDLY_CORRECTED.format(sums.differing, MIN_DISAGREEING))
    return mean_interval(number, sums, bounds)


@dataclass(frozen=True)
class CorrectedMean:
    """``corrected``: n counts the responses with scores from both. ``judge_weight``: λ.

    ``width_ratio``: its standard error ÷ that of reviewers alone. ``scored``: the responses that the judge scored;
    ``coverage``: these ÷ all of the candidate.
    """

    corrected: Estimate
    judge_weight: float | None
    width_ratio: float | None
    scored: int
    coverage: float


@dataclass(frozen=True)
class CandidateMean:
    """``people`` and ``judges``: the means; ``corrected``: by judge. ``responses``: all of the candidate."""

    people: Estimate
    judges: dict[str, Estimate]
    corrected: dict[str, CorrectedMean]
    responses: int


@dataclass(frozen=True)
class JudgeDifference:
    """A difference by the judge alone and corrected by reviewers. ``judge_weight``: λ of the difference."""

    judge: Estimate
    corrected: Estimate
    judge_weight: float | None


@dataclass(frozen=True)
class CandidateDifference:
    """The mean of ``first`` − that of ``second``, from reviewers and by judge."""

    first: str
    second: str
    people: Estimate
    judges: dict[str, JudgeDifference]


@dataclass(frozen=True)
class CandidateMeans:
    """``differences``: of all pairs up to MAX_ALL_PAIRS candidates, else of the first and each of the others."""

    candidates: dict[str, CandidateMean]
    differences: tuple[CandidateDifference, ...]


@dataclass(frozen=True)
class ResponseValues:
    """Values of all responses, NaN where there is none.

    ``people``: from reviewers. ``judges``: by name. ``candidate``: the index in ``names``. ``cluster``: from 0.
    ``bounds``: of a mean. ``why_uncorrected``: why no mean may be corrected, if so. ``split``: the responses that were
    reviewed and have no value.
    """

    people: FloatArray
    judges: Mapping[str, FloatArray]
    candidate: IntArray
    cluster: IntArray
    names: Sequence[str]
    bounds: Bounds = UNBOUNDED
    why_uncorrected: str | None = None
    split: BoolArray | None = None

    @cached_property
    def by_candidate(self) -> dict[int, IntArray]:
        """The responses of each candidate that has any."""
        order = np.argsort(self.candidate, kind="stable")
        ends = np.searchsorted(self.candidate[order], np.arange(len(self.names) + 1))
        return {number: order[a:b] for number, (a, b) in enumerate(pairwise(ends.tolist())) if a < b}

    @cached_property
    def scored_candidates(self) -> list[int]:
        """Those with a response that reviewers or a judge scored, in the order of names."""
        scored = ~np.isnan(self.people)
        for judge in self.judges.values():
            scored |= ~np.isnan(judge)
        return [number for number, own in self.by_candidate.items() if scored[own].any()]

    def influences(self, value: FloatArray, judge: FloatArray | None = None) -> dict[int, ClusterInfluences]:
        """Of each candidate that has values on both sides."""
        found = {}
        for number in self.scored_candidates:
            own = self.by_candidate[number]
            of_candidate = cluster_influences(
                value[own],
                None if judge is None else judge[own],
                self.cluster[own],
                None if self.split is None else self.split[own],
            )
            if of_candidate.n:
                found[number] = of_candidate
        return found

    def why_not_corrected(self, judge: FloatArray, number: int) -> str | None:
        """Why the candidate's mean is not corrected by this judge, if it is not."""
        own = self.by_candidate[number]
        scored, reviewed = ~np.isnan(judge[own]), ~np.isnan(self.people[own])
        if not reviewed.any() or not scored.any():
            return NOT_JUDGED if reviewed.any() else NOT_REVIEWED
        if 100 * np.count_nonzero(scored) < MIN_COVERED * len(own):
            return PARTLY_SCORED.format(np.count_nonzero(scored), len(own), MIN_COVERED)
        return self.why_uncorrected or (None if (scored & reviewed).any() else NOT_SHARED)


def candidate_means(values: ResponseValues) -> CandidateMeans:
    """Means of every candidate with a scored response, and their differences."""
    people = values.influences(values.people)
    alone = {name: values.influences(judge) for name, judge in values.judges.items()}
    together = {name: values.influences(values.people, judge) for name, judge in values.judges.items()}
    candidates = {
        values.names[number]: CandidateMean(
            people=simple_mean(people, number, values.bounds, NOT_REVIEWED),
            judges={name: simple_mean(alone[name], number, values.bounds, NOT_JUDGED) for name in alone},
            corrected={name: corrected_mean(values, name, number, people, together[name]) for name in together},
            responses=len(values.by_candidate[number]),
        )
        for number in values.scored_candidates
    }
    return CandidateMeans(candidates, tuple(candidate_differences(values, people, alone, together)))


def simple_mean(influences: Mapping[int, ClusterInfluences], number: int, bounds: Bounds, empty: str) -> Estimate:
    own = influences.get(number)
    return mean_estimate(None if own is None else mean_sums(own), bounds, empty)


def corrected_mean(
    values: ResponseValues,
    name: str,
    number: int,
    people: Mapping[int, ClusterInfluences],
    together: Mapping[int, ClusterInfluences],
) -> CorrectedMean:
    judge, own = values.judges[name], values.by_candidate[number]
    scored = int(np.count_nonzero(~np.isnan(judge[own])))
    why = values.why_not_corrected(judge, number)
    if why is not None:
        return CorrectedMean(undefined_estimate(why), None, None, scored, scored / len(own))
    sums, of_people = mean_sums(together[number]), mean_sums(people[number]).variance
    estimate = corrected_estimate(sums, values.bounds)
    ratio = sqrt(sums.variance / of_people) if estimate.ci95 and of_people > 0 else None
    return CorrectedMean(estimate, sums.judge_weight, ratio, scored, scored / len(own))


Influences = Mapping[int, ClusterInfluences]


def candidate_differences(
    values: ResponseValues, people: Influences, alone: Mapping[str, Influences], together: Mapping[str, Influences]
) -> Iterator[CandidateDifference]:
    pairs = list(pairs_to_compare(values.scored_candidates))
    bounds = DIFFERENCE_BOUNDS if values.bounds is SHARE_BOUNDS else UNBOUNDED
    clusters = int(values.cluster.max(initial=-1)) + 1
    of_people = list(all_difference_sums(people, pairs, clusters))
    of_judges = {name: list(all_difference_sums(alone[name], pairs, clusters)) for name in alone}
    of_both = {name: list(all_difference_sums(together[name], pairs, clusters)) for name in together}
    for place, (first, second) in enumerate(pairs):
        yield CandidateDifference(
            values.names[first],
            values.names[second],
            difference_estimate(of_people[place], bounds),
            {
                name: judge_difference(
                    values, name, (first, second), of_judges[name][place], of_both[name][place], bounds
                )
                for name in alone
            },
        )


def judge_difference(
    values: ResponseValues,
    name: str,
    pair: tuple[int, int],
    alone: MeanSums | None,
    together: MeanSums | None,
    bounds: Bounds,
) -> JudgeDifference:
    judge = difference_estimate(alone, bounds)
    reasons = (values.why_not_corrected(values.judges[name], number) for number in pair)
    why = next((reason for reason in reasons if reason), None)
    if why is not None or together is None:
        return JudgeDifference(judge, undefined_estimate(why or NOT_BOTH), None)
    return JudgeDifference(judge, corrected_estimate(together, bounds), together.judge_weight)
