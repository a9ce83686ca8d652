"""The report on one aspect: its material with every number of agreement made of it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from evaluations.domain.choices import ScoreRule
from evaluations.domain.reports import ReportRules, SideCoding, SplitRule
from evaluations.stats.anchoring import (
    AfterReveal,
    AnchoringEffect,
    JudgeRevealVotes,
    anchoring_effect,
    changes_after_reveal,
)
from evaluations.stats.bias.strata import Strata, single_stratum
from evaluations.stats.coding import MISSING, IntArray
from evaluations.stats.human_agreement import HumanHuman, human_agreement
from evaluations.stats.human_ceiling import leave_one_out_votes
from evaluations.stats.judge_agreement import (
    JudgeHuman,
    JudgePair,
    ReferenceVotes,
    judge_human_agreement,
    judge_pair_agreements,
    recode_like_reference,
)
from evaluations.stats.judge_report import JudgeMaterial, JudgeReport, judge_report, panel_material
from evaluations.stats.judge_verdicts import ConsolidatedVerdicts, no_choices
from evaluations.stats.polls import make_poll
from evaluations.stats.shown_coding import NO_ORDER, find_common_order, recode_votes_by_position
from evaluations.stats.simultaneous_intervals import MeanDifference, average_difference_over_raters
from evaluations.stats.votes import (
    Majority,
    Votes,
    distinct_choices,
    effective_split_rule,
    majority_of_votes,
    with_shared_design,
)


@dataclass(frozen=True)
class AspectMaterial:
    """The votes, verdicts and settings of one aspect of ``items`` comparisons.

    ``cluster``: of each comparison, numbers from 0. ``people``: the votes that count. ``saw_judge_first``: votes of
    reviews that saw the judge first. ``picked_by_hand``: votes on comparisons that were not drawn at random.
    ``reveal_votes``: by the name of each judge that reviews were shown. ``blind``: how many of the votes that count are
    known to be blind. ``not_drawn`` and ``calibration``: how many votes are excluded from estimates. ``panels``: the
    members of each panel, by its name. ``days`` and ``active_ms``: of each vote that counts, the day in days since
    1970-01-01 and the active time of its review in ms, 0 where unknown. ``names``: the person of each rater number.
    ``offered``: the codes of the choices that the rubrics offer. ``score_rules``: how choices were derived from scores,
    if any were; ``is_chosen``: whether any were not. ``hidden`` and ``hidden_panels``: judges that filters leave out of
    the report, and over which claims are controlled all the same.
    """

    name: str
    items: int
    cluster: IntArray
    people: Votes
    saw_judge_first: Votes
    picked_by_hand: Votes
    reveal_votes: Mapping[str, JudgeRevealVotes]
    gold: Votes
    blind: int
    not_drawn: int
    calibration: int
    judges: tuple[JudgeMaterial, ...]
    panels: Mapping[str, tuple[str, ...]]
    days: IntArray
    active_ms: IntArray
    names: tuple[str, ...]
    offered: frozenset[int]
    rubric_versions: tuple[str, ...]
    warnings: tuple[str, ...]
    score_rules: tuple[ScoreRule, ...] = ()
    is_chosen: bool = True
    hidden: tuple[JudgeMaterial, ...] = ()
    hidden_panels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def answering(self) -> tuple[JudgeMaterial, ...]:
        """The judges that have answered anything: the others have failures and no numbers."""
        return tuple(judge for judge in self.judges if judge.has_answers)

    def split_rule(self, rules: ReportRules) -> SplitRule:
        """The split rule in agreement on this aspect, which depends on whether its rubrics offer a tie."""
        return effective_split_rule(rules.split_rule, self.offered)


@dataclass(frozen=True)
class VoteCounts:
    """People's votes by what they knew: blind, unknown (imported), or the judge's choice first (kept apart).

    Excluded, and in none of these: ``not_drawn`` at random nor with a known probability, and ``calibration``.
    """

    blind: int
    unknown: int
    saw_judge_first: int
    not_drawn: int
    calibration: int


@dataclass(frozen=True)
class SawJudgeFirst:
    """Agreement in reviews made after seeing the judge, which enter no other number."""

    votes: int
    judges: Mapping[str, JudgeHuman]


@dataclass(frozen=True)
class AspectReport:
    """All numbers of agreement on one aspect. ``anchoring`` and ``after_reveal``: by the judge that was shown."""

    name: str
    rubric_versions: tuple[str, ...]
    warnings: tuple[str, ...]
    human_votes: VoteCounts
    human_human: HumanHuman
    judges: Mapping[str, JudgeReport]
    judge_judge: tuple[JudgePair, ...]
    saw_judge_first: SawJudgeFirst
    anchoring: Mapping[str, AnchoringEffect]
    after_reveal: Mapping[str, AfterReveal]

    @property
    def answering(self) -> dict[str, JudgeReport]:
        """The judges that have answered anything, by name."""
        return {name: judge for name, judge in self.judges.items() if judge.has_answers}

    @property
    def has_reveal_data(self) -> bool:
        drawn = any(effect.difference.n for effect in self.anchoring.values())
        return drawn or any(effect.changed.n for effect in self.after_reveal.values())

    @property
    def why_reveal_not_random(self) -> str | None:
        """Why no effect of seeing a judge is claimed; None where one is."""
        if any(effect.difference.n for effect in self.anchoring.values()):
            return None
        return next((effect.difference.why for effect in self.anchoring.values()), None)


def share_rating_designs(materials: Mapping[str, AspectMaterial]) -> dict[str, AspectMaterial]:
    """The materials, in which aspects with the same votes on the same items share one rating design."""
    seen: list[Votes] = []
    for material in materials.values():
        seen.append(with_shared_design(material.people, seen))
    return {
        key: replace(material, people=people) for (key, material), people in zip(materials.items(), seen, strict=True)
    }


@dataclass(frozen=True)
class HumanReference:
    """The reference of judges on one aspect: reviewers, and the majority of the others for each vote."""

    people: ReferenceVotes
    others: Majority


def human_reference(material: AspectMaterial, rules: ReportRules) -> HumanReference:
    people = make_reference(material.people, material.cluster, material.names, material.split_rule(rules), rules.coding)
    return HumanReference(people, people.poll.majority_of_the_others(material.split_rule(rules)))


def aspect_reports(
    materials: Mapping[str, AspectMaterial], rules: ReportRules, *, compared: bool = True
) -> tuple[dict[str, AspectReport], dict[tuple[str, str], MeanDifference | None]]:
    """Reports by aspect key and, if ``compared``, differences of judges from people by aspect key and judge name."""
    clusters: list[tuple[IntArray, Strata]] = []
    reports: dict[str, AspectReport] = {}
    differences: dict[tuple[str, str], MeanDifference | None] = {}
    for key, material in materials.items():
        if not clusters or clusters[-1][0] is not material.cluster:
            clusters.append((material.cluster, single_stratum(material.cluster)))
        reference = human_reference(material, rules)
        reports[key] = aspect_report(material, reference, clusters[-1][1], rules)
        if compared:
            differences |= {(key, name): difference for name, difference in judge_differences(material, reference)}
    return reports, differences


def judge_differences(
    material: AspectMaterial, reference: HumanReference
) -> Iterator[tuple[str, MeanDifference | None]]:
    """For each judge with answers, hidden or not, its name and how much more often it agrees than left-out people."""
    poll = reference.people.poll
    numbers = np.flatnonzero(np.bincount(material.cluster[poll.items]))
    judges, panels = (*material.judges, *material.hidden), {**material.panels, **material.hidden_panels}
    whole = replace(material, judges=judges, panels=panels)
    answering = (judge for judge in (*judges, *panel_materials(whole)) if judge.has_answers)
    for judge in sorted(answering, key=lambda judge: judge.name):
        votes = leave_one_out_votes(
            recode_like_reference(judge.consolidated, reference.people)[poll.items], poll, reference.others
        )
        yield judge.name, average_difference_over_raters(votes.person, votes.judge_lead, numbers[votes.cluster])


def aspect_report(
    material: AspectMaterial, reference: HumanReference, everything: Strata, rules: ReportRules
) -> AspectReport:
    """The report on one aspect. ``everything``: all comparisons as one stratum."""
    offered, cluster = material.offered, material.cluster
    people, others = reference.people, reference.others
    labels = distinct_choices(material.gold)
    gold = make_reference(labels, cluster, (), SplitRule.DROP, rules.coding)
    gold_choice = gold_choice_by_item(labels, material.items)
    empty = NO_ORDER if rules.coding is SideCoding.SHOWN else None
    judges = (*material.judges, *panel_materials(material))
    own = {judge.name: judge.consolidated for judge in judges}
    answers = {judge.name: judge.consolidated for judge in judges if judge.has_answers}
    shown = {name: seen for name, seen in material.reveal_votes.items() if name in own}
    return AspectReport(
        name=material.name,
        rubric_versions=material.rubric_versions,
        warnings=material.warnings,
        human_votes=count_people_votes(material),
        human_human=human_agreement(
            people.poll, people.majority, others, material.names, len(offered), empty, all_pairs=rules.all_pairs
        ),
        judges={
            judge.name: judge_report(judge, people, others, gold, gold_choice, cluster, everything, offered, rules)
            for judge in judges
        },
        judge_judge=judge_pair_agreements(answers, material.panels, cluster, len(offered), rules.coding),
        saw_judge_first=report_saw_judge_first(material, own, rules),
        anchoring={
            name: anchoring_effect(own[name].choice, seen.blind, seen.shown, cluster) for name, seen in shown.items()
        },
        after_reveal={
            name: changes_after_reveal(own[name].choice, seen.confirmed, cluster) for name, seen in shown.items()
        },
    )


def gold_choice_by_item(labels: Votes, items: int) -> IntArray:
    """The gold choice of each comparison; MISSING where there is none or where labels contradict each other."""
    if not len(labels):
        return no_choices(items)
    return majority_of_votes(labels.item, labels.choice, items, SplitRule.DROP).choice


def count_people_votes(material: AspectMaterial) -> VoteCounts:
    unknown = len(material.people) - material.blind
    return VoteCounts(material.blind, unknown, len(material.saw_judge_first), material.not_drawn, material.calibration)


def panel_materials(material: AspectMaterial) -> Iterator[JudgeMaterial]:
    """The panels all of whose judges were asked about this aspect."""
    by_name = {judge.name: judge for judge in material.judges}
    for name, members in material.panels.items():
        if by_name.keys() >= set(members):
            yield panel_material(name, [by_name[member] for member in members], material.items)


def make_reference(
    votes: Votes, cluster: IntArray, names: tuple[str, ...], split_rule: SplitRule, coding: SideCoding
) -> ReferenceVotes:
    order = None
    if coding is SideCoding.SHOWN:
        votes = votes.where(votes.choice != MISSING)
        order = find_common_order(votes.item, votes.shown, len(cluster))
        votes = recode_votes_by_position(votes, len(cluster))
    poll = make_poll(votes, cluster)
    return ReferenceVotes(poll, poll.majority(split_rule), order, names)


def report_saw_judge_first(
    material: AspectMaterial, own: Mapping[str, ConsolidatedVerdicts], rules: ReportRules
) -> SawJudgeFirst:
    if not len(material.saw_judge_first):
        return SawJudgeFirst(0, {})
    late = make_reference(
        material.saw_judge_first, material.cluster, material.names, material.split_rule(rules), rules.coding
    )
    q = len(material.offered)
    judges = {
        name: judge_human_agreement(recode_like_reference(verdicts, late)[late.poll.items], late, q, rules.coding)
        for name, verdicts in own.items()
    }
    return SawJudgeFirst(len(material.saw_judge_first), judges)
