"""Shapes of the API for column mappings."""

from typing import Annotated, Any, Literal

from ninja import Field, Schema

from evaluations.api.schemas import StrictIn
from evaluations.domain.json_values import JsonDict

RowKind = Literal["comparisons", "responses", "verdicts", "scores"]
# "": no choice, the row's is left out.
ChoiceMeaning = Literal["A", "B", "tie", "both_bad", ""]
FieldName = Annotated[str, Field(max_length=60)]
ColumnName = Annotated[str, Field(max_length=1_000)]

COLUMNS: Any = Field(description="field of a row → the column that it comes from", examples=[{"query": "prompt"}])
VALUES: Any = Field(
    default_factory=dict,
    description="field of a row → its value for all rows; `query_id` may be `#text` (made of the query's words) or "
    "`#row` (the number of the row)",
    examples=[{"query_id": "#text", "candidate_a": "gpt4"}],
)
CHOICES: Any = Field(
    default_factory=dict,
    description="word in the column of choices → what it means; empty: no choice; others are read as they stand",
    examples=[{"model_1": "A"}],
)


class ColumnMappingIn(StrictIn):
    format: RowKind = Field(description="what a row is")
    columns: dict[FieldName, ColumnName] = COLUMNS
    values: dict[FieldName, Annotated[str, Field(max_length=200)]] = VALUES
    choices: dict[Annotated[str, Field(max_length=200)], ChoiceMeaning] = CHOICES


class ColumnMappingOut(Schema):
    columns: list[str]
    rows: list[JsonDict] = Field(description="the first of the file as they stand")
    words: dict[str, list[str]] = Field(description="the values of columns that hold few")
    fields: dict[str, list[str]] = Field(description="what a row of each kind may have")
    suggested: ColumnMappingIn = Field(description="as it was said before, or else guessed; to be sent back as it is")
    remembered: bool = Field(description="whether files with these columns were read here before")


class BadRowOut(Schema):
    line: int
    reason: str


class MappingPreviewOut(Schema):
    rows: int = Field(description="of the beginning of the file that were tried")
    bad_rows: int
    refused: str = Field(description="why nothing can be made of the file like this; empty where something can")
    samples: list[JsonDict]
    bad: list[BadRowOut]
