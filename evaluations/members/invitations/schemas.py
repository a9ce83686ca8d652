"""API shapes of invitations."""

from datetime import datetime

from ninja import Schema

from evaluations.api.schemas import UserOut
from evaluations.domain.roles import Role


class InvitationOut(Schema):
    id: int
    username: str
    role: Role
    invited_by: UserOut | None
    created_at: datetime


class InvitationPage(Schema):
    items: list[InvitationOut]
    next: str | None


class OwnInvitationOut(Schema):
    id: int
    evaluation: str
    role: Role
    invited_by: UserOut | None
    created_at: datetime


class OwnInvitationList(Schema):
    items: list[OwnInvitationOut]


class AcceptedInvitationOut(Schema):
    slug: str
    role: Role
