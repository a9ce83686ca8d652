"""The parts of a report beside agreement, aspect by aspect."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np

from evaluations.domain import Rules, SplitRule
from evaluations.stats.advantage import of_choices
from evaluations.stats.alt_test import AltTest, alt_test
from evaluations.stats.bias.board import BiasBoard, bias_board
from evaluations.stats.bias.ground import Ground, ground_of
from evaluations.stats.bias.people import people_of
from evaluations.stats.budgets import Budgets, budgets, varying
from evaluations.stats.coding import IntArray
from evaluations.stats.comparing import compare
from evaluations.stats.confidence import Confidence, confidence, weight_of
from evaluations.stats.contributions import FloatArray, crossed
from evaluations.stats.known import Known
from evaluations.stats.looks import ComparedJudges, Look, over_aspects
from evaluations.stats.majority import majority
from evaluations.stats.multiplicity import holm
from evaluations.stats.opinions import opinions
from evaluations.stats.outcomes import Judgement, Reviewed
from evaluations.stats.polls import poll
from evaluations.stats.references import in_terms_of
from evaluations.stats.report import AspectMaterial, AspectReport, VoteCounts, reference
from evaluations.stats.reviewers import Reviewer, reviewers
from evaluations.stats.scores import ScoresReport, scores_report
from evaluations.stats.several_scores import Scores
from evaluations.stats.timeline import Timeline, timeline
from evaluations.stats.votes import one_vote_each
from evaluations.stats.win_rates import win_rates
from evaluations.stats.wins import Wins, wins

# Which look at the test part a report with these results is.
LookAt = Callable[[str], Look]

PREFERENCES: Final = 2  # that may be claimed of a judge on an aspect: for the longer response, and for its own family


def choice_of_people(material: AspectMaterial, rule: SplitRule) -> IntArray:
    """The majority of people on each comparison, MISSING where nobody voted."""
    return majority(material.people.item, material.people.choice, material.items, rule).choice


@dataclass(frozen=True)
class AspectPeople:
    """``alt_tests`` and ``budgets``: by the judge's name."""

    reviewers: tuple[Reviewer, ...]
    timeline: Timeline
    alt_tests: Mapping[str, AltTest]
    budgets: Mapping[str, Budgets]


@dataclass(frozen=True)
class Weights:
    """What a judge's verdicts on one aspect weigh towards A: the comparison's place, order shown, weight of each."""

    item: IntArray
    shown: IntArray
    weighted: FloatArray


@dataclass(frozen=True)
class AspectScores:
    """Scores of single responses on one aspect: people's, each judge's mean by name, and the responses' clusters and

    candidates, these as places in the names of all.

    ``name``: the aspect's; ``names``: what the people's numbers stand for. ``people``: scores that count, ``late``:
    those of reviews that saw the judge first, where they do not.
    """

    name: str
    people: Scores
    late: Scores
    counts: VoteCounts
    names: tuple[str, ...]
    judges: Mapping[str, FloatArray]
    cluster: IntArray
    candidate: IntArray
    candidates: tuple[str, ...]


def people_of_aspect(material: AspectMaterial, known: Known, rules: Rules, agreement: AspectReport) -> AspectPeople:
    votes = poll(material.people, material.cluster)
    found = opinions(votes)
    judges = {judge.name: judge.own.choice[votes.items] for judge in material.answering}
    return AspectPeople(
        reviewers=reviewers(found, material.names, judges, material.split_rule(rules), material.active_ms),
        timeline=timeline(found, material.days, judges),
        alt_tests=alt_tests(material, known),
        budgets=budgets_of(material, known, rules, agreement),
    )


def confidences(
    material: AspectMaterial, known: Known, rules: Rules, weights: Mapping[str, Weights]
) -> dict[str, Confidence]:
    """Of each judge whose verdicts carry weights, by name."""
    people, cluster = choice_of_people(material, rules.split_rule), known.items.cluster
    return {
        judge.name: confidence(weight_of(one.item, one.shown, one.weighted, judge.own.choice), people, cluster)
        for judge in material.answering
        if (one := weights.get(judge.name)) is not None
    }


def scores_of(scores: AspectScores, rules: Rules) -> ScoresReport:
    return scores_report(
        scores.people,
        scores.names,
        scores.judges,
        scores.cluster,
        late=scores.late,
        counts=scores.counts,
        candidate=scores.candidate,
        candidates=scores.candidates,
        all_pairs=rules.all_pairs,
    )


def budgets_of(material: AspectMaterial, known: Known, rules: Rules, agreement: AspectReport) -> dict[str, Budgets]:
    """Of each judge by name: how many more reviews bring its numbers to a width."""
    people = choice_of_people(material, rules.split_rule)
    reviewed, votes = Reviewed(known.matches, people), len(material.people)
    variances = reviewed.candidates.means.variance.tolist()
    held = reference(material.people, material.cluster, material.names, material.split_rule(rules), rules.coding)
    found = {}
    for judge in material.answering:
        now = agreement.judges[judge.name].judge_human.majority.with_ties
        against = in_terms_of(judge.own, held)[held.poll.items]
        two = varying(now, crossed(against, held.majority.choice, held.poll.cluster_of_items))
        rates = win_rates(reviewed, Judgement(known.matches, judge.own.choice), judge.selected)
        found[judge.name] = budgets(*two, rates, variances, known.items, people, votes)
    return found


def bias_boards(
    materials: Mapping[str, AspectMaterial], known: Known, rules: Rules, aspects: int
) -> dict[str, dict[str, BiasBoard]]:
    """By the aspect's key, of each judge by name. What all share is large, and let go when they are made.

    ``aspects``: on how many the report could claim anything, whichever are asked for.
    """
    if not materials:
        return {}
    ground = ground_of(known.items)
    judges = max(known.judges, *(len(one.answering) for one in materials.values()), 1)
    claims = PREFERENCES * judges * max(aspects, len(materials))
    return {key: bias_of(one, ground, known.families, rules, claims) for key, one in materials.items()}


def bias_of(
    material: AspectMaterial, ground: Ground, families: Mapping[str, str], rules: Rules, claims: int
) -> dict[str, BiasBoard]:
    """Of each judge by name."""
    people = people_of(ground, choice_of_people(material, rules.split_rule), material.people)
    return {
        judge.name: bias_board(
            ground,
            people,
            judge.own.choice,
            judge.own.as_stored,
            judge.own.swapped,
            families.get(judge.name, ""),
            claims,
        )
        for judge in material.answering
    }


def wins_of(material: AspectMaterial, known: Known, rules: Rules, aspects: int = 1) -> Wins:
    """``aspects``: on how many the report could claim anything."""
    undrawn = np.bincount(material.undrawn.item, minlength=material.items) > 0
    reviewed = Reviewed(known.matches, choice_of_people(material, rules.split_rule), undrawn)
    claims = max(aspects, 1) * max(known.judges, len(material.answering), 1) * max(len(known.matches.entrants), 1)
    judges = {judge.name: (judge.own.choice, judge.selected) for judge in material.answering}
    return wins(reviewed, known.lengths, judges, claims=claims)


def alt_tests(material: AspectMaterial, known: Known) -> dict[str, AltTest]:
    """Of each judge by name."""
    each = one_vote_each(material.people)
    return {
        judge.name: alt_test(of_choices(judge.own.choice, each, known.items.cluster), material.names)
        for judge in material.answering
    }


def compared_judges(
    materials: Mapping[str, AspectMaterial], known: Known, look_at: LookAt | None = None
) -> tuple[ComparedJudges, ...]:
    """Every two judges on the aspects on which both were asked. ``materials``: by the aspect's key.

    ``look_at``: of a report on the test part, which look at these results this is.
    """
    references = {key: choice_of_people(one, SplitRule.DROP) for key, one in materials.items()}
    chosen = {key: {judge.name: judge.own.choice for judge in one.answering} for key, one in materials.items()}
    names = sorted({name for by_name in chosen.values() for name in by_name})
    pairs = {}
    for first, second in combinations(names, 2):
        by_aspect = {
            key: compare(by_name[first], by_name[second], references[key], known.items.cluster)
            for key, by_name in chosen.items()
            if first in by_name and second in by_name
        }
        if by_aspect:
            pairs[first, second] = by_aspect
    results = [(*two, key, one) for two, by_aspect in pairs.items() for key, one in by_aspect.items()]
    tested = [one.p for *_, one in results if one.p is not None]
    look = look_at(repr(results)) if look_at and tested else None
    adjusted = iter(holm(np.array(tested)).tolist())
    family = {(*who, key): None if one.p is None else next(adjusted) for *who, key, one in results}
    return tuple(
        over_aspects(*two, by_aspect, look, {key: family[(*two, key)] for key in by_aspect}, len(tested))
        for two, by_aspect in pairs.items()
    )
