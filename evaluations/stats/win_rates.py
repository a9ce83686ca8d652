"""Win rates of candidates and of pairs: from people, from a judge, and corrected by PPI++.

A win rate is the mean, over all queries, of the mean outcome of the candidate in the query's comparisons: 1 for a win,
½ for a tie or both bad, 0 for a loss. Comparisons without a verdict of the judge are excluded.
"""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import inf, sqrt
from statistics import NormalDist
from typing import Final

import numpy as np

from evaluations.stats.coding import BoolArray, FloatArray, IntArray
from evaluations.stats.confidence_intervals import (
    MIN_CLUSTERS,
    MIN_DISAGREEING,
    NOISE,
    ONE_CLUSTER,
    SHARE_BOUNDS,
    wilson_from_variance,
)
from evaluations.stats.estimates import Estimate, undefined_estimate
from evaluations.stats.group_means import GroupMeans, ReviewedSample
from evaluations.stats.judge_verdicts import MIN_COVERED, why_coverage_too_low
from evaluations.stats.matches import Matches
from evaluations.stats.outcomes import JudgedMatches, ReviewedMatches, restrict_to_judged
from evaluations.stats.ppi import PpiMeans, SampleWithJudge, ppi_means
from evaluations.stats.significance import t_975, t_quantile_by_expansion
from evaluations.stats.simultaneous_intervals import LEVEL, Claim, claim_from_interval

NOT_REVIEWED: Final = "No randomly drawn comparison has reviewer votes."
NOT_JUDGED: Final = "The judge has no verdict on any of these comparisons."
NOT_SHARED: Final = "No comparison with a verdict of the judge has reviewer votes."
NO_COMPARISON: Final = "The model is in no comparison."
HARDLY_VARIED: Final = (
    "Too few reviewed clusters with anything but the most common choice for a corrected CI ({} < {})."
)
HARDLY_CORRECTED: Final = (
    "Too few reviewed clusters on which judge and reviewers differ for a corrected CI ({} < {}): the judge's error is "
    "barely known."
)


@dataclass(frozen=True)
class WinRate:
    """Three estimates of the same mean over the queries of so many ``comparisons``.

    ``missing``: comparisons without a verdict of the judge: its own rate and the corrected one are over the others.
    ``excluded``: comparisons with votes that were not drawn at random. ``judge_weight``: λ, how much of the judge the
    corrected rate uses. ``width_ratio``: the width of the corrected interval ÷ that from people alone. ``claim``:
    whether the judge is shown to be above or below people on the comparisons that both have, over all claims of the
    report at once; of a rate that cannot be corrected nothing is.
    """

    people: Estimate
    judge: Estimate
    corrected: Estimate
    comparisons: int
    missing: int
    excluded: int
    judge_weight: float | None
    width_ratio: float | None
    claim: Claim = Claim.NONE


@dataclass(frozen=True)
class PairWinRate:
    """The win rate of ``first`` over ``second``."""

    first: str
    second: str
    rate: WinRate


@dataclass(frozen=True)
class WinRates:
    """The win rates of candidates, by name, and of the compared pairs."""

    candidates: dict[str, WinRate]
    pairs: tuple[PairWinRate, ...]


@dataclass(frozen=True)
class GroupCounts:
    """How many comparisons each group has: all, ``missing`` a verdict, ``lacking`` one that was to be given.

    ``excluded``: those with votes that were not drawn at random.
    """

    comparisons: IntArray
    missing: IntArray
    lacking: IntArray
    excluded: IntArray

    def over_candidates(self, matches: Matches) -> "GroupCounts":
        """The counts of candidates, from these of pairs."""
        columns = (self.comparisons, self.missing, self.lacking, self.excluded)
        return GroupCounts(*map(matches.sum_over_pairs, columns))


def estimate_win_rates(
    reviewed: ReviewedMatches, judgement: JudgedMatches, selected: BoolArray | None = None, *, claims: int = 1
) -> WinRates:
    """``selected``: the comparisons that the judge was to judge; None: all.

    ``claims``: of how many candidates, on all aspects and of all judges, the report may say that a judge errs.
    """
    matches, names = reviewed.matches, reviewed.matches.items.candidates
    counted = count_groups(reviewed, judgement, selected)
    shared, judged = restrict_to_judged(reviewed, judgement)
    pairs = GroupRates(reviewed.pairs, SampleWithJudge(shared.pairs, judged.pairs), counted).all
    return WinRates(
        candidates=estimate_candidate_rates(reviewed, judgement, selected, claims=claims),
        pairs=tuple(
            PairWinRate(names[first], names[second], rate)
            for first, second, rate in zip(matches.first, matches.second, pairs, strict=True)
        ),
    )


def estimate_candidate_rates(
    reviewed: ReviewedMatches, judgement: JudgedMatches, selected: BoolArray | None = None, *, claims: int = 1
) -> dict[str, WinRate]:
    """The win rates of candidates, by name. Parameters as of `estimate_win_rates`."""
    rates = candidate_group_rates(reviewed, judgement, selected)
    return {
        name: replace(rate, claim=Claim.NONE if rate.corrected.value is None else claim)
        for name, rate, claim in zip(
            reviewed.matches.items.candidates, rates.all, win_rate_claims(rates.together, claims), strict=True
        )
    }


def candidate_group_rates(
    reviewed: ReviewedMatches, judgement: JudgedMatches, selected: BoolArray | None = None
) -> "GroupRates":
    """The win rates of candidates, by number. ``selected``: as of `estimate_win_rates`."""
    counted = count_groups(reviewed, judgement, selected).over_candidates(reviewed.matches)
    shared, judged = restrict_to_judged(reviewed, judgement)
    return GroupRates(reviewed.candidates, SampleWithJudge(shared.candidates, judged.candidates), counted)


def count_groups(reviewed: ReviewedMatches, judgement: JudgedMatches, selected: BoolArray | None) -> GroupCounts:
    matches, missing = reviewed.matches, ~judgement.judged
    lacking = missing if selected is None else missing & selected
    without_verdict, lacking_verdict = (
        np.bincount(matches.pair[some], minlength=len(matches.compared_pairs)) for some in (missing, lacking)
    )
    return GroupCounts(matches.pair_sizes, without_verdict, lacking_verdict, reviewed.excluded)


def win_rate_claims(together: SampleWithJudge, claims: int) -> list[Claim]:
    """For each group, the claim that judge and people differ, by t at the level of one of so many claims."""
    means, z = together.sample.means, NormalDist().inv_cdf(1 - LEVEL / (2 * claims))
    differing = together.sample.clusters_where(together.among_reviewed != together.sample.outcome)
    columns = *together.judge_lead, means.effective, differing
    win_claims = []
    for value, variance, effective, count in zip(*(column.tolist() for column in columns), strict=True):
        is_reliable = effective >= MIN_CLUSTERS and count >= MIN_DISAGREEING and variance > NOISE**2
        margin = t_quantile_by_expansion(z, effective - 1) * sqrt(variance) if is_reliable else inf
        win_claims.append(claim_from_interval(value - margin, value + margin) if is_reliable else Claim.NONE)
    return win_claims


@dataclass(frozen=True)
class GroupRates:
    """The three estimates in each group. ``sample``: all that people reviewed, judged or not."""

    sample: ReviewedSample
    together: SampleWithJudge
    counted: GroupCounts

    @cached_property
    def correction(self) -> PpiMeans:
        return ppi_means(self.together)

    @property
    def all(self) -> list[WinRate]:
        return [self.of(group) for group in range(len(self.sample.groups))]

    @cached_property
    def leading(self) -> FloatArray:
        """Of each group the corrected win rate, else that of people, else of the judge; NaN without any."""
        people, judge, shared = self.sample.means, self.together.judged.means, self.together.sample.means
        judged = self.counted.comparisons - self.counted.missing
        is_covered = 100 * judged >= MIN_COVERED * (judged + self.counted.lacking)
        is_corrected = (people.n > 0) & (judge.n > 0) & (shared.n > 0) & is_covered
        alone = np.where(people.n > 0, people.value, judge.value)
        return np.where(is_corrected, np.clip(self.correction.value, 0.0, 1.0), alone)

    def of(self, group: int) -> WinRate:
        comparisons, missing = int(self.counted.comparisons[group]), int(self.counted.missing[group])
        people, correction = self.sample.means, self.correction
        alone = mean_estimate(people, group, NOT_REVIEWED if comparisons else NO_COMPARISON)
        by_judge = mean_estimate(self.together.judged.means, group, NOT_JUDGED)
        shared, judged = self.together.sample.means, comparisons - missing
        why = alone.why or by_judge.why or why_coverage_too_low(judged, judged + int(self.counted.lacking[group]))
        why = why or (None if shared.n[group] else NOT_SHARED)
        estimate = undefined_estimate(why) if why else ppi_estimate(correction, shared, group)
        of_people = float(people.variance[group])
        has_ratio = estimate.ci95 and alone.ci95 and of_people > 0
        return WinRate(
            people=alone,
            judge=by_judge,
            corrected=estimate,
            comparisons=comparisons,
            missing=missing,
            excluded=int(self.counted.excluded[group]),
            judge_weight=None if why else float(correction.judge_weight[group]),
            width_ratio=sqrt(max(float(correction.variance[group]), 0.0) / of_people) if has_ratio else None,
        )


def mean_estimate(means: GroupMeans, group: int, empty: str) -> Estimate:
    """The mean with a t interval where enough clusters differ, else with Wilson's."""
    mean = means.rows[group]
    if not mean.n:
        return undefined_estimate(empty)
    return t_interval_of_mean(
        mean.value,
        mean.n,
        mean.clusters,
        mean.effective,
        mean.variance if mean.clusters > 1 else 0.0,
        mean.varied >= MIN_DISAGREEING,
    )


def ppi_estimate(correction: PpiMeans, people: GroupMeans, group: int) -> Estimate:
    """The corrected mean, with an interval where enough reviewed clusters differ, cut off at 0 and 1."""
    value, mean = min(max(float(correction.value[group]), 0.0), 1.0), people.rows[group]
    if mean.clusters < 2:
        return Estimate(value, mean.n, ci95_why=ONE_CLUSTER)
    if mean.varied < MIN_DISAGREEING:
        return Estimate(value, mean.n, ci95_why=HARDLY_VARIED.format(mean.varied, MIN_DISAGREEING))
    if correction.judge_weight[group] and correction.differing[group] < MIN_DISAGREEING:
        return Estimate(value, mean.n, ci95_why=HARDLY_CORRECTED.format(correction.differing[group], MIN_DISAGREEING))
    variance = float(correction.variance[group])
    return t_interval_of_mean(value, mean.n, mean.clusters, mean.effective, variance, enough_differ=True)


@lru_cache(maxsize=1 << 12)  # where groups are many they are small, and often the same
def t_interval_of_mean(
    value: float, n: int, clusters: int, effective: float, variance: float, enough_differ: bool
) -> Estimate:
    """± t · √variance with clusters − 1 degrees of freedom, cut off at 0 and 1; for few clusters Wilson's interval."""
    number = Estimate(value, n)
    if effective < MIN_CLUSTERS or not enough_differ:
        return wilson_from_variance(number, clusters, variance, effective)
    margin = t_975(clusters - 1) * sqrt(max(variance, 0.0))
    return number.with_margin(margin, SHARE_BOUNDS, f"t over {clusters:,} clusters")
