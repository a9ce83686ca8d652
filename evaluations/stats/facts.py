"""What a report says of every aspect whichever part is asked for: who spoke on it, and how often a judge failed."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from evaluations.domain import Part
from evaluations.stats.coding import MISSING
from evaluations.stats.judges import failed
from evaluations.stats.report import AspectMaterial


@dataclass(frozen=True)
class AspectFacts:
    """``people``: the names of those who gave one of the ``votes`` that count. ``judges``: what must be said of each.

    ``judged``: whether any of them has a verdict. ``failures``: the most calls that failed for good of any of them.
    """

    name: str
    items: int
    people: frozenset[str]
    votes: int
    judges: Mapping[str, str | None]
    judged: bool
    failures: int

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
        judges={judge.name: judge.label for judge in material.judges},
        judged=any(bool((judge.own.choice != MISSING).any()) for judge in material.judges),
        failures=max((failed(judge.states, judge.own).calls for judge in material.judges), default=0),
    )
