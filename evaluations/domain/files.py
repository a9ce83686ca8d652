"""The rows, fields and states of imported and exported files."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Final, Self

from evaluations.domain.choices import FLIPPED_CHOICES, Choice, ShownOrder
from evaluations.domain.json_values import JsonMapping
from evaluations.domain.roles import RaterKind
from evaluations.domain.texts import Messages


class FileFormat(StrEnum):
    """The formats that a user may select for an import. AUTO detects the format from the columns."""

    AUTO = "auto"
    COMPARISONS = "comparisons"
    RESPONSES = "responses"
    VERDICTS = "verdicts"
    SCORES = "scores"
    PANDALM = "pandalm"
    LLMBAR = "llmbar"
    SQUALITY = "squality"
    MT_BENCH = "mt-bench"
    ARENA = "arena"
    ALPACA_EVAL = "alpaca-eval"
    PREFERENCES = "preferences"
    KTO = "kto"
    ARENA_HARD = "arena-hard"
    JUDGEBENCH = "judgebench"
    AUTO_ARENA = "auto-arena"
    LLM_COMPARATOR = "llm-comparator"
    JUST_EVAL = "just-eval"
    LABEL_STUDIO = "label-studio"
    ARGILLA = "argilla"


# The name of an uploaded file without a name.
DEFAULT_FILE_NAME: Final = "upload"

# In place of a format, for pairs made from stored responses without a file.
PAIRS_WITHOUT_FILE = "pairs"

# The export of a whole evaluation.
BACKUP_FORMAT_NAME: Final = "backup"

# The only export that is a folder. Its rows are preferences, and it also has every comparison.
FOLDER_FORMAT: Final = "hugging-face"


class ImportState(StrEnum):
    MAPPING = "mapping"  # kept until a person says what its columns mean
    CHECKING = "checking"
    PREVIEWED = "previewed"
    STORING = "storing"
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"
    UNDOING = "undoing"  # hidden at once, and removed in small steps
    UNDONE = "undone"


class NewResponse(StrEnum):
    """How to import a response if its candidate already has a different one to the same prompt and sample."""

    REFUSE = "refuse"  # the row is bad
    KEEP = "keep"  # both are kept
    REPLACE = "replace"  # it replaces the other, which nobody has used
    SKIP = "skip"  # the row is left out, and counted


class ExportState(StrEnum):
    WAITING = "waiting"  # for a worker
    UNFINISHED = "unfinished"  # being written
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


@dataclass(frozen=True)
class FileLimits:
    """Limits for reading a file.

    ``scratch``: the folder for files that must be unpacked completely, on whose disk ``reserve_bytes`` stay free.
    """

    rows: int = 10_000_000
    unpacked_bytes: int = 16 * 1024**3
    scratch: str | None = None
    reserve_bytes: int = 0


@dataclass(frozen=True)
class ReadOptions:
    """The options for reading a file.

    ``mapping``: the field or fields (separated by commas) of a column. ``constants``: one value of a field for all
    rows. ``choices``: the choice that each word in lower case means. ``id_prefix``: added to every query id. ``rater``
    and ``rater_kind``: of rows that name none. ``lower_is_better``: whether lower scores are better, as with ranks.
    ``candidate``: the model of all responses; if empty, a column names it, else ``file_name``, which the reader sets.
    ``as_it_is``: ignore the mapping remembered for files with the same columns.
    ``later_columns``: mapped columns that the first rows of the file do not have.
    ``new_response``: how to import a second response of a candidate to a query.
    """

    format: str = FileFormat.AUTO
    id_prefix: str = ""
    mapping: Mapping[str, str] = field(default_factory=dict)
    constants: Mapping[str, str] = field(default_factory=dict)
    choices: Mapping[str, str] = field(default_factory=dict)
    rater: str = ""
    rater_kind: RaterKind | None = None
    lower_is_better: bool = False
    as_it_is: bool = False
    candidate: str = ""
    new_response: NewResponse = NewResponse.REFUSE
    file_name: str = ""
    later_columns: tuple[str, ...] = ()

    @property
    def is_mapped(self) -> bool:
        return bool(self.mapping or self.constants or self.choices)


@dataclass(frozen=True)
class BadRow:
    """A row that cannot be stored. ``line`` counts from 1 as an editor shows it."""

    line: int
    reason: str


@dataclass(frozen=True)
class QueryPart:
    """The query of a row. ``messages`` end with the user's turn.

    ``is_stand_in``: the file does not contain the text, so that a stored query with this key is used. If there is none,
    ``messages`` are stored, or the row is refused if they are empty.
    """

    key: str
    cluster: str
    messages: Messages
    context: str | None = None
    reference: str | None = None
    category: str = ""
    metadata: JsonMapping = field(default_factory=dict)
    is_stand_in: bool = False


@dataclass(frozen=True)
class QueryRow:
    """A row with a query and no response."""

    line: int
    query: QueryPart


@dataclass(frozen=True)
class ComparisonRow:
    """A row with a query and two responses. ``sample``: their number among several responses of each candidate."""

    line: int
    query: QueryPart
    candidate_a: str
    response_a: Messages
    candidate_b: str
    response_b: Messages
    metadata: Mapping[str, object] = field(default_factory=dict)
    sample: int | None = None


@dataclass(frozen=True)
class ResponseRow:
    """A row with a query and one response; pairs are made later.

    ``lacks_questions``: whether the user's turns between those of the candidate are missing; they are taken from
    FOLLOW_UPS_KEY in the metadata of the stored query. ``overruled``: the name in the file's column, if another one is
    used. ``sample``: the number among several responses of the candidate.
    """

    line: int
    query: QueryPart
    candidate: str
    response: Messages
    metadata: Mapping[str, object] = field(default_factory=dict)
    lacks_questions: bool = False
    overruled: str = ""
    sample: int | None = None


SWAPPED_ORDERS: Final = {ShownOrder.AS_STORED: ShownOrder.SWAPPED, ShownOrder.SWAPPED: ShownOrder.AS_STORED}


@dataclass(frozen=True)
class VerdictRow:
    """A row with one rater's choice.

    ``choice``: a Choice value, ``inconsistent`` or a failure state of a call. If both candidates are None, the query
    must have exactly one comparison, and A is the first response in the file that it came from. If only A is None, B
    must have exactly one comparison there. ``expected_texts``: query, first and second response, which must equal the
    stored ones.
    """

    line: int
    query_key: str
    candidate_a: str | None
    candidate_b: str | None
    rater: str
    rater_kind: RaterKind
    aspect: str
    choice: str
    shown: ShownOrder = ShownOrder.UNKNOWN
    sample: int | None = None
    rationale: str = ""
    note: str = ""
    created_at: str | None = None
    expected_texts: tuple[str, str, str] | None = None

    def with_sides_by_name(self) -> Self:
        """The row with A as the candidate whose name sorts first, unchanged without names."""
        if self.candidate_a is None or self.candidate_b is None or self.candidate_a <= self.candidate_b:
            return self
        return self.with_swapped_sides()

    def with_swapped_sides(self) -> Self:
        """The same statement with the candidates in the other places."""
        return replace(self, candidate_a=self.candidate_b, candidate_b=self.candidate_a).with_swapped_choice()

    def with_swapped_choice(self) -> Self:
        """The row with the choice and the order shown of the other side, and the candidates where they are."""
        choice = FLIPPED_CHOICES[Choice(self.choice)] if self.choice in tuple(Choice) else self.choice
        return replace(self, choice=choice, shown=SWAPPED_ORDERS.get(self.shown, self.shown))


@dataclass(frozen=True)
class ScoreRow:
    """A row with one rater's score of one response. ``overruled``: as in ResponseRow.

    ``value``: None if the judge failed; ``failure`` is then the state of its call.
    """

    line: int
    query_key: str
    candidate: str
    rater: str
    rater_kind: RaterKind
    aspect: str
    value: float | None
    lower_is_better: bool = False
    sample: int | None = None
    rationale: str = ""
    failure: str = ""
    overruled: str = ""


class NoticeKind(StrEnum):
    """The way in which content of a file is not stored unchanged."""

    NOT_UNDERSTOOD = "not_understood"  # a label
    COLUMN = "column"
    NOT_STORED = "not_stored"  # anything else that has no place here
    STATUS = "status"  # an answer that its status leaves out
    NO_STATUS = "no_status"
    NO_ANSWER = "no_answer"
    EQUAL_RESPONSES = "equal_responses"
    SHORTENED = "shortened"
    NO_VALUE = "no_value"  # a word that programs write for a value that is missing, kept as a text or a name
    RENAMED = "renamed"


@dataclass(frozen=True, slots=True)
class Notice:
    """Content of a record that is not stored unchanged. ``where``: the column, field or question it belongs to."""

    line: int
    kind: NoticeKind
    what: str = ""
    where: str = ""


SAMPLE_KEY: Final = "sample"  # in a response's metadata: its number among several of its candidate
FOLLOW_UPS_KEY: Final = "follow_ups"  # of a query's metadata: what the user says after each response

FileRow = QueryRow | ComparisonRow | ResponseRow | VerdictRow | ScoreRow | BadRow | Notice


@dataclass(frozen=True)
class FileEntry:
    """The rows of one record of a file. ``notices``: of content that is not imported as it is in the file."""

    line: int
    rows: tuple[FileRow, ...]
    notices: tuple[Notice, ...] = ()


# Sources of query ids, if no column has them.
ID_FROM_ROW_NUMBER: Final = "#row"
ID_FROM_TEXT: Final = "#text"
CANDIDATE_FIELD: Final = "candidate"

# Constants that belong to one file: a remembered mapping omits their values.
SINGLE_FILE_FIELDS: Final = (CANDIDATE_FIELD, "candidate_a", "candidate_b", "rater", "rater_kind")


@dataclass(frozen=True)
class FileField:
    """A field of a row. ``whole_file``: whether one value may apply to all rows."""

    name: str
    needed: bool = False
    whole_file: bool = False


QUERY_FIELDS: Final = (
    FileField("query_id", needed=True),
    FileField("query", needed=True),
    FileField("messages"),
    FileField("context"),
    FileField("reference"),
    FileField("category", whole_file=True),
    FileField("cluster"),
)

RATER_FIELDS: Final = (
    FileField("rater", whole_file=True),
    FileField("rater_kind", whole_file=True),
    FileField("aspect", whole_file=True),
)

CANDIDATE_PAIR_FIELDS: Final = (
    FileField("candidate_a", needed=True, whole_file=True),
    FileField("candidate_b", needed=True, whole_file=True),
)

SINGLE_CANDIDATE_FIELD: Final = FileField(CANDIDATE_FIELD, needed=True, whole_file=True)
FIELDS_BY_FORMAT: Final[Mapping[str, tuple[FileField, ...]]] = {
    FileFormat.COMPARISONS: (
        *QUERY_FIELDS,
        CANDIDATE_PAIR_FIELDS[0],
        FileField("response_a", needed=True),
        CANDIDATE_PAIR_FIELDS[1],
        FileField("response_b", needed=True),
        FileField("choice"),
        *RATER_FIELDS,
        FileField("rationale"),
    ),
    FileFormat.RESPONSES: (
        *QUERY_FIELDS,
        FileField(CANDIDATE_FIELD, whole_file=True),  # else it is the file's own name
        FileField("response", needed=True),
        FileField("sample"),
        FileField("value"),
        FileField("failure"),
        *RATER_FIELDS,
        FileField("rationale"),
    ),
    FileFormat.VERDICTS: (
        FileField("query_id", needed=True),
        *CANDIDATE_PAIR_FIELDS,
        FileField("choice", needed=True),
        *RATER_FIELDS,
        FileField("shown_swapped", whole_file=True),
        FileField("sample"),
        FileField("rationale"),
        FileField("note"),
        FileField("created_at"),
    ),
    FileFormat.SCORES: (
        FileField("query_id", needed=True),
        SINGLE_CANDIDATE_FIELD,
        FileField("value", needed=True),
        FileField("failure"),
        *RATER_FIELDS,
        FileField("sample"),
        FileField("rationale"),
    ),
}
