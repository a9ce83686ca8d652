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
    rubric_version: int | None = Field(description="its number")
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
    sent_as: list[str] = Field(description="how its requests are written so that the model takes them, where unusual")
    extra_headers: JsonDict
    extra_body: JsonDict
    family: str
    fingerprint: str


class JudgeIn(StrictIn):
    """Without an endpoint it is a rule (`longest`, `first`, `random`), not an LLM."""

    endpoint: RowId | None = None
    rule: Annotated[str, Field(max_length=40)] = ""
    model: NameText = ""
    name: Annotated[str, Field(max_length=120)] = ""
    version: RowId = Field(description="the id of a rubric version; it is frozen with the judge")
    mode: Annotated[str, Field(max_length=12)] = "auto"
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    seed: Annotated[int, Field(ge=-(2**63), le=2**63 - 1)] | None = None
    max_tokens: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    reasoning_effort: Annotated[str, Field(max_length=20)] = ""
    repairs: bool = True
    logprobs: bool = False
    one_aspect_per_call: bool = Field(False, description="a request for each aspect; needs a rubric with several")
    extra_headers: ExtraLines = {}
    extra_body: JsonDict = {}


class JudgePromptOut(Schema):
    subject: int | None
    shown: ShownOrder
    messages: list[MessageOut]
    reply_schema: str
    shape: str
    aspects: list[str] = Field(
        [], description="one aspect per call: the names of all in order, this being the request for the first"
    )


class JudgeTestIn(StrictIn):
    subject: RowId | None = Field(None, description="a comparison, or of a pointwise judge a response; null: the first")
    shown: ShownOrder = ShownOrder.AS_STORED


class JudgeTestOut(Schema):
    run: RunOut
    is_moving: bool
    call: CallDetailOut | None
