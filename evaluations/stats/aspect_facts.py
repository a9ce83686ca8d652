"""The counts on one aspect that every part of a report prints."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from evaluations.domain.choices import ScoreRule
from evaluations.domain.reports import ReportPart, SplitRule
from evaluations.stats.aspect_report import AspectMaterial
from evaluations.stats.coding import MISSING
from evaluations.stats.judge_report import FailedCalls, count_failed_calls
from evaluations.stats.majority import effective_split_rule


@dataclass(frozen=True)
class AspectFacts:
    """``people``: the names of those who gave one of the ``votes`` that count. ``judges``: what must be said of each.

    ``voted``: on how many comparisons. ``blind``: how many of the votes are known to be. ``together``: on how many two
    people voted; ``beside``: on how many of these a judge has a verdict. ``labels``: how many comparisons have gold.
    ``late`` and ``not_drawn``: votes left out, of reviews that saw the judge first and on comparisons that were picked.
    ``unanswered``: the calls of judges that have answered nothing, by name. ``judged``: whether any judge has a
    verdict. ``choosing``: judges that chose, not scored; ``partial``: the verdicts of those that have one on a part of
    the comparisons. ``panels``: whether judges were started together. ``failures``: the most calls that failed for good
    of any of them. ``splits_are_dropped``: because the rubric offers no tie. ``score_rules`` and ``is_chosen``: as the
    material has them.
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
    together: int = 0
    beside: int = 0
    labels: int = 0
    late: int = 0
    not_drawn: int = 0
    choosing: frozenset[str] = frozenset()
    partial: Mapping[str, int] = field(default_factory=dict)
    panels: bool = False
    splits_are_dropped: bool = False
    score_rules: tuple[ScoreRule, ...] = ()
    is_chosen: bool = True

    def tells(self, part: ReportPart) -> bool:
        """Whether a part that has a page for each aspect has anything on this one."""
        voted = self.votes > 0
        return {ReportPart.BIAS: self.judged, ReportPart.WINS: self.judged or voted, ReportPart.PEOPLE: voted}[part]


def count_aspect_facts(material: AspectMaterial) -> AspectFacts:
    said = material.people.choice != MISSING
    item, rater = material.people.item[said], material.people.rater[said]
    somebody = np.zeros(material.items, dtype=np.int64)
    somebody[item] = rater  # the last of them
    together = np.flatnonzero(np.bincount(item, rater != somebody[item], material.items))
    verdicts = {judge.name: judge.own.choice != MISSING for judge in material.answering}
    return AspectFacts(
        name=material.name,
        items=material.items,
        people=frozenset(material.names[one] for one in np.flatnonzero(np.bincount(rater)).tolist()),
        votes=len(material.people),
        judges={judge.name: judge.label for judge in material.answering},
        unanswered={judge.name: count_failed_calls(judge) for judge in material.judges if not judge.has_answers},
        judged=any(bool(has.any()) for has in verdicts.values()),
        voted=int(np.count_nonzero(np.bincount(item))),
        blind=material.blind,
        together=len(together),
        beside=max((int(has[together].sum()) for has in verdicts.values()), default=0),
        labels=int(np.count_nonzero(np.bincount(material.gold.item[material.gold.choice != MISSING]))),
        late=len(material.late),
        not_drawn=material.not_drawn,
        choosing=frozenset(judge.name for judge in material.answering if judge.derived is None),
        partial={name: int(has.sum()) for name, has in verdicts.items() if not has.all()},
        panels=bool(material.panels),
        splits_are_dropped=effective_split_rule(SplitRule.TIE, material.offered) is SplitRule.DROP,
        score_rules=material.score_rules,
        is_chosen=material.is_chosen,
        failures=max((count_failed_calls(judge).calls + judge.elsewhere for judge in material.answering), default=0),
    )
