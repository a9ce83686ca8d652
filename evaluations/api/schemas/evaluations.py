from datetime import datetime
from typing import Annotated, Any

from ninja import Field, Schema

from evaluations.api.schemas.shared import Id, Name, Person, Sent, ShortText, Text
from evaluations.domain import LabelPolicy, Reveal, Role


class EvaluationTold(Schema):
    slug: str
    name: str
    description: str
    role: Role = Field(description="yours")
    archived: bool
    created_at: datetime


class EvaluationPage(Schema):
    items: list[EvaluationTold]
    next: str | None


class EvaluationNew(Sent):
    name: Name = Field(examples=["Support answers, March"])
    slug: Annotated[str, Field(max_length=80, examples=["support-march"])] = ""
    description: Text = ""


class StandingTold(Schema):
    """How far each step of the pipe has come."""

    comparisons: int
    judged: int
    reviewed: int
    reviews: int
    reviews_wanted_of_each: int
    judges: int
    active_runs: int
    failed_calls: int
    exports: int


class EvaluationWhole(EvaluationTold):
    guidelines: str
    queries: int
    candidates: int
    people: int
    standing: StandingTold
    next_step: str = Field(description="what you could do now, as the page says it")


class SettingsTold(Schema):
    name: str
    description: str
    guidelines: str
    review_rubric: int | None = Field(description="the id of a rubric version")
    reviews_wanted: int
    hold_minutes: int
    shown_judge: int | None
    reveal: Reveal
    label_policy: LabelPolicy
    settles_judge: bool


class SettingsChange(Sent):
    """What is left out stays as it is."""

    name: Name | None = None
    description: Text | None = None
    guidelines: Text | None = None
    review_rubric: Id | None = None
    reviews_wanted: Annotated[int, Field(ge=1, le=100)] | None = None
    hold_minutes: Annotated[int, Field(ge=1, le=10_080)] | None = None
    shown_judge: Id | None = None
    reveal: Reveal | None = None
    label_policy: LabelPolicy | None = None
    settles_judge: bool | None = None


class EventTold(Schema):
    id: int
    created_at: datetime
    verb: str
    object_type: str
    object_id: int | None
    person: Person | None
    through_token: str | None = Field(description="the name of the token, where a program did it")
    before: dict[str, Any]
    after: dict[str, Any]


class EventPage(Schema):
    items: list[EventTold]
    next: str | None


class GuidelinesTold(Schema):
    guidelines: str
    changed_at: datetime | None


class Kin(Schema):
    id: int
    name: str
    family: str


class FamiliesTold(Schema):
    candidates: list[Kin]
    judges: list[Kin]


class FamiliesChange(Sent):
    """By id; who is left out stays as they are."""

    candidates: dict[str, Annotated[str, Field(max_length=80)]] = Field(default_factory=dict)
    judges: dict[str, Annotated[str, Field(max_length=80)]] = Field(default_factory=dict)


class TokenTold(Schema):
    name: str
    prefix: str
    scopes: list[str]
    evaluation: str | None = Field(description="the only evaluation that it opens, if it is tied to one")
    expires_at: datetime


class Me(Schema):
    username: str
    display_name: str
    timezone: str
    theme: str
    single_keys: bool
    is_site_administrator: bool
    token: TokenTold


class MeChange(Sent):
    display_name: Annotated[str, Field(max_length=120)] | None = None
    timezone: ShortText | None = None
    theme: ShortText | None = None
    single_keys: bool | None = None


class MemberTold(Schema):
    id: int
    person: Person
    role: Role
    can_be_sent_a_link: bool
    reviews_saved: int | None = Field(description="by the rubric in force; null where you may not see it")


class MemberPage(Schema):
    items: list[MemberTold]
    next: str | None


class MemberNew(Sent):
    username: Annotated[str, Field(min_length=1, max_length=150)]
    role: Role = Role.REVIEWER


class RoleChange(Sent):
    role: Role


class MemberMade(MemberTold):
    sign_in_link: str | None = Field(description="of an account that was made for it; told once")


class Link(Schema):
    link: str = Field(description="signs the person in once; told once")
    hours: int


class AccountTold(Schema):
    id: int
    username: str
    name: str
    is_active: bool
    is_site_administrator: bool


class AccountPage(Schema):
    items: list[AccountTold]
    next: str | None
