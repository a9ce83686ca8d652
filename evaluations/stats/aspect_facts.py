"""Counts on one aspect, which every part of a report needs."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from evaluations.domain.choices import ScoreRule
from evaluations.domain.reports import ReportPart, SplitRule
from evaluations.stats.aspect_report import AspectMaterial
from evaluations.stats.coding import MISSING
from evaluations.stats.judge_report import FailedCalls, count_failed_calls
from evaluations.stats.votes import effective_split_rule


@dataclass(frozen=True)
class AspectFacts:
    """Counts on one aspect of ``items`` comparisons.

    ``people``: names of the people with one of the ``votes`` that count. ``voted``: comparisons with a vote. ``blind``:
    votes that are known to be blind. ``voted_by_two``: comparisons with votes of two people; ``judged_and_voted``: the
    most of these that one judge has a verdict on. ``labels``: comparisons with gold. ``saw_judge_first`` and
    ``not_drawn``: excluded votes, of reviews that saw the judge first and on comparisons that were not drawn at random.

    ``judges``: the label of each judge with answers, by name; ``unanswered``: the calls of each judge without any.
    ``judged``: whether any judge has a verdict. ``choosing``: judges that chose and did not score. ``partial``: the
    number of verdicts of each judge that has one on some of the comparisons only. ``panels``: whether there are panels.
    ``failures``: the most calls of one judge that failed for good. ``splits_are_dropped``: whether split majorities are
    left out because the rubric offers no tie. ``score_rules`` and ``is_chosen``: as in `AspectMaterial`.
    """

    name: str
    items: int
    people: frozenset[str]
    votes: int
    judges: Mapping[str, str | None]
    unanswered: Mapping[str, FailedCalls]
    judged: bool
    failures: int
    voted: int = 0
    blind: int = 0
    voted_by_two: int = 0
    judged_and_voted: int = 0
    labels: int = 0
    saw_judge_first: int = 0
    not_drawn: int = 0
    choosing: frozenset[str] = frozenset()
    partial: Mapping[str, int] = field(default_factory=dict)
    panels: bool = False
    splits_are_dropped: bool = False
    score_rules: tuple[ScoreRule, ...] = ()
    is_chosen: bool = True

    def has_part(self, part: ReportPart) -> bool:
        """Whether a part of the report that shows one aspect a page has content on this aspect."""
        voted = self.votes > 0
        return {ReportPart.BIAS: self.judged, ReportPart.WINS: self.judged or voted, ReportPart.PEOPLE: voted}[part]


def count_aspect_facts(material: AspectMaterial) -> AspectFacts:
    voted = material.people.choice != MISSING
    item, rater = material.people.item[voted], material.people.rater[voted]
    last_rater = np.zeros(material.items, dtype=np.int64)
    last_rater[item] = rater
    by_two = np.flatnonzero(np.bincount(item, rater != last_rater[item], material.items))
    verdicts = {judge.name: judge.consolidated.choice != MISSING for judge in material.answering}
    return AspectFacts(
        name=material.name,
        items=material.items,
        people=frozenset(material.names[number] for number in np.flatnonzero(np.bincount(rater)).tolist()),
        votes=len(material.people),
        judges={judge.name: judge.label for judge in material.answering},
        unanswered={judge.name: count_failed_calls(judge) for judge in material.judges if not judge.has_answers},
        judged=any(bool(has.any()) for has in verdicts.values()),
        voted=int(np.count_nonzero(np.bincount(item))),
        blind=material.blind,
        voted_by_two=len(by_two),
        judged_and_voted=max((int(has[by_two].sum()) for has in verdicts.values()), default=0),
        labels=int(np.count_nonzero(np.bincount(material.gold.item[material.gold.choice != MISSING]))),
        saw_judge_first=len(material.saw_judge_first),
        not_drawn=material.not_drawn,
        choosing=frozenset(judge.name for judge in material.answering if judge.derived is None),
        partial={name: int(has.sum()) for name, has in verdicts.items() if not has.all()},
        panels=bool(material.panels),
        splits_are_dropped=effective_split_rule(SplitRule.TIE, material.offered) is SplitRule.DROP,
        score_rules=material.score_rules,
        is_chosen=material.is_chosen,
        failures=max(
            (count_failed_calls(judge).calls + judge.failed_elsewhere for judge in material.answering), default=0
        ),
    )
