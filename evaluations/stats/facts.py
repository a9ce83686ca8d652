"""What a report says of every aspect whichever part is asked for: who spoke on it, and how often a judge failed."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from evaluations.domain import Part, ScoreRule
from evaluations.stats.coding import MISSING
from evaluations.stats.judges import Failed, failures
from evaluations.stats.report import AspectMaterial


@dataclass(frozen=True)
class AspectFacts:
    """``people``: the names of those who gave one of the ``votes`` that count. ``judges``: what must be said of each.

    ``unanswered``: the calls of judges that have answered nothing, by name. ``judged``: whether any judge has a
    verdict. ``failures``: the most calls that failed for good of any of them. ``score_rules`` and ``is_chosen``: as the
    material has them.
    """

    name: str
    items: int
    people: frozenset[str]
    votes: int
    judges: Mapping[str, str | None]
    unanswered: Mapping[str, Failed]
    judged: bool
    failures: int
    score_rules: tuple[ScoreRule, ...] = ()
    is_chosen: bool = True

    def tells(self, part: Part) -> bool:
        """Whether a part that has a page for each aspect has anything on this one."""
        voted = self.votes > 0
        return {Part.BIAS: self.judged, Part.WINS: self.judged or voted, Part.PEOPLE: voted}[part]


def facts_of(material: AspectMaterial) -> AspectFacts:
    return AspectFacts(
        name=material.name,
        items=material.items,
        people=frozenset(
            material.names[rater] for rater in np.flatnonzero(np.bincount(material.people.rater)).tolist()
        ),
        votes=len(material.people),
        judges={judge.name: judge.label for judge in material.answering},
        unanswered={judge.name: failures(judge) for judge in material.judges if not judge.has_answers},
        judged=any(bool((judge.own.choice != MISSING).any()) for judge in material.answering),
        score_rules=material.score_rules,
        is_chosen=material.is_chosen,
        failures=max((failures(judge).calls for judge in material.answering), default=0),
    )
