"""Scores of single responses on one aspect: judges and people, each held against the others on the same responses.

Whoever scored a response several times counts there once, with the mean.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from evaluations.stats.cluster_sums import numbered
from evaluations.stats.coding import IntArray
from evaluations.stats.contributions import FloatArray
from evaluations.stats.deriving import means
from evaluations.stats.numbers import settled
from evaluations.stats.people import MOST_REVIEWERS, PAIRS_OF_MANY
from evaluations.stats.report import VoteCounts
from evaluations.stats.score_agreement import ScoreAgreement, score_agreement
from evaluations.stats.score_means import CandidateScores, mean_scores
from evaluations.stats.several_scores import Scores, SeveralScores, several_scores
from evaluations.stats.turnout import turnout


@dataclass(frozen=True)
class ScorePair(ScoreAgreement):
    rater_1: str
    rater_2: str


@dataclass(frozen=True)
class HumanScores:
    """``others``: every score of a person against the mean of the other people's of the same response.

    ``pairs_left_out``: how many pairs of reviewers share a response besides, where there are many reviewers.
    """

    others: ScoreAgreement
    pairs: tuple[ScorePair, ...]
    multi: SeveralScores
    pairs_left_out: int = 0


@dataclass(frozen=True)
class JudgeScores:
    """``people``: against the mean of people's scores; ``each``: against each person by name. Differences: judge −."""

    people: ScoreAgreement
    each: dict[str, ScoreAgreement]


@dataclass(frozen=True)
class ScoresAfterJudge:
    """Of reviews made after seeing the judge: they enter no other number. ``judges``: against the mean of these."""

    scores: int
    judges: dict[str, ScoreAgreement]


@dataclass(frozen=True)
class ScoresReport:
    """One aspect. ``human_scores``: how many people gave, by what they knew. ``judge_judge``: every two judges.

    ``candidates``: the mean scores of each, by name.
    """

    human_scores: VoteCounts
    candidates: dict[str, CandidateScores]
    human_human: HumanScores
    judges: dict[str, JudgeScores]
    judge_judge: tuple[ScorePair, ...]
    saw_judge_first: ScoresAfterJudge


def scores_report(
    people: Scores,
    names: Sequence[str],
    judges: Mapping[str, FloatArray],
    cluster: IntArray,
    *,
    late: Scores,
    counts: VoteCounts,
    candidate: IntArray,
    candidates: Sequence[str],
    all_pairs: bool = False,
) -> ScoresReport:
    """``names``: what the people's numbers stand for. ``judges``: the mean of each judge's samples for every response,

    NaN where it has none. ``cluster``: of every response. ``late``: of reviews that saw the judge first. ``candidate``:
    of every response its place among the ``candidates``.
    """
    each = one_score_each(people, len(cluster))
    scored = np.bincount(each.unit, minlength=len(cluster)) > 0  # mostly few of many
    each = Scores((np.cumsum(scored) - 1)[each.unit], each.rater, each.value)
    of_scored = numbered(cluster[scored]).of
    mean = means(each.unit, each.value, len(of_scored))
    of_people = np.full(len(cluster), np.nan)
    of_people[scored] = mean
    return ScoresReport(
        human_scores=counts,
        candidates=mean_scores(of_people, judges, candidate, candidates, cluster),
        human_human=human_scores(each, names, of_scored, all_pairs),
        judges={name: judge_scores(judge[scored], mean, each, names, of_scored) for name, judge in judges.items()},
        judge_judge=tuple(
            named(agreement_of_two(judges[one], judges[other], cluster), one, other)
            for one, other in combinations(judges, 2)
        ),
        saw_judge_first=scores_after_judge(late, judges, cluster),
    )


def one_score_each(scores: Scores, units: int) -> Scores:
    """A person's mean score of each response, in the order of people and then of responses."""
    key = scores.rater * units + scores.unit
    order = np.argsort(key)
    key, value = key[order], scores.value[order]
    starts = np.flatnonzero(np.append(True, key[1:] != key[:-1])[: len(key)])
    if len(starts) < len(key):
        value = settled(np.add.reduceat(value, starts) / np.diff(np.append(starts, len(key))))
        key = key[starts]
    return Scores(key % units, key // units, value)


def by_person(each: Scores, names: Sequence[str]) -> Iterator[tuple[str, slice]]:
    """Who scored anything, with the place of their scores."""
    ends = np.searchsorted(each.rater, np.arange(len(names) + 1)).tolist()
    for name, first, last in zip(names, ends, ends[1:], strict=False):
        if first < last:
            yield name, slice(first, last)


def scores_after_judge(late: Scores, judges: Mapping[str, FloatArray], cluster: IntArray) -> ScoresAfterJudge:
    if not len(late.value):
        return ScoresAfterJudge(0, {})
    each = one_score_each(late, len(cluster))
    mean = means(each.unit, each.value, len(cluster))
    held = {name: agreement_of_two(judge, mean, cluster) for name, judge in judges.items()}
    return ScoresAfterJudge(len(late.value), held)


# ---- judges --------------------------------------------------------------------------------


def judge_scores(
    judge: FloatArray, mean: FloatArray, each: Scores, names: Sequence[str], cluster: IntArray
) -> JudgeScores:
    found = judge[each.unit]
    return JudgeScores(
        people=agreement_of_two(judge, mean, cluster),
        each={
            name: agreement_of_two(found[own], each.value[own], cluster[each.unit[own]])
            for name, own in by_person(each, names)
        },
    )


def agreement_of_two(one: FloatArray, other: FloatArray, cluster: IntArray) -> ScoreAgreement:
    """NaN stands for no score."""
    both = ~np.isnan(one) & ~np.isnan(other)
    return score_agreement(one[both], other[both], cluster[both])


def named(found: ScoreAgreement, rater_1: str, rater_2: str) -> ScorePair:
    return ScorePair(**vars(found), rater_1=rater_1, rater_2=rater_2)


# ---- people --------------------------------------------------------------------------------


def human_scores(each: Scores, names: Sequence[str], cluster: IntArray, all_pairs: bool) -> HumanScores:
    scores = np.bincount(each.unit, minlength=len(cluster))
    shared = scores[each.unit] > 1
    unit, value = each.unit[shared], each.value[shared]
    of_all = np.bincount(unit, value, len(cluster))
    of_others = settled((of_all[unit] - value) / (scores[unit] - 1))
    people = dict(by_person(each, names))
    two, left_out = list(combinations(people, 2)), 0
    if len(people) > MOST_REVIEWERS and not all_pairs:
        found = turnout(each.unit, each.rater)
        two = [(names[one], names[other]) for one, other in found.largest_meetings(PAIRS_OF_MANY)]
        left_out = len(found.pair_sizes[0]) - len(two)
    return HumanScores(
        others=score_agreement(value, of_others, cluster[unit]),
        pairs=tuple(pairs(each, people, two, cluster)),
        multi=several_scores(each, scores, cluster),
        pairs_left_out=left_out,
    )


def pairs(
    each: Scores, people: Mapping[str, slice], two: Sequence[tuple[str, str]], cluster: IntArray
) -> Iterator[ScorePair]:
    """Of these people by two, those who scored a response that the other scored."""
    of_first = np.full(len(cluster), np.nan)
    for rater_1, rater_2 in two:
        one, other = people[rater_1], people[rater_2]
        of_first[each.unit[one]] = each.value[one]
        found = agreement_of_two(of_first[each.unit[other]], each.value[other], cluster[each.unit[other]])
        of_first[each.unit[one]] = np.nan
        if found.n:
            yield named(found, rater_1, rater_2)
