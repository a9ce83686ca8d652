"""The report on the scores of single responses on one aspect.

A person who scored a response several times counts once there, with the mean.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import floor, sqrt
from typing import Final

import numpy as np

from evaluations.stats.aspect_report import VoteCounts
from evaluations.stats.cluster_totals import effective_cluster_count, number_clusters
from evaluations.stats.coding import FloatArray, IntArray
from evaluations.stats.confidence_intervals import ONE_CLUSTER, ROUNDING
from evaluations.stats.estimates import NO_INTERVAL, Estimate, drop_rounding_noise, undefined_estimate
from evaluations.stats.human_agreement import MAX_REVIEWERS, PAIRS_OF_MANY
from evaluations.stats.judge_verdicts import mean_by_unit
from evaluations.stats.score_agreement import ScoreAgreement, score_agreement
from evaluations.stats.score_reliability import PersonScores, ScoreReliability, score_reliability
from evaluations.stats.significance import t_975
from evaluations.stats.votes import rating_design

NOT_SCORED: Final = "No response of this model has a score."


@dataclass(frozen=True)
class CandidateMeanScores:
    """Mean scores over the candidate's responses. ``judges``: by name. ``n`` of each counts responses."""

    people: Estimate
    judges: dict[str, Estimate]


def candidate_mean_scores(
    people: FloatArray,
    judges: Mapping[str, FloatArray],
    candidate: IntArray,
    names: Sequence[str],
    cluster: IntArray,
) -> dict[str, CandidateMeanScores]:
    """Mean scores of each candidate with a scored response; NaN is no score.

    ``people``: the mean of people's scores of each response. ``candidate`` and ``cluster``: of every response.
    """
    means_by_candidate = {}
    for number, name in enumerate(names):
        own = np.flatnonzero(candidate == number)
        means = {judge: mean_score_estimate(scores[own], cluster[own]) for judge, scores in judges.items()}
        of_people = mean_score_estimate(people[own], cluster[own])
        if of_people.n or any(mean.n for mean in means.values()):
            means_by_candidate[name] = CandidateMeanScores(of_people, means)
    return means_by_candidate


def mean_score_estimate(value: FloatArray, cluster: IntArray) -> Estimate:
    """The mean score with a t interval over clusters, effective clusters − 1 degrees of freedom."""
    scored = ~np.isnan(value)
    value, cluster = value[scored], cluster[scored]
    if not len(value):
        return undefined_estimate(NOT_SCORED)
    mean = float(drop_rounding_noise(value.mean()))
    number = Estimate(mean, len(value))
    of = np.unique(cluster, return_inverse=True)[1]
    clusters = int(of.max()) + 1
    if clusters < 2:
        return number.without_interval(ONE_CLUSTER)
    squares = float((np.bincount(of, value - value.mean()) ** 2).sum())
    if not drop_rounding_noise(np.sqrt(squares)):
        return number.without_interval(NO_INTERVAL)
    effective = floor(effective_cluster_count(np.bincount(of).astype(np.float64)) + ROUNDING)
    margin = t_975(max(effective - 1, 1)) * sqrt(squares * clusters / (clusters - 1)) / len(value)
    return number.with_interval(mean - margin, mean + margin, f"t over {clusters:,} clusters")


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
class JudgeScores:
    """``people``: against the mean of people's scores; ``each``: against each person by name. Differences: judge −."""

    people: ScoreAgreement
    each: dict[str, ScoreAgreement]


@dataclass(frozen=True)
class ScoresAfterJudge:
    """Scores of reviews made after seeing the judge, which enter no other number. ``judges``: with their mean."""

    scores: int
    judges: dict[str, ScoreAgreement]


@dataclass(frozen=True)
class ScoreReport:
    """One aspect. ``human_scores``: how many people gave, by what they knew. ``judge_judge``: every two judges.

    ``candidates``: the mean scores of each, by name.
    """

    human_scores: VoteCounts
    candidates: dict[str, CandidateMeanScores]
    human_human: HumanScores
    judges: dict[str, JudgeScores]
    judge_judge: tuple[ScorePair, ...]
    saw_judge_first: ScoresAfterJudge


@dataclass(frozen=True)
class AspectScores:
    """Scores of single responses on one aspect.

    ``name``: of the aspect. ``people``: the scores that count; ``saw_judge_first``: those of reviews that saw the judge
    first, which do not. ``names``: the person of each rater number. ``judges``: by name, the judge's mean score of each
    response, NaN where it has none. ``cluster`` and ``candidate``: of each response, the latter as index of
    ``candidates``.
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


def score_report(scores: AspectScores, *, all_pairs: bool = False) -> ScoreReport:
    """The report on one aspect. ``all_pairs``: report every pair of reviewers, however many there are."""
    judges, cluster = scores.judges, scores.cluster
    each = mean_score_per_person(scores.people, len(cluster))
    scored = np.bincount(each.unit, minlength=len(cluster)) > 0  # mostly few of many
    each = PersonScores((np.cumsum(scored) - 1)[each.unit], each.rater, each.value)
    of_scored = number_clusters(cluster[scored]).of
    mean = mean_by_unit(each.unit, each.value, len(of_scored))
    of_people = np.full(len(cluster), np.nan)
    of_people[scored] = mean
    return ScoreReport(
        human_scores=scores.counts,
        candidates=candidate_mean_scores(of_people, judges, scores.candidate, scores.candidates, cluster),
        human_human=human_score_agreement(each, scores.names, of_scored, all_pairs),
        judges={
            name: judge_score_agreement(judge[scored], mean, each, scores.names, of_scored)
            for name, judge in judges.items()
        },
        judge_judge=tuple(
            name_score_pair(shared_score_agreement(judges[name_1], judges[name_2], cluster), name_1, name_2)
            for name_1, name_2 in combinations(judges, 2)
        ),
        saw_judge_first=score_agreement_after_judge(scores.saw_judge_first, judges, cluster),
    )


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


def judge_score_agreement(
    judge: FloatArray, mean: FloatArray, each: PersonScores, names: Sequence[str], cluster: IntArray
) -> JudgeScores:
    scores = judge[each.unit]
    return JudgeScores(
        people=shared_score_agreement(judge, mean, cluster),
        each={
            name: shared_score_agreement(scores[own], each.value[own], cluster[each.unit[own]])
            for name, own in scores_by_person(each, names)
        },
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
