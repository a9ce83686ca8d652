"""Shapes of the API for imports, column mappings, pairs and near-duplicates."""

from datetime import datetime
from typing import Annotated, Literal

from ninja import Field, Schema

from evaluations.api.schemas import NameText, PersonOut, StrictIn
from evaluations.domain.files import FileFormat, ImportState, NewResponse
from evaluations.domain.json_values import JsonDict
from evaluations.domain.pairing import MAX_PAIRS_PER_QUERY, PairingWay
from evaluations.domain.roles import RaterKind

PairsPerQuery = Annotated[int, Field(ge=1, le=MAX_PAIRS_PER_QUERY)]


class ImportIn(StrictIn):
    """The fields of an upload."""

    format: FileFormat = Field(FileFormat.AUTO, description="what is in it; `auto`: detected from the columns")
    id_prefix: str = Field("", max_length=100)
    candidate: NameText = Field(
        "",
        description="the model of every response, overriding the file's column; without it the column names the "
        "model, else the file's name does",
    )
    rater: NameText = ""
    rater_kind: RaterKind | None = None
    mapping: str = Field("", description="column=field, one a line")
    pair: PairingWay = Field(PairingWay.ALL, description="pairs made of responses: all, baseline, random or adjacent")
    baseline: NameText = ""
    pairs_each: PairsPerQuery | None = None
    new_response: NewResponse = Field(
        NewResponse.REFUSE,
        description="where a candidate has another response to a query already, and no column `sample` tells them "
        "apart: refuse the row, keep both, replace the other (only while nobody used it), or skip the row",
    )
    lower_is_better: bool = False
    derive_pairs: float | None = Field(None, ge=0)


class ImportProgressOut(Schema):
    rows: int
    of: int | None
    rows_per_second: float | None
    seconds_left: float | None


class ImportOut(Schema):
    id: int
    file_name: str
    sha256: str
    format: str
    state: ImportState
    person: PersonOut | None
    rows_read: int
    rows_stored: int
    rows_unchanged: int
    rows_bad: int
    rows_skipped: int = Field(description="left out by `new_response`: skip")
    reason: str
    created_at: datetime
    finished_at: datetime | None


class ImportPageOut(Schema):
    items: list[ImportOut]
    next: str | None


class ImportDetailOut(ImportOut):
    mapping: JsonDict
    options: JsonDict
    summary: JsonDict = Field(description="what storing it would do; empty until the file is checked")
    bad_rows: list[JsonDict] = Field(description="the first of them, by line")
    progress: ImportProgressOut | None


class StoreImportIn(StrictIn):
    skip_bad: bool = Field(False, description="leave out the bad rows instead of storing nothing")


RowKind = Literal["comparisons", "responses", "verdicts", "scores"]
# "": no choice, the row's is left out.
ChoiceMeaning = Literal["A", "B", "tie", "both_bad", ""]
FieldName = Annotated[str, Field(max_length=60)]
ColumnName = Annotated[str, Field(max_length=1_000)]


class ColumnMappingIn(StrictIn):
    format: RowKind = Field(description="what a row is")
    columns: dict[FieldName, ColumnName] = Field(
        description="field of a row → the column that it comes from", examples=[{"query": "prompt"}]
    )
    values: dict[FieldName, NameText] = Field(
        default_factory=dict,
        description="field of a row → its value for all rows; `query_id` may be `#text` (made of the query's words) or "
        "`#row` (the number of the row)",
        examples=[{"query_id": "#text", "candidate_a": "gpt4"}],
    )
    choices: dict[NameText, ChoiceMeaning] = Field(
        default_factory=dict,
        description="word in the choice column → its meaning; empty: no choice; other words are read unchanged",
        examples=[{"model_1": "A"}],
    )


class ColumnMappingOut(Schema):
    columns: list[str] = Field(description="Columns of all rows.")
    paths: list[str] = Field(description="Values inside objects that can be mapped like columns: `message.content`.")
    rows: list[JsonDict] = Field(description="The first rows.")
    words: dict[str, list[str]] = Field(description="The values of columns with few distinct ones.")
    fields: dict[str, list[str]] = Field(description="The fields of each kind of row.")
    suggested: ColumnMappingIn = Field(description="The remembered or guessed mapping, ready to send back.")
    remembered: bool = Field(description="Whether a mapping for these columns is remembered.")


class BadRowOut(Schema):
    line: int
    reason: str


class MappingPreviewOut(Schema):
    rows: int = Field(description="of the beginning of the file that were tried")
    bad_rows: int
    refused: str = Field(description="why nothing can be made of the file like this; empty where something can")
    samples: list[JsonDict]
    bad: list[BadRowOut]


class PairCountOut(Schema):
    pair: PairingWay
    baseline: str | None
    pairs_each: int | None
    comparisons: int = Field(description="how many it would make: those that are here do not count")


class PairCountsOut(Schema):
    items: list[PairCountOut]
    ranking: list[str] = Field(description="the rated candidates, the best first, for pairs of neighbours")
    ranked_by: str
    unranked_because: str = Field(description="why there are no neighbours by rating; empty where there are")
    is_whole: bool = Field(description="false where time was up after `queries` of them: there may be more comparisons")
    queries: int = Field(description="of how many queries these were counted")
    confirmed_above: int = Field(description="more than this, or not wholly counted, are made only when `confirmed`")


class PairsIn(StrictIn):
    pair: PairingWay = PairingWay.ALL
    baseline: NameText = Field("", description="the candidate to hold the others against")
    pairs_each: PairsPerQuery | None = Field(None, description="how many pairs of each query are drawn at random")
    confirmed: bool = False


class NearDuplicateQueryOut(Schema):
    query_id: str
    query: str
    cluster: str


class NearDuplicatesOut(Schema):
    group: str = Field(description="to put them together by")
    number: int
    exact: bool = Field(description="whether they differ in nothing, rather than in case, blanks and punctuation")
    clusters: int = Field(description="in how many clusters they are: more than one, and a split may part them")
    queries: list[NearDuplicateQueryOut] = Field(description="the first of them")


class NearDuplicatePageOut(Schema):
    items: list[NearDuplicatesOut]
    next: str | None


class IdenticalResponsesOut(Schema):
    text: str
    query_id: str | None = Field(description="null where it was given to several queries")
    number: int = Field(description="of candidates that gave it to the query, or of queries that it was given to")


class QueryOverlapOut(Schema):
    where: str
    number: int = Field(description="of queries that stand there, too")
    examples: list[str]


class RepeatsOut(Schema):
    same_responses: list[IdenticalResponsesOut] = Field(description="one text of several candidates to one query")
    repeated_responses: list[IdenticalResponsesOut] = Field(description="one text to several queries")
    other_evaluations: list[QueryOverlapOut] = Field(description="of yours")
    worked_examples: list[QueryOverlapOut] = Field(description="rubrics whose examples tell the judge the answer")


class MergeClustersIn(StrictIn):
    group: Annotated[str, Field(min_length=1, max_length=19, description="of queries that are alike")]


class MergedClusterOut(Schema):
    cluster: str
