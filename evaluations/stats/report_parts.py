"""The parts of a report other than agreement, aspect by aspect."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Final

import numpy as np

from evaluations.domain.decisions import DEFAULT_BARS, DecisionBars
from evaluations.domain.reports import ReportRules, SplitRule
from evaluations.stats.agreement_timeline import Timeline, agreement_timeline
from evaluations.stats.alt_test import AltTest, advantage_of_choices, alt_test
from evaluations.stats.aspect_report import AspectMaterial, AspectReport, make_reference
from evaluations.stats.bias.board import BiasBoard, bias_board
from evaluations.stats.bias.paired_sides import human_sides
from evaluations.stats.bias.traits import ComparisonTraits, comparison_traits
from evaluations.stats.cluster_totals import cross_tabulate_by_cluster
from evaluations.stats.coding import FloatArray, IntArray
from evaluations.stats.confidence_calibration import ConfidenceCalibration, confidence_calibration, mean_weights
from evaluations.stats.items import Items
from evaluations.stats.judge_agreement import recode_like_reference
from evaluations.stats.judge_comparison import ComparedJudges, HeldOutLook, compare_judges, compare_over_aspects
from evaluations.stats.judge_verdicts import no_choices
from evaluations.stats.label_budget import LabelBudgets, agreement_variances, label_budgets
from evaluations.stats.length_control import LengthDifferences
from evaluations.stats.matches import Matches
from evaluations.stats.outcomes import JudgedMatches, ReviewedMatches
from evaluations.stats.polls import make_poll, person_votes
from evaluations.stats.reviewers import ReviewerStatistics, reviewer_statistics
from evaluations.stats.significance import holm_adjust
from evaluations.stats.votes import majority_of_votes, one_vote_per_person
from evaluations.stats.win_rates import estimate_win_rates
from evaluations.stats.wins import Wins, estimate_wins


@dataclass(frozen=True)
class StudyMaterial:
    """Data shared by all aspects. ``families``: by judge name, empty if not set. ``judges``: how many claims cover.

    ``bars``: those of decisions. ``kept_reviewers``: those whom the owner keeps although screening flags them.
    ``excluded_reviewers``: how many the owner excluded. ``screens_reviewers``: False for readers who see only their
    own comparisons.
    """

    items: Items
    families: Mapping[str, str]
    judges: int = 0
    bars: DecisionBars = DEFAULT_BARS
    kept_reviewers: frozenset[str] = frozenset()
    excluded_reviewers: int = 0
    screens_reviewers: bool = True

    @cached_property
    def matches(self) -> Matches:
        return Matches(self.items)

    @cached_property
    def lengths(self) -> LengthDifferences:
        return LengthDifferences(self.matches)


# Called with the results of a report: which look at the test part it is.
LookAt = Callable[[str], HeldOutLook]
PREFERENCES: Final = 2  # that may be claimed of a judge on an aspect: for the longer response, and for its own family


def majority_of_people(material: AspectMaterial, rule: SplitRule) -> IntArray:
    """The majority of people on each comparison, MISSING without votes."""
    design, choice = material.people.design, no_choices(material.items)
    votes = material.people.choice[design.order]
    choice[design.items] = majority_of_votes(design.unit, votes, len(design.items), rule).choice
    return choice


def reviewed_matches(material: AspectMaterial, matches: Matches, rule: SplitRule) -> ReviewedMatches:
    """The majorities of people, without those on comparisons that were picked by hand."""
    by_hand = np.zeros(material.items, dtype=np.bool_)
    by_hand[material.picked_by_hand.item] = True
    return ReviewedMatches(matches, majority_of_people(material, rule), by_hand)


@dataclass(frozen=True)
class AspectPeople:
    """``alt_tests`` and ``budgets``: by the judge's name."""

    reviewers: tuple[ReviewerStatistics, ...]
    timeline: Timeline
    alt_tests: Mapping[str, AltTest]
    budgets: Mapping[str, LabelBudgets]


@dataclass(frozen=True)
class JudgeWeights:
    """A judge's weights on A for one aspect: comparison, order shown and weight of each."""

    item: IntArray
    shown: IntArray
    weight: FloatArray


def people_part(
    material: AspectMaterial,
    study: StudyMaterial,
    rules: ReportRules,
    agreement: AspectReport,
    caution: str | None = None,
) -> AspectPeople:
    """``caution``: why the alternative annotator test must not be read."""
    votes = make_poll(material.people, material.cluster)
    people = person_votes(votes)
    judges = {judge.name: judge.consolidated.choice[votes.items] for judge in material.answering}
    return AspectPeople(
        reviewers=reviewer_statistics(people, material.names, judges, material.split_rule(rules), material.active_ms),
        timeline=agreement_timeline(people, material.days, judges),
        alt_tests={name: replace(test, caution=caution) for name, test in judge_alt_tests(material, study).items()},
        budgets=judge_budgets(material, study, rules, agreement),
    )


def confidence_part(
    material: AspectMaterial, study: StudyMaterial, rules: ReportRules, weights: Mapping[str, JudgeWeights]
) -> dict[str, ConfidenceCalibration]:
    """The confidence calibration of each judge whose verdicts have weights, by name."""
    people, cluster = majority_of_people(material, rules.split_rule), study.items.cluster
    return {
        judge.name: confidence_calibration(
            mean_weights(of_judge.item, of_judge.shown, of_judge.weight, judge.consolidated.choice), people, cluster
        )
        for judge in material.answering
        if (of_judge := weights.get(judge.name)) is not None
    }


def judge_budgets(
    material: AspectMaterial, study: StudyMaterial, rules: ReportRules, agreement: AspectReport
) -> dict[str, LabelBudgets]:
    """For each judge by name, the number of further reviews that its numbers need."""
    people = majority_of_people(material, rules.split_rule)
    reviewed, votes = ReviewedMatches(study.matches, people), len(material.people)
    variances = reviewed.candidates.means.variance.tolist()
    reference = make_reference(
        material.people, material.cluster, material.names, material.split_rule(rules), rules.coding
    )
    budgets = {}
    for judge in material.answering:
        now = agreement.judges[judge.name].judge_human.majority.with_ties
        choices = recode_like_reference(judge.consolidated, reference)[reference.poll.items]
        two = agreement_variances(
            now, cross_tabulate_by_cluster(choices, reference.majority.choice, reference.poll.cluster_of_items)
        )
        rates = estimate_win_rates(reviewed, JudgedMatches(study.matches, judge.consolidated.choice), judge.selected)
        budgets[judge.name] = label_budgets(*two, rates, variances, study.items, people, votes)
    return budgets


def bias_boards(
    materials: Mapping[str, AspectMaterial], study: StudyMaterial, rules: ReportRules, aspects: int
) -> dict[str, dict[str, BiasBoard]]:
    """Bias boards by aspect key and judge name; what they share is large and released afterwards.

    ``aspects``: on how many the report could claim anything, whichever are asked for.
    """
    if not materials:
        return {}
    traits = comparison_traits(study.items)
    judges = max(study.judges, *(len(material.answering) for material in materials.values()), 1)
    claims = PREFERENCES * judges * max(aspects, len(materials))
    return {
        key: aspect_bias_boards(material, traits, study.families, rules, claims) for key, material in materials.items()
    }


def aspect_bias_boards(
    material: AspectMaterial, traits: ComparisonTraits, families: Mapping[str, str], rules: ReportRules, claims: int
) -> dict[str, BiasBoard]:
    """The bias board of each judge, by name."""
    people = human_sides(traits, majority_of_people(material, rules.split_rule), material.people)
    return {
        judge.name: bias_board(
            traits,
            people,
            judge.consolidated.choice,
            judge.consolidated.as_stored,
            judge.consolidated.swapped,
            families.get(judge.name, ""),
            claims,
        )
        for judge in material.answering
    }


def wins_part(material: AspectMaterial, study: StudyMaterial, rules: ReportRules, aspects: int) -> Wins:
    """``aspects``: on how many the report could claim anything."""
    reviewed = reviewed_matches(material, study.matches, rules.split_rule)
    claims = (
        max(aspects, 1) * max(study.judges, len(material.answering), 1) * max(len(study.matches.compared_candidates), 1)
    )
    judges = {judge.name: (judge.consolidated.choice, judge.selected) for judge in material.answering}
    return estimate_wins(reviewed, material.people, study.lengths, judges, claims=claims)


def judge_alt_tests(material: AspectMaterial, study: StudyMaterial) -> dict[str, AltTest]:
    """The alternative annotator test of each judge, by name."""
    each = one_vote_per_person(material.people)
    return {
        judge.name: alt_test(advantage_of_choices(judge.consolidated.choice, each, study.items.cluster), material.names)
        for judge in material.answering
    }


def compare_all_judges(
    materials: Mapping[str, AspectMaterial], study: StudyMaterial, look_at: LookAt | None = None
) -> tuple[ComparedJudges, ...]:
    """Every two judges on the aspects on which both were asked. ``materials``: by the aspect's key.

    ``look_at``: of a report on the test part, which look at these results this is.
    """
    references = {key: majority_of_people(material, SplitRule.DROP) for key, material in materials.items()}
    chosen = {
        key: {judge.name: judge.consolidated.choice for judge in material.answering}
        for key, material in materials.items()
    }
    names = sorted({name for by_name in chosen.values() for name in by_name})
    pairs = {}
    for first, second in combinations(names, 2):
        by_aspect = {
            key: compare_judges(by_name[first], by_name[second], references[key], study.items.cluster)
            for key, by_name in chosen.items()
            if first in by_name and second in by_name
        }
        if by_aspect:
            pairs[first, second] = by_aspect
    results = [(*two, key, comparison) for two, by_aspect in pairs.items() for key, comparison in by_aspect.items()]
    tested = [comparison.p for *_, comparison in results if comparison.p is not None]
    look = look_at(repr(results)) if look_at and tested else None
    adjusted = iter(holm_adjust(np.array(tested)).tolist())
    family = {(*who, key): None if comparison.p is None else next(adjusted) for *who, key, comparison in results}
    return tuple(
        compare_over_aspects(*two, by_aspect, look, {key: family[(*two, key)] for key in by_aspect}, len(tested))
        for two, by_aspect in pairs.items()
    )
