"""What is asked of an import, and what the check of its file finds."""

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from enum import StrEnum
from typing import Any, ClassVar, Literal, Self

from pydantic import TypeAdapter

from evaluations.domain.errors import InputRefused
from evaluations.domain.files import NewResponse, ReadOptions
from evaluations.domain.json_values import JsonDict, JsonMapping
from evaluations.domain.pairing import Pairing, PairingWay, make_pairing
from evaluations.domain.roles import RaterKind


class StoredJson:
    """A dataclass that is stored in a JSON column."""

    _adapter: ClassVar[TypeAdapter[Any]]

    @classmethod
    def get_adapter(cls) -> TypeAdapter[Self]:
        if "_adapter" not in vars(cls):
            cls._adapter = TypeAdapter(cls)
        return cls._adapter

    @classmethod
    def from_json(cls, stored: JsonMapping) -> Self:
        return cls.get_adapter().validate_python(stored)

    def to_json(self) -> JsonDict:
        stored: JsonDict = self.get_adapter().dump_python(self, mode="json")
        return stored


@dataclass(frozen=True)
class ImportRequest:
    """How a file is to be read, and which comparisons are to be made of its responses.

    ``tie_margin``: if scores are to make choices between all responses to a query, the largest difference that is a
    tie. ``brings``: the only material that is accepted; any if empty.
    """

    reading: ReadOptions = field(default_factory=ReadOptions)
    pairing: Pairing = field(default_factory=Pairing)
    tie_margin: float | None = None
    brings: str = ""


@dataclass(frozen=True)
class ImportOptions(StoredJson):
    """The request of an import, with what is decided when it begins.

    ``ranking``: the rated candidates, best first, for pairs of neighbours. ``is_remembered``: the columns are read as
    in an earlier file. ``is_mapped``: somebody mapped the columns of this file, or changed how it is read.
    ``in_batch``: its check counts the files of the same user that wait before it as stored.
    """

    version: Literal[1] = 1
    request: ImportRequest = field(default_factory=ImportRequest)
    ranking: tuple[str, ...] = ()
    is_remembered: bool = False
    is_mapped: bool = False
    in_batch: bool = False


def parse_column_fields(text: str) -> dict[str, str]:
    """A mapping of columns to fields, one a line. Raises InputRefused."""
    mapping = {}
    for line in filter(str.strip, text.split("\n")):
        column, _, field = (part.strip() for part in line.partition("="))
        if not (column and field):
            raise InputRefused(f"“{line.strip()}” does not have the form column=field.", field="mapping")
        mapping[column] = field
    return mapping


class CandidateNaming(StrEnum):
    """The source of the model name of a file's responses."""

    FORM = "form"
    COLUMN = "column"
    FILE = "file"


@dataclass(frozen=True)
class ModelCount:
    """A model in a file, with its rows of each kind."""

    name: str
    rows: Mapping[str, int]


@dataclass(frozen=True)
class ModelPair:
    """Two models, with the number of comparisons between them."""

    first: str
    second: str
    number: int


@dataclass(frozen=True)
class ScoreScale:
    """The range of the scores of one aspect, and which end is better."""

    low: float
    high: float
    lower_is_better: bool

    def joined(self, other: "ScoreScale") -> "ScoreScale":
        return replace(self, low=min(self.low, other.low), high=max(self.high, other.high))


ScoreScales = Mapping[str, ScoreScale]


@dataclass(frozen=True)
class SampleResponse:
    candidate: str
    text: str


@dataclass(frozen=True)
class SampleVerdict:
    """``chosen``: the candidate on side A or B; None for any other choice."""

    key: str
    candidates: tuple[str, ...]
    rater: str
    kind: str
    aspect: str
    choice: str
    chosen: str | None


@dataclass(frozen=True)
class SampleScore:
    key: str
    candidate: str
    rater: str
    kind: str
    aspect: str
    value: float | None
    failure: str


@dataclass(frozen=True)
class SampleRow:
    """A row of a file as a preview shows it."""

    line: int
    key: str = ""
    query: str = ""
    responses: tuple[SampleResponse, ...] = ()
    verdicts: tuple[SampleVerdict, ...] = ()
    scores: tuple[SampleScore, ...] = ()


@dataclass(frozen=True)
class ImportSummary(StoredJson):
    """What the check of a file found.

    ``models``: those with most rows, of ``models_number``. ``needs_pairing``: whether pairs are made of its responses.
    ``pairs_expected``: the comparisons that are made so; ``pairs``: between which models, the most frequent first.
    ``queries``: how many queries its responses and scores are about, of which ``queries_matched`` are known already.
    ``conflicts``: how many responses differ from another of the same model to the same query.
    """

    version: Literal[1] = 1
    models: tuple[ModelCount, ...] = ()
    models_number: int = 0
    named_by: CandidateNaming = CandidateNaming.COLUMN
    needs_pairing: bool = False
    pairs_expected: int = 0
    pairs: tuple[ModelPair, ...] = ()
    queries: int = 0
    queries_matched: int = 0
    conflicts: int = 0
    samples: tuple[SampleRow, ...] = ()
    aspects: Sequence[str] = ()
    scales: ScoreScales = field(default_factory=dict)
    warnings: Sequence[str] = ()
    notes: Sequence[str] = ()
    notices: Sequence[str] = ()


@dataclass(frozen=True)
class CreatedIds(StoredJson):
    """The ids of the shared rows that an import created, to be deleted with it if nothing else uses them."""

    candidates: tuple[int, ...] = ()
    aspects: tuple[int, ...] = ()
    judges: tuple[int, ...] = ()
    raters: tuple[int, ...] = ()
    rubric_versions: tuple[int, ...] = ()

    def __add__(self, other: "CreatedIds") -> "CreatedIds":
        return CreatedIds(*(ids + other_ids for ids, other_ids in zip(astuple(self), astuple(other), strict=True)))


def build_import_request(
    *,
    format: str,  # noqa: A002 - the name of the field
    id_prefix: str,
    candidate: str,
    rater: str,
    rater_kind: str | None,
    mapping: str,
    pair: str,
    baseline: str,
    pairs_each: int | None,
    new_response: str,
    lower_is_better: bool,
    derive_pairs: float | None,
) -> ImportRequest:
    """The request of an upload, from the fields of its form or its API call. Raises InputRefused."""
    reading = ReadOptions(
        format=format,
        id_prefix=id_prefix,
        candidate=candidate,
        rater=rater,
        rater_kind=RaterKind(rater_kind) if rater_kind else None,
        mapping=parse_column_fields(mapping),
        new_response=NewResponse(new_response or NewResponse.REFUSE),
        lower_is_better=lower_is_better,
    )
    return ImportRequest(
        reading, make_pairing(pair or PairingWay.ALL, baseline=baseline, pairs_each=pairs_each), derive_pairs
    )
