"""Rows as an import carries them: no more of each than later rows ask for, and what is to be written of the new ones.

An object of the ORM for every row took more time than all that is done with it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evaluations.domain import Messages, QueryPart, ScoreRow, VerdictRow, text_of
from evaluations.models import Aspect, Candidate, Rater

# What a rater says, by which it is told apart from all else that is said of the same thing.
SaidKey = tuple[str | int, ...]
# The word that was said, and the line it was said in; None where it is stored.
Said = tuple[str, int | None]
ResponseKey = tuple[str, str]
ComparisonKey = tuple[str, str, str, str]


@dataclass(slots=True, eq=False)
class QuerySketch:
    """``line``: where in this file it stands; None where it is stored. ``part``: its words, if it is new."""

    key: str
    cluster: str
    category: str
    sha256: str
    pk: int | None = None
    line: int | None = None
    part: QueryPart | None = None
    stored_text: str = ""
    owner: int = 0  # under which `Seen` keeps what this file says of it
    fresh: bool = False  # this file said nothing of it before
    responses: "dict[ResponseKey, ResponseSketch]" = field(default_factory=dict)
    comparisons: "dict[ComparisonKey, ComparisonSketch]" = field(default_factory=dict)

    @property
    def text(self) -> str:
        return text_of(self.part.messages) if self.part else self.stored_text

    @property
    def where(self) -> str:
        return where(self.line)


@dataclass(slots=True, eq=False)
class ResponseSketch:
    query: QuerySketch
    candidate: Candidate
    sha256: str
    pk: int | None = None
    line: int | None = None  # where in this file it stands; None where it is stored
    sample: int | None = None
    replaces: ResponseKey | None = None  # the one whose place it takes
    messages: Messages = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    said: dict[SaidKey, Said] = field(default_factory=dict)

    @property
    def key(self) -> ResponseKey:
        return self.candidate.name, self.sha256


@dataclass(slots=True, eq=False)
class ComparisonSketch:
    query: QuerySketch
    a: ResponseSketch
    b: ResponseSketch
    turned: bool
    pk: int | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    said: dict[SaidKey, Said] = field(default_factory=dict)

    @property
    def key(self) -> ComparisonKey:
        return *self.a.key, *self.b.key


@dataclass(slots=True, eq=False)
class VerdictSketch:
    """``told``: the row in terms of the comparison's A and B."""

    rater: Rater
    comparison: ComparisonSketch
    aspect: Aspect
    told: VerdictRow


@dataclass(slots=True, eq=False)
class FailureSketch:
    """``shown``: a response alone has no order, and is stored as calls about it are."""

    rater: Rater
    subject: ComparisonSketch | ResponseSketch
    shown: str
    sample: int
    state: str
    rationale: str


@dataclass(slots=True, eq=False)
class ScoreSketch:
    rater: Rater
    response: ResponseSketch
    aspect: Aspect
    told: ScoreRow
    value: float


Sketch = QuerySketch | ResponseSketch | ComparisonSketch | VerdictSketch | FailureSketch | ScoreSketch


def where(line: int | None) -> str:
    return f"in line {line}" if line else "here already"
