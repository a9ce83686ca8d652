"""Who wins on each aspect, from reviewers, from a judge, and corrected."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from evaluations.domain.reports import ReportRules
from evaluations.stats.aspect_report import AspectMaterial
from evaluations.stats.coding import BoolArray, FloatArray, IntArray
from evaluations.stats.estimates import Estimate, undefined_estimate
from evaluations.stats.matches import Matches
from evaluations.stats.outcomes import JudgedMatches, ReviewedMatches
from evaluations.stats.report_parts import reviewed_matches
from evaluations.stats.win_rates import NOT_REVIEWED, GroupRates, candidate_group_rates, mean_estimate

REVIEWERS_ALONE: Final = ""  # in place of a judge's name
NO_JUDGE: Final = "No judge."
PAIR: Final = 2


@dataclass(frozen=True)
class Rates:
    """The win rate of a candidate: from reviewers, from the judge on all that it judged, and corrected by reviewers."""

    people: Estimate
    judge: Estimate
    corrected: Estimate

    @property
    def best(self) -> Estimate:
        """The estimate to lead with: corrected if there is one, else of reviewers, else of the judge."""
        each = (self.corrected, self.people, self.judge)
        return next((rate for rate in each if rate.value is not None), self.corrected)


@dataclass(frozen=True)
class Leader:
    """The candidate with the highest win rate on an aspect. Of two candidates, the one that leads over all aspects.

    ``models``: how many candidates there are.
    """

    candidate: str
    models: int
    rates: Rates


@dataclass(frozen=True)
class AspectRates:
    """``leading``: of each candidate the value of its best rate, NaN without any. ``of``: gives its rates."""

    leading: FloatArray
    of: Callable[[int], Rates]

    @property
    def has_rate(self) -> BoolArray:
        return ~np.isnan(self.leading)


def find_leaders(
    materials: Mapping[str, AspectMaterial], matches: Matches, rules: ReportRules
) -> dict[str, dict[str, Leader]]:
    """By aspect key and judge name, or REVIEWERS_ALONE; aspects without any win rate are left out."""
    names = matches.items.candidates
    by_name = np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.int64)
    rates = {key: aspect_rates(material, matches, rules) for key, material in materials.items()}
    judges = {judge for by_judge in rates.values() for judge in by_judge}
    pairs = {
        judge: overall_leader([by_judge[judge] for by_judge in rates.values() if judge in by_judge], by_name)
        for judge in judges
    }
    return {
        key: {judge: make_leader(of_judge, pairs[judge], names, by_name) for judge, of_judge in by_judge.items()}
        for key, by_judge in rates.items()
        if by_judge
    }


def aspect_rates(material: AspectMaterial, matches: Matches, rules: ReportRules) -> dict[str, AspectRates]:
    """The win rates on one aspect by judge name, of judges with which there are any."""
    reviewed = reviewed_matches(material, matches, rules.split_rule)
    by_judge = {REVIEWERS_ALONE: AspectRates(reviewed.candidates.means.value, partial(rates_of_reviewers, reviewed))}
    for judge in material.answering:
        of_judge = candidate_group_rates(reviewed, JudgedMatches(matches, judge.consolidated.choice), judge.selected)
        by_judge[judge.name] = AspectRates(of_judge.leading, partial(rates_with_judge, of_judge))
    return {judge: rates for judge, rates in by_judge.items() if rates.has_rate.any()}


def rates_of_reviewers(reviewed: ReviewedMatches, candidate: int) -> Rates:
    nothing = undefined_estimate(NO_JUDGE)
    return Rates(mean_estimate(reviewed.candidates.means, candidate, NOT_REVIEWED), nothing, nothing)


def rates_with_judge(of_judge: GroupRates, candidate: int) -> Rates:
    rate = of_judge.of(candidate)
    return Rates(rate.people, rate.judge, rate.corrected)


def overall_leader(aspects: Sequence[AspectRates], by_name: IntArray) -> int | None:
    """Of two candidates, the one with the higher mean win rate over the aspects; None for more or fewer.

    ``by_name``: the candidates in the order of their names, the first of which leads where both are level.
    """
    rated = by_name[np.logical_or.reduce([rates.has_rate for rates in aspects])[by_name]]
    if len(rated) != PAIR:
        return None
    return int(rated[np.argmax(sum(np.nan_to_num(rates.leading[rated]) for rates in aspects))])


def make_leader(rates: AspectRates, of_pair: int | None, names: Sequence[str], by_name: IntArray) -> Leader:
    if of_pair is not None and rates.has_rate[of_pair]:
        leader = of_pair
    else:
        leader = int(by_name[np.nanargmax(rates.leading[by_name])])
    return Leader(names[leader], int(np.count_nonzero(rates.has_rate)), rates.of(leader))
