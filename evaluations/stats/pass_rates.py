"""Pass rates of candidates: from reviewers, from a judge, and corrected by PPI++ and by Rogan and Gladen.

A response passes by reviewers if more than half of those who scored it pass it. An even split is neither.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.stats.class_rates import ClassRates, class_rates, class_rates_by_group
from evaluations.stats.coding import BoolArray, FloatArray
from evaluations.stats.confidence_intervals import SHARE_BOUNDS
from evaluations.stats.corrected_means import (
    CandidateDifference,
    CandidateMeans,
    CorrectedMean,
    ResponseValues,
    candidate_means,
)
from evaluations.stats.estimates import Estimate, undefined_estimate
from evaluations.stats.judge_verdicts import mean_by_unit
from evaluations.stats.rogan_gladen import JudgedPasses, rogan_gladen
from evaluations.stats.score_reliability import PersonScores

EVEN: Final = 0.5


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
    by_judge = {name: candidate_pass_rates(values, means, name) for name in passes}
    return PassRates(
        pass_from=rule.pass_from,
        lower_is_better=rule.lower_is_better,
        is_stated=rule.is_stated,
        split=int(np.count_nonzero(reference.split)),
        candidates={
            name: CandidatePassRate(
                mean.people, {judge: rates[name] for judge, rates in by_judge.items()}, mean.responses
            )
            for name, mean in means.candidates.items()
        },
        differences=means.differences,
        judges={name: class_rates(judge, reference.value, values.cluster) for name, judge in passes.items()},
    )


def candidate_pass_rates(values: ResponseValues, means: CandidateMeans, judge: str) -> dict[str, JudgePassRate]:
    """The pass rates of one judge, by candidate."""
    passes, count = values.judges[judge], len(values.names)
    classes = class_rates_by_group(passes, values.people, values.cluster, values.candidate, count)
    corrected = rogan_gladen(
        JudgedPasses(
            passes, values.people, values.cluster, values.split, values.stratum, values.candidate, groups=count
        )
    )
    reasons = values.why_not_corrected[judge]
    return {
        values.names[number]: JudgePassRate(
            judge=means.candidates[values.names[number]].judges[judge],
            corrected=means.candidates[values.names[number]].corrected[judge],
            rogan_gladen=corrected[number] if (why := reasons[number]) is None else undefined_estimate(why),
            classes=classes[number],
        )
        for number in values.scored_candidates
    }
