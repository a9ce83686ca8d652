"""The report: every number of every aspect, in the shape in which it is printed as JSON."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from evaluations.domain import Coding, Rules, SplitRule
from evaluations.stats.anchoring import AfterReveal, Anchoring, Seeing, after_reveal, anchoring
from evaluations.stats.coding import IntArray
from evaluations.stats.consolidation import consolidate
from evaluations.stats.judges import (
    JudgeHuman,
    JudgeMaterial,
    JudgeReport,
    Reference,
    in_terms_of,
    judge_human,
    judge_report,
    panel_material,
)
from evaluations.stats.majority import majority
from evaluations.stats.people import HumanHuman, human_human
from evaluations.stats.sentences import sentence
from evaluations.stats.shown import NO_ORDER, common_order, votes_by_place
from evaluations.stats.votes import Votes


@dataclass(frozen=True)
class AspectMaterial:
    """What the database holds on one aspect of ``items`` comparisons.

    ``people``: votes that count, ``late``: votes of reviews that saw the judge first. ``offered``: the codes of the
    choices that the rubrics offer. ``panels``: their names, and those of the judges they are made of.
    ``names``: what the rater numbers stand for. ``seeing``: by the name of each judge that reviews were shown.
    ``not_drawn`` and ``calibration``: how many votes estimates may not use.
    """

    name: str
    items: int
    people: Votes
    late: Votes
    seeing: Mapping[str, Seeing]
    gold: Votes
    blind: int
    not_drawn: int
    calibration: int
    judges: tuple[JudgeMaterial, ...]
    panels: Mapping[str, tuple[str, ...]]
    names: tuple[str, ...]
    offered: frozenset[int]
    rubric_versions: tuple[str, ...]
    warnings: tuple[str, ...]


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
    saw_judge_first: SawJudgeFirst
    anchoring: Mapping[str, Anchoring]
    after_reveal: Mapping[str, AfterReveal]

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


@dataclass(frozen=True)
class JudgeSummary:
    """What must be said of a judge wherever it is shown, and what its numbers say together."""

    label: str | None
    sentence: str


@dataclass(frozen=True)
class Report:
    """``no_verdicts``: names of the aspects that nobody has given a verdict on yet."""

    evaluation: str
    comparisons: int
    judges: Mapping[str, JudgeSummary]
    aspects: Mapping[str, AspectReport]
    no_verdicts: tuple[str, ...]
    rules: Mapping[str, str]

    def as_json(self) -> dict[str, Any]:
        return asdict(self)


def aspect_report(material: AspectMaterial, rules: Rules) -> AspectReport:
    offered = material.offered
    people = reference(material.people, material.items, rules.split_rule, rules.coding)
    gold = reference(material.gold, material.items, SplitRule.DROP, rules.coding)
    gold_choice = majority(material.gold.item, material.gold.choice, material.items, SplitRule.DROP).choice
    empty = NO_ORDER if rules.coding is Coding.SHOWN else None
    shown = choices_of_shown_judges(material, rules)
    material = replace(material, judges=(*material.judges, *panels(material, rules)))
    return AspectReport(
        name=material.name,
        rubric_versions=material.rubric_versions,
        warnings=material.warnings,
        human_votes=vote_counts(material),
        human_human=human_human(people.votes, people.majority, material.names, len(offered), rules.split_rule, empty),
        judges={
            judge.name: judge_report(judge, people, gold, gold_choice, offered, rules) for judge in material.judges
        },
        saw_judge_first=saw_judge_first(material, rules),
        anchoring={name: anchoring(choice, seen.blind, seen.shown) for name, choice, seen in shown},
        after_reveal={name: after_reveal(choice, seen.confirmed) for name, choice, seen in shown},
    )


def vote_counts(material: AspectMaterial) -> VoteCounts:
    unknown = len(material.people.item) - material.blind
    return VoteCounts(material.blind, unknown, len(material.late.item), material.not_drawn, material.calibration)


def choices_of_shown_judges(material: AspectMaterial, rules: Rules) -> list[tuple[str, IntArray, Seeing]]:
    """Those among the judges here that were asked about this aspect and that reviews were shown."""
    return [
        (judge.name, one_verdict(judge, material.items, rules), material.seeing[judge.name])
        for judge in material.judges
        if judge.name in material.seeing
    ]


def one_verdict(judge: JudgeMaterial, items: int, rules: Rules) -> IntArray:
    return consolidate(judge.verdicts, judge.unanswered.without(judge.verdicts), items, rules.failed).choice


def panels(material: AspectMaterial, rules: Rules) -> Iterator[JudgeMaterial]:
    """The panels of which every judge was asked about this aspect."""
    by_name = {judge.name: judge for judge in material.judges}
    for name, members in material.panels.items():
        if by_name.keys() >= set(members):
            yield panel_material(name, [by_name[member] for member in members], material.items, rules)


def summaries(aspects: Mapping[str, AspectReport]) -> dict[str, JudgeSummary]:
    """By the judge's name, over all aspects that it was asked about."""
    by_judge: dict[str, dict[str, JudgeReport]] = {}
    for aspect in aspects.values():
        for name, judge in aspect.judges.items():
            by_judge.setdefault(name, {})[aspect.name] = judge
    return {
        name: JudgeSummary(next(iter(by_aspect.values())).label, sentence(name, by_aspect))
        for name, by_aspect in by_judge.items()
    }


def reference(votes: Votes, items: int, split_rule: SplitRule, coding: Coding) -> Reference:
    order = None
    if coding is Coding.SHOWN:
        order = common_order(votes.item, votes.shown, items)
        votes = votes_by_place(votes, items)
    return Reference(votes, majority(votes.item, votes.choice, items, split_rule), order)


def saw_judge_first(material: AspectMaterial, rules: Rules) -> SawJudgeFirst:
    if not len(material.late.item):
        return SawJudgeFirst(0, {})
    late = reference(material.late, material.items, rules.split_rule, rules.coding)
    judges = {}
    for judge in material.judges:
        own = consolidate(judge.verdicts, judge.unanswered.without(judge.verdicts), material.items, rules.failed)
        judges[judge.name] = judge_human(in_terms_of(own, late), late, len(material.offered), rules.coding)
    return SawJudgeFirst(len(material.late.item), judges)
