"""API shapes of accounts, site policy and security events."""

from datetime import datetime

from ninja import Field, Schema

from evaluations.api.schemas import OMITTED, StrictIn, UserOut


class AccountOut(Schema):
    id: int
    username: str
    name: str
    is_active: bool
    is_site_administrator: bool
    has_password: bool
    can_create_evaluations: bool
    can_create_accounts: bool
    can_make_links: bool


class AccountPage(Schema):
    items: list[AccountOut]
    next: str | None


class AccountRightsPatch(StrictIn):
    can_create_evaluations: bool = OMITTED
    can_create_accounts: bool = OMITTED
    can_make_links: bool = OMITTED


class SitePolicyOut(Schema):
    """The rights of every account."""

    everyone_creates_evaluations: bool
    everyone_creates_accounts: bool
    everyone_makes_links: bool


class SitePolicyPatch(StrictIn):
    everyone_creates_evaluations: bool = OMITTED
    everyone_creates_accounts: bool = OMITTED
    everyone_makes_links: bool = OMITTED


class SecurityEventOut(Schema):
    id: int
    created_at: datetime
    kind: str
    account: UserOut | None = Field(description="null for a sign-in with an unknown username")
    by: UserOut | None = Field(description="who did it, if someone else")
    token: str | None
    address: str = Field(description="IPv4 address or IPv6 network; empty if unknown")
    user_agent: str
    detail: str


class SecurityEventPage(Schema):
    items: list[SecurityEventOut]
    next: str | None
