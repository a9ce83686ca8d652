"""The mean score of each candidate, from people and from a judge."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import floor, sqrt
from typing import Final

import numpy as np

from evaluations.stats.coding import IntArray
from evaluations.stats.contributions import FloatArray, effective_number
from evaluations.stats.distributions import t_975
from evaluations.stats.intervals import ONE_CLUSTER, ROUNDING
from evaluations.stats.numbers import NO_INTERVAL, Number, settled, undefined

NOT_SCORED: Final = "No response of this candidate has a score."


@dataclass(frozen=True)
class CandidateScores:
    """Mean scores over the candidate's responses. ``judges``: by name. ``n`` of each counts responses."""

    people: Number
    judges: dict[str, Number]


def mean_scores(
    people: FloatArray,
    judges: Mapping[str, FloatArray],
    candidate: IntArray,
    names: Sequence[str],
    cluster: IntArray,
) -> dict[str, CandidateScores]:
    """By candidate, of those whose responses anyone scored. NaN stands for no score.

    ``people``: the mean of people's scores of each response. ``candidate`` and ``cluster``: of every response.
    """
    found = {}
    for number, name in enumerate(names):
        own = np.flatnonzero(candidate == number)
        means = {judge: mean_of(scores[own], cluster[own]) for judge, scores in judges.items()}
        of_people = mean_of(people[own], cluster[own])
        if of_people.n or any(one.n for one in means.values()):
            found[name] = CandidateScores(of_people, means)
    return found


def mean_of(value: FloatArray, cluster: IntArray) -> Number:
    """With the interval of t over clusters, with effective clusters − 1 degrees of freedom."""
    scored = ~np.isnan(value)
    value, cluster = value[scored], cluster[scored]
    if not len(value):
        return undefined(NOT_SCORED)
    mean = float(settled(value.mean()))
    number = Number(mean, len(value))
    of = np.unique(cluster, return_inverse=True)[1]
    clusters = int(of.max()) + 1
    if clusters < 2:
        return number.without_interval(ONE_CLUSTER)
    squares = float((np.bincount(of, value - value.mean()) ** 2).sum())
    if not settled(np.sqrt(squares)):
        return number.without_interval(NO_INTERVAL)
    effective = floor(effective_number(np.bincount(of).astype(np.float64)) + ROUNDING)
    margin = t_975(max(effective - 1, 1)) * sqrt(squares * clusters / (clusters - 1)) / len(value)
    return number.within(mean - margin, mean + margin, f"t over {clusters:,} clusters")
