"""API shapes of rubrics and their versions."""

from datetime import datetime
from typing import Annotated

from ninja import Field, Schema

from evaluations.api.schemas import LongText, MessageOut, ShortText, StrictIn
from evaluations.domain.json_values import JsonDict
from evaluations.domain.rubrics import RubricKind, RubricOrigin

BoundedNumber = Annotated[float, Field(ge=-1e12, le=1e12)]


class AspectOut(Schema):
    """One aspect of a rubric. The scale is null for pairwise aspects."""

    key: str
    name: str
    definition: str
    offers_tie: bool
    offers_both_bad: bool
    labels: dict[str, str]
    scale_min: float | None
    scale_max: float | None
    scale_step: float | None
    scale_labels: dict[str, str]
    tie_margin: float
    reply_key: str


class RubricSpecOut(Schema):
    kind: RubricKind
    instructions: str
    aspects: list[AspectOut]
    output_order: list[str]
    placeholders: dict[str, str]
    answer_format: str
    few_shot: list[JsonDict]
    rationale_key: str
    choices_key: str


class AspectIn(StrictIn):
    key: Annotated[str, Field(min_length=1, max_length=60, pattern=r"^[-a-zA-Z0-9_]+$", examples=["clarity"])]
    name: Annotated[str, Field(min_length=1, max_length=80, examples=["Clarity"])]
    definition: LongText = ""
    offers_tie: bool = True
    offers_both_bad: bool = False
    labels: dict[str, ShortText] = Field(default_factory=dict)
    scale_min: BoundedNumber | None = None
    scale_max: BoundedNumber | None = None
    scale_step: BoundedNumber | None = None
    scale_labels: dict[str, ShortText] = Field(default_factory=dict)
    tie_margin: Annotated[float, Field(ge=0, le=1e12)] = 0.0
    reply_key: Annotated[str, Field(max_length=60)] = ""


class RubricSpecIn(StrictIn):
    kind: RubricKind = RubricKind.PAIRWISE
    instructions: Annotated[LongText, Field(min_length=1, examples=["Say which response is clearer."])]
    aspects: Annotated[list[AspectIn], Field(min_length=1, max_length=40)]
    output_order: Annotated[list[str], Field(max_length=40)] = Field(
        default_factory=list, description="keys in reply order; defaults to the order of the aspects"
    )
    placeholders: dict[str, ShortText] = Field(default_factory=dict)
    answer_format: Annotated[str, Field(max_length=400, pattern=r"^(json|two_step|text(:.*)?)$")] = "json"
    few_shot: Annotated[list[JsonDict], Field(max_length=20)] = Field(default_factory=list)
    rationale_key: Annotated[str, Field(min_length=1, max_length=60)] = "rationale"
    choices_key: Annotated[str, Field(max_length=60)] = "choices"


class RubricOut(Schema):
    id: int
    name: str
    kind: RubricKind
    origin: RubricOrigin
    newest: int | None
    judges: int


class RubricPage(Schema):
    items: list[RubricOut]
    next: str | None


class RubricVersionOut(Schema):
    id: int
    number: int
    is_frozen: bool
    judges: int
    created_at: datetime


class RubricDetailOut(Schema):
    id: int
    name: str
    kind: RubricKind
    origin: RubricOrigin
    versions: list[RubricVersionOut]
    version: int = Field(description="the number of the version below")
    spec: RubricSpecOut


class RubricIn(StrictIn):
    name: Annotated[str, Field(min_length=1, max_length=120)]
    spec: RubricSpecIn


class RubricVersionIn(StrictIn):
    spec: RubricSpecIn
    for_reviews: bool = Field(False, description="use this version for reviews")


class BuiltinRubricIn(StrictIn):
    builtin: Annotated[str, Field(max_length=60, examples=["six-aspect"])]
    name: Annotated[str, Field(max_length=120)] = ""
    metric: Annotated[str, Field(max_length=60)] = ""
    reason_key: Annotated[str, Field(max_length=60)] = ""


class PastedPromptIn(StrictIn):
    text: Annotated[LongText, Field(min_length=1)]


class PromptDraftOut(Schema):
    name: str
    placeholders: list[str]
    unknown: list[str] = Field(description="placeholders that could not be mapped automatically")
    spec: RubricSpecOut


class PromptDraftList(Schema):
    items: list[PromptDraftOut]


class PromptPreviewOut(Schema):
    """The prompt of a rubric that is being written, or why there is none."""

    messages: list[MessageOut]
    reply_schema: str
    problem: str
