"""Who wins on each aspect, from reviewers, from a judge, and corrected."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.domain.reports import ReportRules
from evaluations.stats.aspect_report import AspectMaterial
from evaluations.stats.estimates import Estimate, undefined_estimate
from evaluations.stats.matches import Matches
from evaluations.stats.outcomes import JudgedMatches, ReviewedMatches
from evaluations.stats.votes import majority_of_votes
from evaluations.stats.win_rates import NOT_REVIEWED, estimate_candidate_rates, mean_estimate

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


ByCandidate = Mapping[str, Rates]


def find_leaders(
    materials: Mapping[str, AspectMaterial], matches: Matches, rules: ReportRules
) -> dict[str, dict[str, Leader]]:
    """By aspect key and judge name, or REVIEWERS_ALONE; aspects without any win rate are left out."""
    rates = {key: aspect_rates(material, matches, rules) for key, material in materials.items()}
    names = {name for by_judge in rates.values() for name in by_judge}
    pairs = {
        name: overall_leader([by_judge[name] for by_judge in rates.values() if name in by_judge]) for name in names
    }
    leaders = {
        key: {name: make_leader(of_judge, pairs[name]) for name, of_judge in by_judge.items() if of_judge}
        for key, by_judge in rates.items()
    }
    return {key: by_judge for key, by_judge in leaders.items() if by_judge}


def aspect_rates(material: AspectMaterial, matches: Matches, rules: ReportRules) -> dict[str, ByCandidate]:
    """The win rates that exist on one aspect, by judge name and candidate."""
    majority = majority_of_votes(material.people.item, material.people.choice, material.items, rules.split_rule).choice
    picked_by_hand = np.bincount(material.picked_by_hand.item, minlength=material.items) > 0
    reviewed = ReviewedMatches(matches, majority, picked_by_hand)
    nothing, names = undefined_estimate(NO_JUDGE), matches.items.candidates
    means = reviewed.candidates.means
    by_judge = {
        REVIEWERS_ALONE: {
            name: Rates(mean_estimate(means, group, NOT_REVIEWED), nothing, nothing) for group, name in enumerate(names)
        }
    }
    for judge in material.answering:
        judgement = JudgedMatches(matches, judge.consolidated.choice)
        of_judge = estimate_candidate_rates(reviewed, judgement, judge.selected)
        by_judge[judge.name] = {name: Rates(rate.people, rate.judge, rate.corrected) for name, rate in of_judge.items()}
    return {
        judge: {name: rates for name, rates in by_name.items() if rates.best.value is not None}
        for judge, by_name in by_judge.items()
    }


def overall_leader(aspects: list[ByCandidate]) -> str | None:
    """Of two candidates, the one with the higher mean win rate over the aspects; None for more or fewer."""
    names = sorted({name for by_name in aspects for name in by_name})
    if len(names) != PAIR:
        return None
    return max(names, key=lambda name: sum(leading_value(by_name[name]) for by_name in aspects if name in by_name))


def leading_value(rates: Rates) -> float:
    return -1.0 if rates.best.value is None else rates.best.value


def make_leader(by_name: ByCandidate, of_pair: str | None) -> Leader:
    name = of_pair if of_pair in by_name else max(sorted(by_name), key=lambda name: leading_value(by_name[name]))
    assert name is not None
    return Leader(name, len(by_name), by_name[name])
