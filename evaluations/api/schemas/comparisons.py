from datetime import datetime
from typing import Annotated, Any

from ninja import Field, Schema

from evaluations.api.schemas.shared import Id, Message, Name, Person, Sent, Text
from evaluations.domain import Choice, LabelSource, RaterKind


class ComparisonTold(Schema):
    """``candidate_a`` and ``candidate_b`` are null while you may not know them: review it first."""

    id: int
    query_id: str
    query: str
    category: str
    candidate_a: str | None
    candidate_b: str | None
    flags: list[str]
    people: int
    gold: int
    judges: int | None
    calls_waiting: int | None
    calls_failed: int | None
    labelled: int | None = Field(description="aspects with a label of people")
    split: int | None
    tags: list[str]


class ComparisonPage(Schema):
    items: list[ComparisonTold]
    next: str | None
    is_whole: bool = Field(description="false where the search was ended by time: go on with `next`")


class ResponseTold(Schema):
    """As you may see it: before you have reviewed it, in the order of your review and without its candidate."""

    side: str
    candidate: str | None
    messages: list[Message]
    flags: list[str]
    metadata: dict[str, Any] | None


class ComparisonWhole(Schema):
    id: int
    query_id: str
    messages: list[Message]
    context: str | None
    reference: str | None
    category: str
    flags: list[str]
    responses: list[ResponseTold] = Field(min_length=2, max_length=2)
    is_open: bool = Field(description="whether you may see candidates and what others chose")


class ComparisonNew(Sent):
    query: Annotated[Text, Field(min_length=1, examples=["What is the capital of France?"])]
    category: Annotated[str, Field(max_length=120)] = ""
    context: Text = ""
    reference: Text = ""
    first_candidate: Annotated[Name, Field(min_length=1, examples=["alpha"])]
    first_response: Annotated[Text, Field(min_length=1, examples=["Paris."])]
    second_candidate: Annotated[Name, Field(min_length=1, examples=["beta"])]
    second_response: Annotated[Text, Field(min_length=1, examples=["It is Lyon."])]


class Given(Schema):
    comparisons: int = Field(description="how many were given to how many people, together")
    reviewed_already: int
    waiting_already: int


class Giving(Sent):
    comparisons: Annotated[list[Id], Field(min_length=1, max_length=500)]
    people: Annotated[list[Id], Field(min_length=1, max_length=500, description="ids of persons")]


class OrderTold(Schema):
    shown: str
    choice: Choice


class CellTold(Schema):
    aspect: str
    choices: list[Choice]
    first: Choice | None = Field(description="a person's own, where the final one differs")
    inconsistent: bool
    orders: list[OrderTold]
    note: str
    weighted: float | None


class AskingTold(Schema):
    shown: str
    sample: int
    state: str
    rationale: str
    error: str
    call: int | None


class RaterRow(Schema):
    name: str
    kind: RaterKind
    is_baseline: bool
    cells: list[CellTold]
    askings: list[AskingTold]
    notes: list[str]


class LabelTold(Schema):
    aspect: str
    choice: Choice | None = Field(description="null where the votes are split")
    source: LabelSource
    votes: dict[str, int]
    by: str


class AdjudicationTold(Schema):
    id: int
    aspect: str
    choice: Choice
    reason: str
    by: Person
    version: int
    changed_at: datetime


class VerdictsTold(Schema):
    aspects: list[str]
    raters: list[RaterRow]
    labels: list[LabelTold]
    adjudications: list[AdjudicationTold]


class TagTold(Schema):
    id: int
    name: str
    comparisons: int


class TagList(Schema):
    items: list[TagTold]


class Tagging(Sent):
    name: Annotated[str, Field(min_length=1, max_length=60)]
    comparisons: Annotated[list[Id], Field(min_length=1, max_length=5_000)]


class TaggingAll(Sent):
    name: Annotated[str, Field(min_length=1, max_length=60)]
    filter: dict[str, Any] = Field(description="as the list of comparisons takes it; empty: all")
    takes_away: bool = False


class TagWorkTold(Schema):
    id: int
    name: str


class TagStep(Schema):
    step: int = Field(description="to be undone by")
    name: str
    changed: int


class Undoing(Sent):
    step: Id


class SliceTold(Schema):
    id: int
    name: str
    filter: dict[str, Any]
    in_words: str


class SliceList(Schema):
    items: list[SliceTold]


class SliceNew(Sent):
    name: Annotated[str, Field(min_length=1, max_length=80)]
    filter: dict[str, Any] = Field(examples=[{"category": "math"}], description="as the list of comparisons takes it")


class SliceChange(Sent):
    name: Annotated[str, Field(min_length=1, max_length=80)]
