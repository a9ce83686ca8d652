"""What the API accepts for judges, their prompts, their test calls."""

from datetime import datetime
from typing import Annotated

from ninja import Field, Schema

from evaluations.api.schemas import MessageOut, NameText, RowId, StrictIn
from evaluations.domain.choices import ShownOrder
from evaluations.domain.json_values import JsonDict
from evaluations.domain.judges import JudgeKind
from evaluations.judges.calls.schemas import CallDetailOut
from evaluations.judges.endpoints.schemas import ExtraLines
from evaluations.judges.runs.schemas import RunOut


class JudgeOut(Schema):
    id: int
    name: str
    kind: JudgeKind
    is_baseline: bool
    model: str
    endpoint: str | None
    rubric: str | None
    rubric_version: int | None = Field(description="version number")
    archived: bool
    created_at: datetime


class JudgePage(Schema):
    items: list[JudgeOut]
    next: str | None


class JudgeDetailOut(JudgeOut):
    mode: str
    temperature: float | None
    max_tokens: int | None
    seed: int | None
    reasoning_effort: str
    logprobs: bool
    repairs: bool
    one_aspect_per_call: bool
    sent_as: list[str] = Field(description="adaptations of its requests to the model")
    extra_headers: JsonDict
    extra_body: JsonDict
    family: str
    fingerprint: str


class JudgeIn(StrictIn):
    """Without an endpoint the judge is a rule (`longest`, `first`, `random`), not an LLM."""

    endpoint: RowId | None = None
    rule: Annotated[str, Field(max_length=40)] = ""
    model: NameText = ""
    name: Annotated[str, Field(max_length=120)] = ""
    version: RowId = Field(description="id of a rubric version")
    mode: Annotated[str, Field(max_length=12)] = "auto"
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    seed: Annotated[int, Field(ge=-(2**63), le=2**63 - 1)] | None = None
    max_tokens: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    reasoning_effort: Annotated[str, Field(max_length=20)] = ""
    repairs: bool = True
    logprobs: bool = False
    one_aspect_per_call: bool = Field(False, description="needs a rubric with several aspects")
    extra_headers: ExtraLines = {}
    extra_body: JsonDict = {}


class JudgePromptOut(Schema):
    subject: int | None
    shown: ShownOrder
    messages: list[MessageOut]
    reply_schema: str
    shape: str
    aspects: list[str] = Field(
        [], description="with one aspect per call: all aspects in order; the request is for the first"
    )


class JudgeTestIn(StrictIn):
    subject: RowId | None = Field(
        None, description="a comparison, or a response for pointwise judges; default: the first"
    )
    shown: ShownOrder = ShownOrder.AS_STORED


class JudgeTestOut(Schema):
    run: RunOut
    is_moving: bool
    call: CallDetailOut | None
