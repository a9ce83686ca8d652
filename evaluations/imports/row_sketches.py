"""Lightweight rows that an import carries instead of objects of the ORM."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Final

from evaluations.domain.files import BadRow, QueryPart, ScoreRow, VerdictRow
from evaluations.domain.json_values import JsonMapping
from evaluations.domain.texts import Messages, messages_to_text
from evaluations.models.comparisons import Candidate
from evaluations.models.judges import Rater
from evaluations.models.rubrics import Aspect

# The key of a verdict, score or failure among those on the same subject.
StatementKey = tuple[str | int, ...]
# Its value, and its line in the file; None if it is stored.
Statement = tuple[str, int | None]
ResponseKey = tuple[str, str]
ComparisonKey = tuple[str, str, str, str]


@dataclass(slots=True, eq=False)
class QuerySketch:
    """A query. ``line``: its line in this file; None if it is stored. ``part``: its content if it is new."""

    key: str
    cluster: str
    category: str
    sha256: str
    pk: int | None = None
    line: int | None = None
    part: QueryPart | None = None
    stored_text: str = ""
    owner: int = 0  # its number in the SeenIndex
    is_unseen: bool = False  # no earlier batch of this file is about it
    responses: "dict[ResponseKey, ResponseSketch]" = field(default_factory=dict)
    comparisons: "dict[ComparisonKey, ComparisonSketch]" = field(default_factory=dict)

    @property
    def text(self) -> str:
        return messages_to_text(self.part.messages) if self.part else self.stored_text

    @property
    def where(self) -> str:
        return describe_line(self.line)


@dataclass(slots=True, eq=False)
class ResponseSketch:
    query: QuerySketch
    candidate: Candidate
    sha256: str
    pk: int | None = None
    line: int | None = None  # in this file; None where it is stored
    sample: int | None = None
    replaces: ResponseKey | None = None
    messages: Messages = ()
    metadata: JsonMapping = field(default_factory=dict)
    statements: dict[StatementKey, Statement] = field(default_factory=dict)

    @property
    def key(self) -> ResponseKey:
        return self.candidate.name, self.sha256


@dataclass(slots=True, eq=False)
class ComparisonSketch:
    query: QuerySketch
    a: ResponseSketch
    b: ResponseSketch
    swapped: bool
    pk: int | None = None
    metadata: JsonMapping = field(default_factory=dict)
    statements: dict[StatementKey, Statement] = field(default_factory=dict)

    @property
    def key(self) -> ComparisonKey:
        return *self.a.key, *self.b.key


@dataclass(slots=True, eq=False)
class VerdictSketch:
    """``row``: in terms of the comparison's A and B."""

    rater: Rater
    comparison: ComparisonSketch
    aspect: Aspect
    row: VerdictRow


@dataclass(slots=True, eq=False)
class FailureSketch:
    """A failed call. ``shown``: as for calls about single responses if the subject is a response."""

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
    row: ScoreRow
    value: float


RowSketch = QuerySketch | ResponseSketch | ComparisonSketch | VerdictSketch | FailureSketch | ScoreSketch


# The line of rows of other files that wait to be imported before this one.
WAITING_LINE: Final = -1
WAITING_FILE_TEXT: Final = "in another file that is not imported yet"


def describe_line(line: int | None) -> str:
    if line is None:
        return "in this evaluation"
    return WAITING_FILE_TEXT if line == WAITING_LINE else f"in line {line:,}"


@dataclass(frozen=True)
class SkippedEntry:
    """An entry that is left out because a person chose to skip such entries."""

    line: int


# The outcome of an entry: why it is bad or skipped, or its new rows.
EntryOutcome = BadRow | SkippedEntry | Sequence[RowSketch]

SKETCH_NAMES: Final[Mapping[type, str]] = {
    QuerySketch: "queries",
    ResponseSketch: "responses",
    ComparisonSketch: "comparisons",
    VerdictSketch: "verdicts",
    ScoreSketch: "scores",
    FailureSketch: "failures",
}


@dataclass(frozen=True)
class OutcomeCounts:
    """How many entries are new, unchanged, skipped or bad, with the number of new rows by kind."""

    stored: int
    unchanged: int
    skipped: int
    bad: int
    new: Counter[str]


def list_good_outcomes(outcomes: Iterable[EntryOutcome]) -> Iterator[Sequence[RowSketch]]:
    """The new rows of entries that are neither bad nor skipped."""
    return (outcome for outcome in outcomes if not isinstance(outcome, (BadRow, SkippedEntry)))


def count_outcomes(outcomes: Sequence[EntryOutcome]) -> OutcomeCounts:
    good = list(list_good_outcomes(outcomes))
    stored = sum(1 for outcome in good if outcome)
    skipped = sum(isinstance(outcome, SkippedEntry) for outcome in outcomes)
    new = Counter(map(type, chain.from_iterable(good)))
    counted = Counter({SKETCH_NAMES[kind]: number for kind, number in new.items()})
    return OutcomeCounts(stored, len(good) - stored, skipped, len(outcomes) - len(good) - skipped, counted)
