from datetime import datetime
from typing import Annotated
from uuid import UUID

from ninja import Field, Schema

from evaluations.api.schemas.shared import Person, Sent
from evaluations.domain import DeliveryState, HookKind

Kinds = Annotated[list[HookKind], Field(min_length=1, max_length=10, examples=[["run.finished"]])]


class WebhookTold(Schema):
    id: int
    url: str
    kinds: list[HookKind]
    person: Person | None = Field(description="who made it")
    created_at: datetime
    stopped_at: datetime | None = Field(description="nothing is sent to it since; null while it runs")
    stop_reason: str = Field(description="why it stopped by itself; empty where a person stopped it")
    failures: int = Field(description="tries that failed in a row")
    paused_until: datetime | None


class WebhookMade(WebhookTold):
    secret: str = Field(description="signs every message; told now and never again")


class WebhookPage(Schema):
    items: list[WebhookTold]
    next: str | None


class WebhookNew(Sent):
    url: Annotated[str, Field(max_length=500, examples=["https://example.org/hooks/judgeweb"])]
    kinds: Kinds


class WebhookChange(Sent):
    kinds: Kinds


class TryTold(Schema):
    number: int
    at: datetime
    http_status: int | None = Field(description="null where no answer came")
    answer: str
    error: str
    milliseconds: int


class DeliveryTold(Schema):
    id: int
    key: UUID = Field(description="the id of the message, the same over all its tries")
    kind: HookKind
    state: DeliveryState
    body: str = Field(description="as it is signed and sent: JSON")
    created_at: datetime
    not_before: datetime | None = Field(description="when it is tried next; null once it has ended")
    finished_at: datetime | None
    tries: list[TryTold]


class DeliveryPage(Schema):
    items: list[DeliveryTold]
    next: str | None
