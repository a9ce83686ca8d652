"""Shapes of the API for imports, column mappings, pairs and near-duplicates."""

from datetime import datetime
from typing import Annotated, Literal

from ninja import Field, Schema

from evaluations.api.schemas import NameText, StrictIn, UserOut
from evaluations.domain.files import FileFormat, ImportState, NewResponse
from evaluations.domain.json_values import JsonDict
from evaluations.domain.pairing import MAX_PAIRS_PER_QUERY, PairingWay
from evaluations.domain.roles import RaterKind

PairsPerQuery = Annotated[int, Field(ge=1, le=MAX_PAIRS_PER_QUERY)]


class ImportIn(StrictIn):
    """The fields of an upload."""

    format: FileFormat = Field(FileFormat.AUTO, description="`auto`: detected from the columns.")
    id_prefix: str = Field("", max_length=100)
    candidate: NameText = Field(
        "",
        description="The model of all responses; by default from the file's column, else from the file name.",
    )
    rater: NameText = ""
    rater_kind: RaterKind | None = None
    mapping: str = Field("", description="`column=field`, one per line.")
    pair: PairingWay = Field(PairingWay.ALL, description="How responses are paired.")
    baseline: NameText = ""
    pairs_each: PairsPerQuery | None = None
    new_response: NewResponse = Field(
        NewResponse.REFUSE,
        description="If a model already has a different response to a prompt: refuse the row, keep both, replace the "
        "existing one (only if unused), or skip the new one.",
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
    created_by: UserOut | None
    rows_read: int
    rows_stored: int
    rows_unchanged: int
    rows_bad: int
    rows_skipped: int = Field(description="Skipped by `new_response`.")
    reason: str
    created_at: datetime
    finished_at: datetime | None


class ImportPageOut(Schema):
    items: list[ImportOut]
    next: str | None


class ImportDetailOut(ImportOut):
    mapping: JsonDict
    options: JsonDict
    summary: JsonDict = Field(description="The effect of importing it; empty until the file is checked.")
    bad_rows: list[JsonDict] = Field(description="The first invalid rows.")
    progress: ImportProgressOut | None


class StoreImportIn(StrictIn):
    skip_bad: bool = Field(False, description="Import the valid rows only.")


RowKind = Literal["comparisons", "responses", "verdicts", "scores"]
# "": no choice, the row's is left out.
ChoiceMeaning = Literal["A", "B", "tie", "both_bad", ""]
FieldName = Annotated[str, Field(max_length=60)]
ColumnName = Annotated[str, Field(max_length=1_000)]


class ColumnMappingIn(StrictIn):
    format: RowKind = Field(description="The kind of row.")
    columns: dict[FieldName, ColumnName] = Field(
        description="Field → column, or path inside an object.", examples=[{"query": "prompt"}]
    )
    values: dict[FieldName, NameText] = Field(
        default_factory=dict,
        description="Field → fixed value for all rows; `query_id` may be `#text` (hash of the prompt) or `#row` (row "
        "number).",
        examples=[{"query_id": "#text", "candidate_a": "gpt4"}],
    )
    choices: dict[NameText, ChoiceMeaning] = Field(
        default_factory=dict,
        description="Maps values of the choice column to choices. A value mapped to nothing is no choice; values that "
        "are not listed stay unchanged.",
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
    rows: int = Field(description="Rows of the preview.")
    bad_rows: int
    refused: str = Field(description="Why the file cannot be read with this mapping; else empty.")
    samples: list[JsonDict]
    bad: list[BadRowOut]


class PairCountOut(Schema):
    pair: PairingWay
    baseline: str | None
    pairs_each: int | None
    comparisons: int = Field(description="New comparisons.")


class PairCountsOut(Schema):
    items: list[PairCountOut]
    ranking: list[str] = Field(description="Rated models, best first.")
    ranked_by: str
    unranked_because: str = Field(description="Why there is no rating; else empty.")
    is_whole: bool = Field(description="False if only `queries` prompts were counted in time.")
    queries: int = Field(description="Number of prompts counted.")
    confirmed_above: int = Field(description="More than this need `confirmed`.")


class PairsIn(StrictIn):
    pair: PairingWay = PairingWay.ALL
    baseline: NameText = Field("", description="The baseline model.")
    pairs_each: PairsPerQuery | None = Field(None, description="Random pairs per prompt.")
    confirmed: bool = False


class NearDuplicateQueryOut(Schema):
    query_id: str
    query: str
    cluster: str


class NearDuplicatesOut(Schema):
    group: str = Field(description="Send it to merge the clusters.")
    number: int
    exact: bool = Field(description="Whether they are identical.")
    clusters: int = Field(description="Number of clusters. A split may separate several.")
    queries: list[NearDuplicateQueryOut] = Field(description="The first prompts.")


class NearDuplicatePageOut(Schema):
    items: list[NearDuplicatesOut]
    next: str | None


class IdenticalResponsesOut(Schema):
    text: str
    query_id: str | None = Field(description="Null for a response to several prompts.")
    number: int = Field(description="Number of models with this response, or of prompts.")


class QueryOverlapOut(Schema):
    where: str
    number: int = Field(description="Number of shared prompts.")
    examples: list[str]


class RepeatsOut(Schema):
    same_responses: list[IdenticalResponsesOut] = Field(description="Identical responses to one prompt.")
    repeated_responses: list[IdenticalResponsesOut] = Field(description="Identical responses to several prompts.")
    other_evaluations: list[QueryOverlapOut] = Field(description="Overlap with your other evaluations.")
    worked_examples: list[QueryOverlapOut] = Field(description="Overlap with rubric examples.")


class MergeClustersIn(StrictIn):
    group: Annotated[str, Field(min_length=1, max_length=19, description="`group` of the list of duplicates.")]


class MergedClusterOut(Schema):
    cluster: str
