"""The decisions on all judges of a report."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from evaluations.domain.decisions import DecisionBars
from evaluations.domain.reports import SplitRule
from evaluations.stats.aspect_report import AspectMaterial, panel_materials
from evaluations.stats.coding import MISSING, IntArray
from evaluations.stats.decisions.agreement_credits import (
    JudgeCredits,
    ReviewerCredits,
    judge_credits,
    reviewer_credits,
)
from evaluations.stats.decisions.decision import JudgeCase, decide
from evaluations.stats.decisions.gauges import JudgedAspect, judge_gauges
from evaluations.stats.decisions.results import Decision
from evaluations.stats.items import Items
from evaluations.stats.judge_report import JudgeMaterial
from evaluations.stats.judge_verdicts import JudgeCoverage, judge_coverage
from evaluations.stats.polls import make_poll
from evaluations.stats.simultaneous_intervals import LEVEL


@dataclass(frozen=True)
class AspectReviewers:
    """The reviewers on one aspect. ``majority``: on each item of ``credits``, MISSING where votes are split."""

    name: str
    credits: ReviewerCredits
    majority: IntArray


def aspect_reviewers(material: AspectMaterial) -> AspectReviewers:
    poll = make_poll(material.people, material.cluster)
    of_reviewers = reviewer_credits(poll)
    majority = poll.majority(SplitRule.DROP).choice[np.searchsorted(poll.items, of_reviewers.item)]
    return AspectReviewers(material.name, of_reviewers, majority)


def decide_judges(
    materials: Mapping[str, AspectMaterial],
    items: Items,
    families: Mapping[str, str],
    bars: DecisionBars,
    family_size: int,
) -> dict[str, Decision]:
    """The decision on each judge that answered or failed, by name. ``materials``: by aspect key.

    ``families``: the model family of each judge, by its name. ``family_size``: how many judges the evaluation has,
    whichever are shown: the error of each statement is divided by it.
    """
    asked = {key: list_asked_judges(material) for key, material in materials.items()}
    by_judge: dict[str, dict[str, JudgeMaterial]] = defaultdict(dict)
    for key, judges in asked.items():
        for judge in judges:
            by_judge[judge.name][key] = judge
    if not by_judge:
        return {}
    reviewers = {key: aspect_reviewers(material) for key, material in materials.items()}
    level = LEVEL / max(family_size, len(by_judge))
    return {
        name: decide(judge_case(name, by_aspect, reviewers, items, families.get(name, ""), bars, level), items.cluster)
        for name, by_aspect in sorted(by_judge.items())
    }


def list_asked_judges(material: AspectMaterial) -> list[JudgeMaterial]:
    """The judges and panels with an answer or a failed call on an aspect."""
    judges = (*material.judges, *panel_materials(material))
    return [judge for judge in judges if judge.has_answers or judge.consolidated.failed.any()]


def judge_case(
    name: str,
    by_aspect: Mapping[str, JudgeMaterial],
    reviewers: Mapping[str, AspectReviewers],
    items: Items,
    family: str,
    bars: DecisionBars,
    level: float,
) -> JudgeCase:
    made = {key: judge_credits(judge.consolidated, reviewers[key].credits) for key, judge in by_aspect.items()}
    judged = [
        JudgedAspect(
            judge.consolidated, reviewers[key].credits.item, reviewers[key].majority, judge.derived is not None
        )
        for key, judge in by_aspect.items()
    ]
    return JudgeCase(
        name=name,
        label=next(iter(by_aspect.values())).label,
        names={key: reviewers[key].name for key in by_aspect},
        credits=aspects_with_items(made),
        gauges=judge_gauges(judged, items, family, bars),
        coverage=least_coverage(by_aspect),
        bars=bars,
        level=level,
    )


def aspects_with_items(made: Mapping[str, JudgeCredits]) -> dict[str, JudgeCredits]:
    return {key: of_judge for key, of_judge in made.items() if of_judge.n}


def least_coverage(by_aspect: Mapping[str, JudgeMaterial]) -> JudgeCoverage:
    """The coverage on the aspect on which a judge answered the smallest share of its selection."""
    coverages = (
        judge_coverage(np.where(judge.consolidated.incomplete, MISSING, judge.consolidated.choice), judge.selected)
        for judge in by_aspect.values()
    )
    return min(coverages, key=lambda coverage: coverage.judged / max(coverage.selected, 1))
