"""The report on the scores of single responses on one aspect.

A person who scored a response several times counts once there, with the mean.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final

import numpy as np

from evaluations.domain.reports import ReportRules
from evaluations.stats.alt_test import AltTest, advantage_of_distances, advantage_of_scores, alt_test
from evaluations.stats.aspect_report import VoteCounts
from evaluations.stats.cluster_totals import number_clusters
from evaluations.stats.coding import BoolArray, FloatArray, IntArray
from evaluations.stats.corrected_means import (
    CandidateDifference,
    CandidateMean,
    ResponseValues,
    candidate_means,
)
from evaluations.stats.estimates import drop_rounding_noise
from evaluations.stats.human_agreement import MAX_REVIEWERS, PAIRS_OF_MANY
from evaluations.stats.judge_verdicts import mean_by_unit
from evaluations.stats.pass_rates import PassRates, PassRule, pass_rates, reference_passes
from evaluations.stats.score_agreement import ScoreAgreement, score_agreement
from evaluations.stats.score_calibration import LargeDifferences, ScoreCalibration, large_differences, score_calibration
from evaluations.stats.score_ceiling import ScoreCeiling, score_ceiling
from evaluations.stats.score_reliability import PersonScores, ScoreReliability, score_reliability
from evaluations.stats.votes import rating_design

DEFAULT_RULES: Final = ReportRules()


@dataclass(frozen=True)
class ScorePair(ScoreAgreement):
    rater_1: str
    rater_2: str


@dataclass(frozen=True)
class HumanScores:
    """``others``: every score of a person against the mean of the other people's of the same response.

    ``pairs_left_out``: further pairs of reviewers who share a response, if there are many reviewers.
    """

    others: ScoreAgreement
    pairs: tuple[ScorePair, ...]
    multi: ScoreReliability
    pairs_left_out: int = 0


@dataclass(frozen=True)
class ScoreAltTests:
    """The alternative annotator test with S = −|difference| and with S = −RMSE."""

    absolute_difference: AltTest
    root_mean_square_difference: AltTest


@dataclass(frozen=True)
class JudgeScores:
    """``people``: against the mean of people's scores; ``each``: against each person by name. Differences: judge −."""

    people: ScoreAgreement
    each: dict[str, ScoreAgreement]
    ceiling: ScoreCeiling
    alt_tests: ScoreAltTests
    calibration: ScoreCalibration
    large_differences: LargeDifferences


@dataclass(frozen=True)
class ScoresAfterJudge:
    """Scores of reviews made after seeing the judge, which enter no other number. ``judges``: with their mean."""

    scores: int
    judges: dict[str, ScoreAgreement]


@dataclass(frozen=True)
class ScoreReport:
    """One aspect. ``human_scores``: how many people gave, by what they knew. ``judge_judge``: every two judges.

    ``candidates``: the mean scores of each, by name. ``pass_rates``: where scores have two values, or a threshold is
    stated.
    """

    human_scores: VoteCounts
    candidates: dict[str, CandidateMean]
    differences: tuple[CandidateDifference, ...]
    pass_rates: PassRates | None
    human_human: HumanScores
    judges: dict[str, JudgeScores]
    judge_judge: tuple[ScorePair, ...]
    saw_judge_first: ScoresAfterJudge


@dataclass(frozen=True)
class AspectScores:
    """Scores of single responses on one aspect.

    ``name``: of the aspect. ``people``: the scores that count; ``saw_judge_first``: those of reviews that saw the judge
    first, which do not. ``names``: the person of each rater number. ``judges``: by name, the judge's mean score of each
    response, NaN where it has none; ``failed``: by name, the responses without one because calls failed, if there are
    any. ``cluster`` and ``candidate``: of each response, the latter as index of
    ``candidates``. ``responses``: their ids in the database. ``two_values``: the scale, if it has only two.
    ``stratum`` and ``picked_by_hand``: as in `ResponseValues`.
    """

    name: str
    people: PersonScores
    saw_judge_first: PersonScores
    counts: VoteCounts
    names: tuple[str, ...]
    judges: Mapping[str, FloatArray]
    cluster: IntArray
    candidate: IntArray
    candidates: tuple[str, ...]
    responses: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    two_values: tuple[float, float] | None = None
    lower_is_better: bool = False
    failed: Mapping[str, BoolArray] = field(default_factory=dict)
    stratum: IntArray | None = None
    picked_by_hand: IntArray | None = None

    def pass_rule(self, pass_from: float | None) -> PassRule | None:
        """The rule by the reader's threshold, else by the better of two values; None without either."""
        if pass_from is not None:
            return PassRule(pass_from, self.lower_is_better)
        if self.two_values is None:
            return None
        worse, better = self.two_values[:: -1 if self.lower_is_better else 1]
        return PassRule(better, self.lower_is_better, worse)

    def observed_range(self, judge: str) -> float:
        """The highest score of reviewers and this judge − the lowest."""
        given = np.concatenate([self.people.value, self.judges[judge][~np.isnan(self.judges[judge])]])
        return float(np.ptp(given)) if len(given) else 0.0


@dataclass(frozen=True)
class ReviewedScores:
    """People's scores. ``each``: one of each person on a response. ``mean``: of each response, NaN without a score."""

    each: PersonScores
    mean: FloatArray


def review_scores(scores: AspectScores) -> ReviewedScores:
    responses = len(scores.cluster)
    each = mean_score_per_person(scores.people, responses)
    return ReviewedScores(each, mean_by_unit(each.unit, each.value, responses))


def score_report(scores: AspectScores, rules: ReportRules = DEFAULT_RULES) -> ScoreReport:
    """The report on one aspect. Of the rules, those on pairs of reviewers and on the score of a pass apply."""
    judges, cluster, reviewed = scores.judges, scores.cluster, review_scores(scores)
    scored = ~np.isnan(reviewed.mean)  # mostly few of many
    each = PersonScores((np.cumsum(scored) - 1)[reviewed.each.unit], reviewed.each.rater, reviewed.each.value)
    shared = ScoredResponses(each, reviewed.mean[scored], number_clusters(cluster[scored]).of, scores.names)
    values = response_values(scores, reviewed)
    means, rule = candidate_means(values), scores.pass_rule(rules.pass_from)
    return ScoreReport(
        human_scores=scores.counts,
        candidates=means.candidates,
        differences=means.differences,
        pass_rates=None
        if rule is None
        else pass_rates(reference_passes(reviewed.each, rule, len(cluster)), judges, rule, values),
        human_human=human_score_agreement(each, scores.names, shared.cluster, rules.all_pairs),
        judges={
            name: judge_scores(judge[scored], shared, scores.observed_range(name)) for name, judge in judges.items()
        },
        judge_judge=tuple(
            name_score_pair(shared_score_agreement(judges[name_1], judges[name_2], cluster), name_1, name_2)
            for name_1, name_2 in combinations(judges, 2)
        ),
        saw_judge_first=score_agreement_after_judge(scores.saw_judge_first, judges, cluster),
    )


def response_values(scores: AspectScores, reviewed: ReviewedScores) -> ResponseValues:
    return ResponseValues(
        people=reviewed.mean,
        judges=scores.judges,
        candidate=scores.candidate,
        cluster=scores.cluster,
        names=scores.candidates,
        stratum=scores.stratum,
        picked_by_hand=scores.picked_by_hand,
    )


@dataclass(frozen=True)
class ScoredResponses:
    """The responses that people scored; ``mean`` and ``cluster`` of each. ``names``: of the people, by rater number."""

    each: PersonScores
    mean: FloatArray
    cluster: IntArray
    names: Sequence[str]


def mean_score_per_person(scores: PersonScores, units: int) -> PersonScores:
    """A person's mean score of each response, in the order of people and then of responses."""
    key = scores.rater * units + scores.unit
    order = np.argsort(key)
    key, value = key[order], scores.value[order]
    starts = np.flatnonzero(np.append(True, key[1:] != key[:-1])[: len(key)])
    if len(starts) < len(key):
        value = drop_rounding_noise(np.add.reduceat(value, starts) / np.diff(np.append(starts, len(key))))
        key = key[starts]
    return PersonScores(key % units, key // units, value)


def scores_by_person(each: PersonScores, names: Sequence[str]) -> Iterator[tuple[str, slice]]:
    """Each person with scores, and the slice of their scores."""
    ends = np.searchsorted(each.rater, np.arange(len(names) + 1)).tolist()
    for name, first, last in zip(names, ends, ends[1:], strict=False):
        if first < last:
            yield name, slice(first, last)


def score_agreement_after_judge(
    late: PersonScores, judges: Mapping[str, FloatArray], cluster: IntArray
) -> ScoresAfterJudge:
    if not len(late.value):
        return ScoresAfterJudge(0, {})
    each = mean_score_per_person(late, len(cluster))
    mean = mean_by_unit(each.unit, each.value, len(cluster))
    by_judge = {name: shared_score_agreement(judge, mean, cluster) for name, judge in judges.items()}
    return ScoresAfterJudge(len(late.value), by_judge)


def judge_scores(judge: FloatArray, reviewed: ScoredResponses, observed_range: float) -> JudgeScores:
    """``judge``: its score of each reviewed response, NaN where it has none. ``observed_range``: of all scores."""
    each, cluster, names = reviewed.each, reviewed.cluster, reviewed.names
    scores = judge[each.unit]
    advantages = (advantage(judge, each, cluster) for advantage in (advantage_of_distances, advantage_of_scores))
    return JudgeScores(
        people=shared_score_agreement(judge, reviewed.mean, cluster),
        each={
            name: shared_score_agreement(scores[own], each.value[own], cluster[each.unit[own]])
            for name, own in scores_by_person(each, names)
        },
        ceiling=score_ceiling(judge, each, names, cluster),
        alt_tests=ScoreAltTests(*(alt_test(advantage, names, "responses") for advantage in advantages)),
        calibration=score_calibration(judge, reviewed.mean, cluster),
        large_differences=large_differences(judge, reviewed.mean, cluster, observed_range),
    )


def shared_score_agreement(first: FloatArray, second: FloatArray, cluster: IntArray) -> ScoreAgreement:
    """Agreement on the responses that both scored; NaN is no score."""
    both = ~np.isnan(first) & ~np.isnan(second)
    return score_agreement(first[both], second[both], cluster[both])


def name_score_pair(agreement: ScoreAgreement, rater_1: str, rater_2: str) -> ScorePair:
    return ScorePair(**vars(agreement), rater_1=rater_1, rater_2=rater_2)


def human_score_agreement(each: PersonScores, names: Sequence[str], cluster: IntArray, all_pairs: bool) -> HumanScores:
    scores = np.bincount(each.unit, minlength=len(cluster))
    shared = scores[each.unit] > 1
    unit, value = each.unit[shared], each.value[shared]
    of_all = np.bincount(unit, value, len(cluster))
    of_others = drop_rounding_noise((of_all[unit] - value) / (scores[unit] - 1))
    people = dict(scores_by_person(each, names))
    two, left_out = list(combinations(people, 2)), 0
    if len(people) > MAX_REVIEWERS and not all_pairs:
        design = rating_design(each.unit, each.rater)
        two = [(names[rater_1], names[rater_2]) for rater_1, rater_2 in design.largest_shared_items(PAIRS_OF_MANY)]
        left_out = len(design.pair_sizes[0]) - len(two)
    return HumanScores(
        others=score_agreement(value, of_others, cluster[unit]),
        pairs=tuple(score_pairs(each, people, two, cluster)),
        multi=score_reliability(each, scores, cluster),
        pairs_left_out=left_out,
    )


def score_pairs(
    each: PersonScores, people: Mapping[str, slice], two: Sequence[tuple[str, str]], cluster: IntArray
) -> Iterator[ScorePair]:
    """Agreement of pairs of people who scored the same responses."""
    of_first = np.full(len(cluster), np.nan)
    for rater_1, rater_2 in two:
        first, second = people[rater_1], people[rater_2]
        of_first[each.unit[first]] = each.value[first]
        agreement = shared_score_agreement(of_first[each.unit[second]], each.value[second], cluster[each.unit[second]])
        of_first[each.unit[first]] = np.nan
        if agreement.n:
            yield name_score_pair(agreement, rater_1, rater_2)
