"""What the API returns for calls."""

from datetime import datetime

from ninja import Field, Schema

from evaluations.api.schemas import PersonOut
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
    tokens_reasoning: int | None = Field(description="of tokens_out, where the server counts them apart")
    cost_usd: float | None
    latency_ms: int
    reasoning: str = Field(description="what the model thought, where told apart; never read for a verdict")
    aspect: str = Field(description="the aspect that was asked for; empty where all were")
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
    confirmed_by: PersonOut | None = Field(description="who decided that the verdict of a suspect call counts")
    confirmed_at: datetime | None
    attempts: list[AttemptOut]
    verdicts: list[CallVerdictOut]
    scores: list[CallScoreOut]
