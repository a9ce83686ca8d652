"""Pass rates of candidates: from reviewers, from a judge, and corrected by PPI++ and by Rogan and Gladen.

A response passes by reviewers if more than half of those who scored it pass it. An even split is neither.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.stats.cluster_totals import Contributions
from evaluations.stats.coding import BoolArray, FloatArray, IntArray
from evaluations.stats.confidence_intervals import (
    CORRELATION_BOUNDS,
    SHARE_BOUNDS,
    Spread,
    why_counts_withhold_interval,
)
from evaluations.stats.corrected_means import (
    CandidateDifference,
    CandidateMean,
    CorrectedMean,
    ResponseValues,
    candidate_means,
)
from evaluations.stats.estimates import Estimate, undefined_estimate
from evaluations.stats.judge_verdicts import mean_by_unit
from evaluations.stats.rank_correlation import CONSTANT
from evaluations.stats.rogan_gladen import JudgedPasses, rogan_gladen
from evaluations.stats.score_reliability import PersonScores

EVEN: Final = 0.5
NO_CLASS: Final = "No response that the judge scored {} by reviewers."
NO_SHARED_PASS: Final = "No response has a result from both the judge and reviewers."
# The cells of reviewers' and the judge's result: 2 · reviewers pass + judge passes.
CELLS: Final = 4
REVIEWERS_PASS: Final[BoolArray] = np.array([False, False, True, True])
JUDGE_PASSES: Final[BoolArray] = np.array([False, True, False, True])
ANY_CELL: Final[BoolArray] = np.ones(CELLS, dtype=bool)
EQUAL: Final[BoolArray] = REVIEWERS_PASS == JUDGE_PASSES


@dataclass(frozen=True)
class PassRule:
    """A score passes from ``pass_from`` on, or up to it where lower scores are better.

    ``worse``: the other score of a scale of two; None where the reader set the threshold. A mean of several such scores
    passes if more than half of them do.
    """

    pass_from: float
    lower_is_better: bool = False
    worse: float | None = None

    @property
    def is_stated(self) -> bool:
        return self.worse is None

    def passes(self, scores: FloatArray) -> FloatArray:
        """1 for a pass, 0 for none, NaN without a score."""
        if self.worse is None:
            passed = scores <= self.pass_from if self.lower_is_better else scores >= self.pass_from
        else:
            passed = np.abs(scores - self.pass_from) < np.abs(scores - self.worse)
        return np.where(np.isnan(scores), np.nan, passed.astype(np.float64))


@dataclass(frozen=True)
class PassConfusion:
    """Counts of responses with a result from reviewers and the judge."""

    both_pass: int
    judge_alone_passes: int
    reviewers_alone_pass: int
    neither_passes: int


@dataclass(frozen=True)
class ClassRates:
    """How a judge's results agree with reviewers', by class.

    ``true_positive_rate``: of the responses that pass by reviewers, the share that the judge passes.
    ``true_negative_rate``: of those that fail, the share that it fails. ``informedness``: their sum − 1, 0 for a judge
    that does not look at the response. ``accuracy``: the share with the same result.
    """

    confusion: PassConfusion
    true_positive_rate: Estimate
    true_negative_rate: Estimate
    accuracy: Estimate
    informedness: Estimate


def class_rates(judge: FloatArray, reference: FloatArray, cluster: IntArray) -> ClassRates:
    """All arrays have an entry for each response; NaN is no result."""
    both = ~np.isnan(judge) & ~np.isnan(reference)
    cell = (2 * reference[both] + judge[both]).astype(np.int64)
    cells = Contributions(cluster[both], cell, CELLS)
    counts = np.rint(cells.totals).astype(np.int64).tolist()
    return ClassRates(
        confusion=PassConfusion(counts[3], counts[1], counts[2], counts[0]),
        true_positive_rate=wilson_share(
            cells, JUDGE_PASSES & REVIEWERS_PASS, REVIEWERS_PASS, NO_CLASS.format("passes")
        ),
        true_negative_rate=wilson_share(
            cells, ~JUDGE_PASSES & ~REVIEWERS_PASS, ~REVIEWERS_PASS, NO_CLASS.format("fails")
        ),
        accuracy=wilson_share(cells, EQUAL, ANY_CELL, NO_SHARED_PASS),
        informedness=informedness(cells),
    )


def wilson_share(cells: Contributions, part: BoolArray, whole: BoolArray, empty: str) -> Estimate:
    """The share of ``part`` in ``whole`` with Wilson's interval by cluster, n divided by the design effect."""
    n = round(float(cells.totals[whole].sum()))
    if not n:
        return undefined_estimate(empty)

    def share(totals: FloatArray) -> FloatArray:
        return np.asarray(totals[..., part].sum(axis=-1) / totals[..., whole].sum(axis=-1))

    number, spread = Estimate(float(share(cells.totals)), n), Spread(cells)
    return spread.wilson_interval(number, spread.variance(share), whole)


def informedness_statistic(totals: FloatArray) -> FloatArray:
    """TPR + TNR − 1, from totals (…, 4) → (…)."""
    neither, judge_alone, reviewers_alone, both = (totals[..., cell] for cell in range(CELLS))
    return np.asarray(both / (both + reviewers_alone) + neither / (neither + judge_alone) - 1)


def informedness(cells: Contributions) -> Estimate:
    """Undefined where a class is empty, and where the judge gives every response the same result."""
    n, totals = len(cells.cell), cells.totals
    if not n:
        return undefined_estimate(NO_SHARED_PASS)
    if not totals[REVIEWERS_PASS].any() or not totals[~REVIEWERS_PASS].any():
        return undefined_estimate(NO_CLASS.format("fails" if totals[REVIEWERS_PASS].any() else "passes"), n)
    if not totals[JUDGE_PASSES].any() or not totals[~JUDGE_PASSES].any():
        return undefined_estimate(CONSTANT, n)
    number = Estimate(float(informedness_statistic(totals)), n)
    counts = (cells.clusters_with(~EQUAL), cells.clusters_with(EQUAL))
    why = why_counts_withhold_interval(cells.effective_clusters(ANY_CELL), *counts, clusters=cells.clusters)
    if why is not None:
        return number.without_interval(why)
    return Spread(cells).interval(number, informedness_statistic, CORRELATION_BOUNDS)


@dataclass(frozen=True)
class JudgePassRate:
    """A candidate's pass rate by a judge. ``rogan_gladen``: corrected by the errors in ``classes``, its own."""

    judge: Estimate
    corrected: CorrectedMean
    rogan_gladen: Estimate
    classes: ClassRates


@dataclass(frozen=True)
class CandidatePassRate:
    people: Estimate
    judges: dict[str, JudgePassRate]
    responses: int


@dataclass(frozen=True)
class PassRates:
    """Pass rates by a threshold. ``split``: responses whose reviewers are evenly split, which are left out.

    ``judges``: the agreement of each judge with reviewers, all candidates together. ``differences``: as of means.
    """

    pass_from: float
    lower_is_better: bool
    is_stated: bool
    split: int
    candidates: dict[str, CandidatePassRate]
    differences: tuple[CandidateDifference, ...]
    judges: dict[str, ClassRates]


@dataclass(frozen=True)
class Reference:
    """``value``: the result by reviewers, 1 for a pass, 0 for none, NaN without one. ``split``: where they are even."""

    value: FloatArray
    split: BoolArray


def reference_passes(each: PersonScores, rule: PassRule, responses: int) -> Reference:
    """The result of each response by reviewers. ``each``: one score of each person on a response."""
    share = mean_by_unit(each.unit, rule.passes(each.value), responses)
    is_split = share == EVEN
    value = np.where(np.isnan(share) | is_split, np.nan, (share > EVEN).astype(np.float64))
    return Reference(value, is_split)


def pass_rates(
    reference: Reference, judges: Mapping[str, FloatArray], rule: PassRule, scores: ResponseValues
) -> PassRates:
    """``judges``: scores of each by name. ``scores``: the mean scores, for their candidates and clusters."""
    passes = {name: rule.passes(judge) for name, judge in judges.items()}
    values = ResponseValues(
        people=reference.value,
        judges=passes,
        candidate=scores.candidate,
        cluster=scores.cluster,
        names=scores.names,
        bounds=SHARE_BOUNDS,
        split=reference.split,
        stratum=scores.stratum,
    )
    means = candidate_means(values)
    return PassRates(
        pass_from=rule.pass_from,
        lower_is_better=rule.lower_is_better,
        is_stated=rule.is_stated,
        split=int(np.count_nonzero(reference.split)),
        candidates={
            values.names[number]: candidate_pass_rate(values, number, means.candidates[values.names[number]])
            for number in values.scored_candidates
        },
        differences=means.differences,
        judges={name: class_rates(judge, reference.value, values.cluster) for name, judge in passes.items()},
    )


def candidate_pass_rate(values: ResponseValues, number: int, mean: CandidateMean) -> CandidatePassRate:
    own = values.by_candidate[number]
    reference, cluster = values.people[own], values.cluster[own]
    return CandidatePassRate(
        people=mean.people,
        judges={
            name: JudgePassRate(
                judge=mean.judges[name],
                corrected=mean.corrected[name],
                rogan_gladen=rogan_gladen_of_candidate(values, name, number),
                classes=class_rates(judge[own], reference, cluster),
            )
            for name, judge in values.judges.items()
        },
        responses=mean.responses,
    )


def rogan_gladen_of_candidate(values: ResponseValues, name: str, number: int) -> Estimate:
    judge, own = values.judges[name], values.by_candidate[number]
    if (why := values.why_not_corrected[name][number]) is not None:
        return undefined_estimate(why)
    scored = own[~np.isnan(judge[own])]
    columns = judge[scored], values.people[scored], values.cluster[scored]
    return rogan_gladen(JudgedPasses(*columns, None if values.split is None else values.split[scored]))
