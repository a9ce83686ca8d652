"""API shapes of join links."""

from datetime import datetime
from typing import Annotated

from ninja import Field, Schema

from evaluations.api.schemas import StrictIn, UserOut
from evaluations.domain.roles import Role
from evaluations.members.join_links.services import MAX_DAYS, MAX_USES


class JoinLinkOut(Schema):
    id: int
    role: Role
    created_by: UserOut
    created_at: datetime
    expires_at: datetime
    max_uses: int
    uses: int


class JoinLinkList(Schema):
    items: list[JoinLinkOut]


class JoinLinkIn(StrictIn):
    role: Role = Role.REVIEWER
    days: Annotated[int, Field(ge=1, le=MAX_DAYS)] = 7
    max_uses: Annotated[int, Field(ge=1, le=MAX_USES)] = 20


class NewJoinLinkOut(JoinLinkOut):
    link: str = Field(description="shown once")
