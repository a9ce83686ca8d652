"""What the API returns for calls."""

from datetime import datetime

from ninja import Field, Schema

from evaluations.api.schemas import UserOut
from evaluations.domain.choices import Choice, ShownOrder
from evaluations.domain.judges import CallState


class CallOut(Schema):
    id: int
    comparison: int | None
    response: int | None
    query_id: str
    shown: ShownOrder
    sample: int
    state: CallState
    repaired: bool
    copied_from: int | None
    error: str


class CallPage(Schema):
    items: list[CallOut]
    next: str | None


class AttemptOut(Schema):
    number: int
    step: str
    outcome: str
    http_status: int | None
    raw: str
    finish_reason: str
    model_returned: str
    tokens_in: int | None
    tokens_out: int | None
    tokens_reasoning: int | None = Field(description="share of tokens_out used for reasoning, if reported")
    cost_usd: float | None
    latency_ms: int
    reasoning: str = Field(description="the model's reasoning, if reported; never parsed for a verdict")
    aspect: str = Field(description="the aspect asked for; empty if all")
    error: str


class CallVerdictOut(Schema):
    aspect: str
    choice: Choice
    inconsistent: bool
    rationale: str


class CallScoreOut(Schema):
    aspect: str
    value: float
    rationale: str


class CallDetailOut(CallOut):
    rationale: str
    confirmed_by: UserOut | None = Field(description="who confirmed the verdict of a suspect call")
    confirmed_at: datetime | None
    attempts: list[AttemptOut]
    verdicts: list[CallVerdictOut]
    scores: list[CallScoreOut]
