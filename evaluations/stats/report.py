"""The report on one aspect: its material, and every number of agreement that is made of it."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from evaluations.domain import Coding, Rules, ScoreRule, SplitRule
from evaluations.stats.anchoring import AfterReveal, Anchoring, Seeing, after_reveal, anchoring
from evaluations.stats.bias.strata import Strata, undivided
from evaluations.stats.ceiling import company_of
from evaluations.stats.coding import MISSING, IntArray
from evaluations.stats.companions import JudgePair, judge_judge
from evaluations.stats.consolidation import Consolidated, none_chosen
from evaluations.stats.judges import JudgeMaterial, JudgeReport, judge_report, panel_material
from evaluations.stats.majority import Majority, majority, split_rule_of
from evaluations.stats.people import HumanHuman, human_human
from evaluations.stats.polls import poll
from evaluations.stats.references import JudgeHuman, Reference, in_terms_of, judge_human
from evaluations.stats.shown import NO_ORDER, common_order, votes_by_place
from evaluations.stats.simultaneous import Difference, mean_difference
from evaluations.stats.votes import Votes, each_choice_once, with_turnout_of


@dataclass(frozen=True)
class AspectMaterial:
    """What the database holds on one aspect of ``items`` comparisons.

    ``cluster``: the cluster of each comparison, numbers from 0. ``people``: votes that count, ``late``: votes of
    reviews that saw the judge first, ``undrawn``: votes on what was not drawn at random. ``offered``: the codes of the
    choices that the rubrics offer. ``panels``: their names, and those of the judges they are made of. ``names``: what
    the rater numbers stand for. ``seeing``: by the name of each judge that reviews were shown. ``not_drawn`` and
    ``calibration``: how many votes estimates may not use. ``days`` and ``active_ms``: of each of people's votes, in
    days since 1970-01-01, and the time that its review took, 0 where that is not known. ``score_rules``: how choices
    were derived from scores, if any were; ``is_chosen``: whether any were not. ``hidden`` and ``hidden_panels``: judges
    that filters leave out of the report, and that claims are controlled over all the same.
    """

    name: str
    items: int
    cluster: IntArray
    people: Votes
    late: Votes
    undrawn: Votes
    seeing: Mapping[str, Seeing]
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

    def split_rule(self, rules: Rules) -> SplitRule:
        """What becomes of a split majority in agreement on this aspect."""
        return split_rule_of(rules.split_rule, self.offered)


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
    """Reviews made after seeing the judge: they enter no other number."""

    votes: int
    judges: Mapping[str, JudgeHuman]


@dataclass(frozen=True)
class AspectReport:
    """``anchoring`` and ``after_reveal``: by the judge that the reviews were shown."""

    name: str
    rubric_versions: tuple[str, ...]
    warnings: tuple[str, ...]
    human_votes: VoteCounts
    human_human: HumanHuman
    judges: Mapping[str, JudgeReport]
    judge_judge: tuple[JudgePair, ...]
    saw_judge_first: SawJudgeFirst
    anchoring: Mapping[str, Anchoring]
    after_reveal: Mapping[str, AfterReveal]

    @property
    def answering(self) -> dict[str, JudgeReport]:
        """The judges that have answered anything, by name."""
        return {name: judge for name, judge in self.judges.items() if judge.has_answers}

    @property
    def tells_of_seeing(self) -> bool:
        drawn = any(found.difference.n for found in self.anchoring.values())
        return drawn or any(found.changed.n for found in self.after_reveal.values())

    @property
    def seeing_was_not_drawn(self) -> str | None:
        """Why no effect is claimed of any judge; None where one is."""
        if any(found.difference.n for found in self.anchoring.values()):
            return None
        return next((found.difference.why for found in self.anchoring.values()), None)


def sharing_turnout(materials: Mapping[str, AspectMaterial]) -> dict[str, AspectMaterial]:
    """The same; aspects on which the same people voted on the same items share who voted on what."""
    seen: list[Votes] = []
    for material in materials.values():
        seen.append(with_turnout_of(material.people, seen))
    return {key: replace(one, people=people) for (key, one), people in zip(materials.items(), seen, strict=True)}


@dataclass(frozen=True)
class Everyone:
    """What judges are compared with on one aspect: reviewers, and the majority of the others for each vote."""

    people: Reference
    others: Majority


def everyone(material: AspectMaterial, rules: Rules) -> Everyone:
    people = reference(material.people, material.cluster, material.names, material.split_rule(rules), rules.coding)
    return Everyone(people, people.poll.majority_of_the_others(material.split_rule(rules)))


def aspect_reports(
    materials: Mapping[str, AspectMaterial], rules: Rules, *, compared: bool = True
) -> tuple[dict[str, AspectReport], dict[tuple[str, str], Difference | None]]:
    """By the aspect's key; and by that and the judge's name its difference from reviewers, if they are ``compared``."""
    clusters: list[tuple[IntArray, Strata]] = []
    found: dict[str, AspectReport] = {}
    differences: dict[tuple[str, str], Difference | None] = {}
    for key, material in materials.items():
        if not clusters or clusters[-1][0] is not material.cluster:
            clusters.append((material.cluster, undivided(material.cluster)))
        held = everyone(material, rules)
        found[key] = aspect_report(material, held, clusters[-1][1], rules)
        if compared:
            differences |= {(key, name): one for name, one in differences_of(material, held)}
    return found, differences


def differences_of(material: AspectMaterial, held: Everyone) -> Iterator[tuple[str, Difference | None]]:
    """Of each judge with answers, hidden ones too, by name: how much more often it agrees than a person left out."""
    poll = held.people.poll
    numbers = np.flatnonzero(np.bincount(material.cluster[poll.items]))
    whole = replace(
        material,
        judges=(*material.judges, *material.hidden),
        panels={**material.panels, **material.hidden_panels},
    )
    judges = (judge for judge in (*whole.judges, *panels(whole)) if judge.has_answers)
    for judge in sorted(judges, key=lambda one: one.name):
        company = company_of(in_terms_of(judge.own, held.people)[poll.items], poll, held.others)
        yield judge.name, mean_difference(company.person, company.ahead, numbers[company.cluster])


def aspect_report(material: AspectMaterial, held: Everyone, everything: Strata, rules: Rules) -> AspectReport:
    """``everything``: the comparisons, undivided."""
    offered, cluster = material.offered, material.cluster
    people, others = held.people, held.others
    labels = each_choice_once(material.gold)
    gold = reference(labels, cluster, (), SplitRule.DROP, rules.coding)
    gold_choice = gold_choices(labels, material.items)
    empty = NO_ORDER if rules.coding is Coding.SHOWN else None
    judges = (*material.judges, *panels(material))
    own = {judge.name: judge.own for judge in judges}
    answers = {judge.name: judge.own for judge in judges if judge.has_answers}
    shown = {name: seen for name, seen in material.seeing.items() if name in own}
    return AspectReport(
        name=material.name,
        rubric_versions=material.rubric_versions,
        warnings=material.warnings,
        human_votes=vote_counts(material),
        human_human=human_human(
            people.poll, people.majority, others, material.names, len(offered), empty, all_pairs=rules.all_pairs
        ),
        judges={
            judge.name: judge_report(judge, people, others, gold, gold_choice, cluster, everything, offered, rules)
            for judge in judges
        },
        judge_judge=judge_judge(answers, material.panels, cluster, len(offered), rules.coding),
        saw_judge_first=saw_judge_first(material, own, rules),
        anchoring={name: anchoring(own[name].choice, seen.blind, seen.shown, cluster) for name, seen in shown.items()},
        after_reveal={name: after_reveal(own[name].choice, seen.confirmed, cluster) for name, seen in shown.items()},
    )


def gold_choices(labels: Votes, items: int) -> IntArray:
    """In terms of A and B on every comparison, MISSING where there is none or labels contradict each other."""
    if not len(labels):
        return none_chosen(items)
    return majority(labels.item, labels.choice, items, SplitRule.DROP).choice


def vote_counts(material: AspectMaterial) -> VoteCounts:
    unknown = len(material.people) - material.blind
    return VoteCounts(material.blind, unknown, len(material.late), material.not_drawn, material.calibration)


def panels(material: AspectMaterial) -> Iterator[JudgeMaterial]:
    """The panels of which every judge was asked about this aspect."""
    by_name = {judge.name: judge for judge in material.judges}
    for name, members in material.panels.items():
        if by_name.keys() >= set(members):
            yield panel_material(name, [by_name[member] for member in members], material.items)


def reference(
    votes: Votes, cluster: IntArray, names: tuple[str, ...], split_rule: SplitRule, coding: Coding
) -> Reference:
    order = None
    if coding is Coding.SHOWN:
        votes = votes.where(votes.choice != MISSING)
        order = common_order(votes.item, votes.shown, len(cluster))
        votes = votes_by_place(votes, len(cluster))
    found = poll(votes, cluster)
    return Reference(found, found.majority(split_rule), order, names)


def saw_judge_first(material: AspectMaterial, own: Mapping[str, Consolidated], rules: Rules) -> SawJudgeFirst:
    if not len(material.late):
        return SawJudgeFirst(0, {})
    late = reference(material.late, material.cluster, material.names, material.split_rule(rules), rules.coding)
    q = len(material.offered)
    judges = {
        name: judge_human(in_terms_of(one, late)[late.poll.items], late, q, rules.coding) for name, one in own.items()
    }
    return SawJudgeFirst(len(material.late), judges)
