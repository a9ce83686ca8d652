"""Shapes of the API for comparisons, tags, saved filters."""

from typing import Annotated

from ninja import Field, Schema

from evaluations.api.schemas import LongText, MessageOut, NameText, RowId, StrictIn
from evaluations.domain.json_values import JsonDict


class ResponseOut(Schema):
    """A response. Until you have reviewed the comparison, it is in your order and has no candidate."""

    side: str
    candidate: str | None
    messages: list[MessageOut]
    flags: list[str]
    metadata: JsonDict | None


class ComparisonDetailOut(Schema):
    id: int
    query_id: str
    messages: list[MessageOut]
    context: str | None
    reference: str | None
    category: str
    flags: list[str]
    responses: list[ResponseOut] = Field(min_length=2, max_length=2)
    is_open: bool = Field(description="whether you may see candidates and what others chose")


class ComparisonIn(StrictIn):
    query: Annotated[LongText, Field(min_length=1, examples=["What is the capital of France?"])]
    category: Annotated[str, Field(max_length=120)] = ""
    context: LongText = ""
    reference: LongText = ""
    first_candidate: Annotated[NameText, Field(min_length=1, examples=["alpha"])]
    first_response: Annotated[LongText, Field(min_length=1, examples=["Paris."])]
    second_candidate: Annotated[NameText, Field(min_length=1, examples=["beta"])]
    second_response: Annotated[LongText, Field(min_length=1, examples=["It is Lyon."])]


class AssignedOut(Schema):
    comparisons: int = Field(description="how many assignments were made, over all reviewers")
    reviewed_already: int
    waiting_already: int


class AssignIn(StrictIn):
    comparisons: Annotated[list[RowId], Field(min_length=1, max_length=500)]
    reviewers: Annotated[list[RowId], Field(min_length=1, max_length=500, description="user IDs")]


class TagOut(Schema):
    id: int
    name: str
    comparisons: int


class TagListOut(Schema):
    items: list[TagOut]


class TaggingIn(StrictIn):
    name: Annotated[str, Field(min_length=1, max_length=60)]
    comparisons: Annotated[list[RowId], Field(min_length=1, max_length=5_000)]


class TagJobIn(StrictIn):
    name: Annotated[str, Field(min_length=1, max_length=60)]
    filter: JsonDict = Field(description="parameters as in the list of comparisons; empty for all")
    takes_away: bool = False


class TagJobOut(Schema):
    id: int
    name: str


class TagStepOut(Schema):
    step: int = Field(description="for undoing it")
    name: str
    changed: int


class TagUndoIn(StrictIn):
    step: RowId


class SavedFilterOut(Schema):
    id: int
    name: str
    filter: JsonDict
    in_words: str


class SavedFilterListOut(Schema):
    items: list[SavedFilterOut]


class SavedFilterIn(StrictIn):
    name: Annotated[str, Field(min_length=1, max_length=80)]
    filter: JsonDict = Field(examples=[{"category": "math"}], description="parameters as in the list of comparisons")


class NamePatch(StrictIn):
    name: Annotated[str, Field(min_length=1, max_length=80)]
