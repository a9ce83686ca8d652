"""API shapes of members and accounts."""

from datetime import datetime
from typing import Annotated

from ninja import Field, Schema

from evaluations.api.schemas import OMITTED, ShortText, StrictIn, UserOut
from evaluations.domain.roles import Role
from evaluations.models.users import MAX_USERNAME_CHARACTERS


class TokenOut(Schema):
    name: str
    prefix: str
    scopes: list[str]
    evaluation: str | None = Field(description="the only evaluation it gives access to; null for all of yours")
    expires_at: datetime


class MeOut(Schema):
    username: str
    display_name: str
    timezone: str
    theme: str
    single_keys: bool
    is_site_administrator: bool
    rights: list[str] = Field(description="create_evaluations, create_accounts, make_links")
    token: TokenOut


class MePatch(StrictIn):
    display_name: Annotated[str, Field(max_length=120)] = OMITTED
    timezone: ShortText = OMITTED
    theme: ShortText = OMITTED
    single_keys: bool = OMITTED


class UnclaimedAccountOut(Schema):
    """An account without a password, which its creator could sign in to. The counts are of what is open."""

    maker: str = Field(description="empty if hidden from you")
    made_for: str = Field(description="name of the evaluation; empty if hidden from you")
    sessions: int
    tokens: int
    links: int


class MemberOut(Schema):
    id: int
    user: UserOut
    role: Role
    can_be_sent_a_link: bool
    unclaimed: UnclaimedAccountOut | None = Field(description="for accounts without a password; visible to owners")
    reviews_saved: int | None = Field(description="with the current rubric; null if hidden from you")


class MemberPage(Schema):
    items: list[MemberOut]
    next: str | None


class MemberIn(StrictIn):
    username: Annotated[str, Field(min_length=1, max_length=MAX_USERNAME_CHARACTERS)]
    role: Role = Role.REVIEWER


class MemberPatch(StrictIn):
    role: Role


class NewMemberOut(MemberOut):
    sign_in_link: str | None = Field(description="for a new account; shown once")


class SignInLinkOut(Schema):
    link: str = Field(description="works once; shown once")
    hours: int
