"""The API shapes of webhooks."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from ninja import Field, Schema

from evaluations.api.schemas import StrictIn, UserOut
from evaluations.domain.events import DeliveryState, WebhookKind

WebhookKinds = Annotated[list[WebhookKind], Field(min_length=1, max_length=10, examples=[["run.finished"]])]


class WebhookOut(Schema):
    id: int
    url: str
    kinds: list[WebhookKind]
    created_by: UserOut | None
    created_at: datetime
    stopped_at: datetime | None = Field(description="null while active")
    stop_reason: str = Field(description="why it was stopped automatically; empty if a user stopped it")
    failures: int = Field(description="failed attempts in a row")
    paused_until: datetime | None


class WebhookSecretOut(WebhookOut):
    secret: str = Field(description="signs every message; shown once")


class WebhookPage(Schema):
    items: list[WebhookOut]
    next: str | None


class WebhookIn(StrictIn):
    url: Annotated[str, Field(max_length=500, examples=["https://example.org/hooks/judgeweb"])]
    kinds: WebhookKinds


class WebhookPatch(StrictIn):
    kinds: WebhookKinds


class DeliveryAttemptOut(Schema):
    number: int
    at: datetime
    http_status: int | None = Field(description="null without a response")
    answer: str
    error: str
    milliseconds: int


class DeliveryOut(Schema):
    id: int
    key: UUID = Field(description="id of the message, the same for every attempt")
    kind: WebhookKind
    state: DeliveryState
    body: str = Field(description="the signed JSON body")
    created_at: datetime
    not_before: datetime | None = Field(description="time of the next attempt; null once it has ended")
    finished_at: datetime | None
    tries: list[DeliveryAttemptOut]


class DeliveryPage(Schema):
    items: list[DeliveryOut]
    next: str | None
