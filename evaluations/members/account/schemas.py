"""API shapes of one's own sessions and sign-ins."""

from datetime import datetime

from ninja import Field, Schema


class SessionOut(Schema):
    id: int
    created_at: datetime
    last_seen_at: datetime = Field(description="accurate to a few minutes")
    address: str = Field(description="IPv4 address or IPv6 network; empty if unknown")
    user_agent: str


class SessionList(Schema):
    items: list[SessionOut]


class EndedSessionsOut(Schema):
    ended: int


class OwnSecurityEventOut(Schema):
    id: int
    created_at: datetime
    kind: str
    token: str | None
    address: str = Field(description="IPv4 address or IPv6 network; empty if unknown")
    user_agent: str
    detail: str


class OwnSecurityEventPage(Schema):
    items: list[OwnSecurityEventOut]
    next: str | None
