"""Means of scores, or pass rates, of candidates: from reviewers, from a judge, and corrected by PPI++.

With F̂ the judge's mean over all N responses that it scored, and Ȳ and F̄ the means of reviewers and judge over those
that both scored, each with the weight w = 1/π (`post_stratification`; all 1 without strata),

    θ(λ) = λ F̂ + Ȳ − λ F̄,    variance Σ (y_g − λ d_g)² over clusters g,

as in `ppi` (Angelopoulos, Duchi and Zrnic 2023), y_g and d_g being what Ȳ and F̄ − F̂ are more than without the cluster
(`ResponseCells.influence`): the linearised variance of `ppi` covers 91–93 % where sizes of clusters follow Zipf, or one
is a giant. Reviewed responses without a value, on which reviewers are evenly split, are in F̄ and not in Ȳ, because F̂
has such responses, too. The influences of two candidates are subtracted cluster by cluster, so that a difference has
one λ, and the covariance of responses to a query is in its variance.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import sqrt
from typing import Final

import numpy as np

from evaluations.stats.coding import BoolArray, FloatArray, IntArray
from evaluations.stats.confidence_intervals import (
    MIN_CLUSTERS,
    MIN_DISAGREEING,
    NOISE,
    ONE_CLUSTER,
    SHARE_BOUNDS,
    UNBOUNDED,
    Bounds,
    wilson_from_variance,
)
from evaluations.stats.estimates import NO_INTERVAL, Estimate, undefined_estimate
from evaluations.stats.judge_verdicts import MIN_COVERED
from evaluations.stats.mean_influences import (
    ClusterInfluences,
    MeanSums,
    Pair,
    ResponseCells,
    all_difference_sums,
    all_mean_sums,
    candidate_influences,
    cluster_influences,
    mean_sums,
    response_cells,
)
from evaluations.stats.significance import t_975

MAX_ALL_PAIRS: Final = 30  # candidates: above, the first is compared with each of the others
NOT_SCORED: Final = "No response of this model has a score."
NOT_REVIEWED: Final = "No response of this model has a score from reviewers."
NOT_JUDGED: Final = "The judge scored no response of this model."
NOT_SHARED: Final = "No response of this model has scores from both the judge and reviewers."
NOT_BOTH: Final = "At least one of the two models has no such scores."
PARTLY_SCORED: Final = "The judge scored {:,} of {:,} responses. A correction needs {}% of them."
HARDLY_VARIED: Final = "Too few reviewed clusters with anything but the most common score for a CI ({} < {})."
HARDLY_CORRECTED: Final = (
    "Too few reviewed clusters on which judge and reviewers differ for a corrected CI ({} < {}): the judge's error is "
    "barely known."
)
DIFFERENCE_BOUNDS: Final[Bounds] = (-1.0, 1.0)  # of two shares


def pairs_to_compare(candidates: Sequence[int]) -> Iterator[tuple[int, int]]:
    """All pairs of candidates; above MAX_ALL_PAIRS the first with each of the others."""
    if len(candidates) <= MAX_ALL_PAIRS:
        yield from combinations(candidates, 2)
    else:
        yield from ((candidates[0], other) for other in candidates[1:])


def mean_interval(number: Estimate, sums: MeanSums, bounds: Bounds) -> Estimate:
    """± t by effective clusters; Wilson's for shares with few clusters, or few that differ."""
    if sums.clusters < 2:
        return number.without_interval(ONE_CLUSTER)
    if bounds is SHARE_BOUNDS and (sums.effective < MIN_CLUSTERS or sums.varied < MIN_DISAGREEING):
        return wilson_from_variance(number, sums.clusters, sums.variance, sums.effective)
    if sqrt(sums.variance) <= NOISE * max(abs(number.value or 0.0), NOISE):
        return number.without_interval(NO_INTERVAL)
    return number.with_margin(t_975(sums.degrees) * sqrt(sums.variance), bounds, f"t over {sums.clusters:,} clusters")


def mean_estimate(sums: MeanSums, bounds: Bounds, empty: str) -> Estimate:
    """The mean of one side alone."""
    if not sums.n:
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
    """``people`` and ``judges``: the means; ``corrected``: by judge. ``responses``: all of the candidate.

    ``excluded``: those with scores of reviewers of which none counts, because they were not drawn at random.
    """

    people: Estimate
    judges: dict[str, Estimate]
    corrected: dict[str, CorrectedMean]
    responses: int
    excluded: int


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
    ``bounds``: of a mean. ``split``: the responses that were reviewed and have no value. ``stratum``: in each every
    response had the same chance to be reviewed; None for a single one. ``picked_by_hand``: the responses with scores
    of reviews that were not drawn at random, which do not count.
    """

    people: FloatArray
    judges: Mapping[str, FloatArray]
    candidate: IntArray
    cluster: IntArray
    names: Sequence[str]
    bounds: Bounds = UNBOUNDED
    split: BoolArray | None = None
    stratum: IntArray | None = None
    picked_by_hand: IntArray | None = None

    @cached_property
    def cells(self) -> ResponseCells:
        return response_cells(self.candidate, self.cluster, len(self.names))

    @cached_property
    def scored_candidates(self) -> list[int]:
        """Those with a response that reviewers or a judge scored, in the order of names."""
        scored = ~np.isnan(self.people)
        for judge in self.judges.values():
            scored |= ~np.isnan(judge)
        return [number for number, count in enumerate(self.count(scored).tolist()) if count]

    def count(self, chosen: BoolArray) -> IntArray:
        """How many of the chosen responses each candidate has."""
        return np.bincount(self.candidate[chosen], minlength=len(self.names))

    def influences(self, judge: FloatArray | None = None) -> ClusterInfluences:
        """Of reviewers' means, alone or beside a judge."""
        return candidate_influences(self.cells, self.people, judge, self.split, self.stratum)

    @cached_property
    def excluded(self) -> list[int]:
        """How many responses of each candidate have scores of reviewers of which none counts."""
        if self.picked_by_hand is None:
            return [0] * len(self.names)
        has_some = np.zeros(len(self.people), dtype=np.bool_)
        has_some[self.picked_by_hand] = True
        return list(map(int, self.count(has_some & np.isnan(self.people))))

    @cached_property
    def responses(self) -> list[int]:
        """How many responses each candidate has."""
        return list(map(int, np.bincount(self.candidate, minlength=len(self.names))))

    @cached_property
    def scored(self) -> dict[str, list[int]]:
        """How many responses of each candidate each judge scored, by the judge's name."""
        return {name: self.count(~np.isnan(judge)).tolist() for name, judge in self.judges.items()}

    @cached_property
    def why_not_corrected(self) -> dict[str, list[str | None]]:
        """By judge, why the mean of each candidate is not corrected by it, if it is not."""
        is_reviewed = ~np.isnan(self.people)
        reviewed = self.count(is_reviewed).tolist()
        return {
            name: [
                self.explain_no_correction(*counts)
                for counts in zip(
                    self.responses,
                    self.scored[name],
                    reviewed,
                    self.count(is_reviewed & ~np.isnan(judge)).tolist(),
                    strict=True,
                )
            ]
            for name, judge in self.judges.items()
        }

    def explain_no_correction(self, responses: int, scored: int, reviewed: int, shared: int) -> str | None:
        """Why a candidate's mean is not corrected, from how many responses it has, or None."""
        if not reviewed or not scored:
            return NOT_JUDGED if reviewed else NOT_REVIEWED
        if 100 * scored < MIN_COVERED * responses:
            return PARTLY_SCORED.format(scored, responses, MIN_COVERED)
        return None if shared else NOT_SHARED


def candidate_means(values: ResponseValues) -> CandidateMeans:
    """Means of every candidate with a scored response, and their differences."""
    people = values.influences()
    alone = {name: candidate_influences(values.cells, judge, None) for name, judge in values.judges.items()}
    together = {name: values.influences(judge) for name, judge in values.judges.items()}
    of_people = all_mean_sums(people)
    of_judges, of_both = ({name: all_mean_sums(one) for name, one in by_name.items()} for by_name in (alone, together))
    candidates = {
        values.names[number]: CandidateMean(
            people=mean_estimate(of_people[number], values.bounds, NOT_REVIEWED),
            judges={name: mean_estimate(sums[number], values.bounds, NOT_JUDGED) for name, sums in of_judges.items()},
            corrected={
                name: corrected_mean(values, name, number, of_people[number], sums[number])
                for name, sums in of_both.items()
            },
            responses=values.responses[number],
            excluded=values.excluded[number],
        )
        for number in values.scored_candidates
    }
    return CandidateMeans(candidates, tuple(candidate_differences(values, people, alone, together)))


def corrected_mean(
    values: ResponseValues, name: str, number: int, people: MeanSums, together: MeanSums
) -> CorrectedMean:
    scored = values.scored[name][number]
    coverage, why = scored / values.responses[number], values.why_not_corrected[name][number]
    if why is not None:
        return CorrectedMean(undefined_estimate(why), None, None, scored, coverage)
    estimate = corrected_estimate(together, values.bounds)
    ratio = sqrt(together.variance / people.variance) if estimate.ci95 and people.variance > 0 else None
    return CorrectedMean(estimate, together.judge_weight, ratio, scored, coverage)


Influences = Mapping[str, ClusterInfluences]  # by the judge's name


def candidate_differences(
    values: ResponseValues, people: ClusterInfluences, alone: Influences, together: Influences
) -> Iterator[CandidateDifference]:
    pairs = list(pairs_to_compare(values.scored_candidates))
    bounds = DIFFERENCE_BOUNDS if values.bounds is SHARE_BOUNDS else UNBOUNDED
    clusters = int(values.cluster.max(initial=-1)) + 1
    of_people = all_difference_sums(people, pairs, clusters)
    of_judges = {name: all_difference_sums(one, pairs, clusters) for name, one in alone.items()}
    of_both = {name: all_difference_sums(one, pairs, clusters) for name, one in together.items()}
    for place, (first, second) in enumerate(pairs):
        yield CandidateDifference(
            values.names[first],
            values.names[second],
            difference_estimate(of_people[place], bounds),
            {
                name: judge_difference(
                    values.why_not_corrected[name],
                    (first, second),
                    of_judges[name][place],
                    of_both[name][place],
                    bounds,
                )
                for name in alone
            },
        )


def judge_difference(
    reasons: Sequence[str | None], pair: Pair, alone: MeanSums | None, together: MeanSums | None, bounds: Bounds
) -> JudgeDifference:
    """``reasons``: why the mean of each candidate is not corrected, if it is not."""
    judge, (first, second) = difference_estimate(alone, bounds), pair
    why = reasons[first] or reasons[second]
    if why is not None or together is None:
        return JudgeDifference(judge, undefined_estimate(why or NOT_BOTH), None)
    return JudgeDifference(judge, corrected_estimate(together, bounds), together.judge_weight)
