"""The API shapes of webhooks."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from ninja import Field, Schema

from evaluations.api.schemas import PersonOut, StrictIn
from evaluations.domain.events import DeliveryState, WebhookKind

WebhookKinds = Annotated[list[WebhookKind], Field(min_length=1, max_length=10, examples=[["run.finished"]])]


class WebhookOut(Schema):
    id: int
    url: str
    kinds: list[WebhookKind]
    person: PersonOut | None = Field(description="who made it")
    created_at: datetime
    stopped_at: datetime | None = Field(description="nothing is sent to it since; null while it runs")
    stop_reason: str = Field(description="why it stopped by itself; empty where a person stopped it")
    failures: int = Field(description="tries that failed in a row")
    paused_until: datetime | None


class WebhookSecretOut(WebhookOut):
    secret: str = Field(description="signs every message; told now and never again")


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
    http_status: int | None = Field(description="null where no answer came")
    answer: str
    error: str
    milliseconds: int


class DeliveryOut(Schema):
    id: int
    key: UUID = Field(description="the id of the message, the same over all its tries")
    kind: WebhookKind
    state: DeliveryState
    body: str = Field(description="as it is signed and sent: JSON")
    created_at: datetime
    not_before: datetime | None = Field(description="when it is tried next; null once it has ended")
    finished_at: datetime | None
    tries: list[DeliveryAttemptOut]


class DeliveryPage(Schema):
    items: list[DeliveryOut]
    next: str | None
