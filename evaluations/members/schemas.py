"""API shapes of members and accounts."""

from datetime import datetime
from typing import Annotated

from ninja import Field, Schema

from evaluations.api.schemas import OMITTED, PersonOut, ShortText, StrictIn
from evaluations.domain.roles import Role
from evaluations.models.users import MAX_USERNAME_CHARACTERS


class TokenOut(Schema):
    name: str
    prefix: str
    scopes: list[str]
    evaluation: str | None = Field(description="the only evaluation that it opens, if it is tied to one")
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
    """An account without a password. Who made it could sign in as it; the numbers are of what opens it now."""

    maker: str = Field(description="empty if you may not know it")
    made_for: str = Field(description="the name of the evaluation; empty if you may not know it")
    sessions: int
    tokens: int
    links: int


class MemberOut(Schema):
    id: int
    person: PersonOut
    role: Role
    can_be_sent_a_link: bool
    unclaimed: UnclaimedAccountOut | None = Field(description="of an account without a password, for owners")
    reviews_saved: int | None = Field(description="by the rubric in force; null where you may not see it")


class MemberPage(Schema):
    items: list[MemberOut]
    next: str | None


class MemberIn(StrictIn):
    username: Annotated[str, Field(min_length=1, max_length=MAX_USERNAME_CHARACTERS)]
    role: Role = Role.REVIEWER


class MemberPatch(StrictIn):
    role: Role


class NewMemberOut(MemberOut):
    sign_in_link: str | None = Field(description="of an account that was made for it; shown once")


class SignInLinkOut(Schema):
    link: str = Field(description="signs the person in once; told once")
    hours: int
