"""API shapes of evaluations and their progress."""

from datetime import datetime
from typing import Annotated

from ninja import Field, Schema

from evaluations.api.schemas import LongText, NameText, PersonOut, StrictIn
from evaluations.domain.json_values import JsonDict
from evaluations.domain.roles import Role


class EvaluationOut(Schema):
    slug: str
    name: str
    description: str
    role: Role = Field(description="yours")
    archived: bool
    created_at: datetime


class EvaluationPage(Schema):
    items: list[EvaluationOut]
    next: str | None


class EvaluationIn(StrictIn):
    name: NameText = Field(examples=["Support answers, March"])
    slug: Annotated[str, Field(max_length=80, examples=["support-march"])] = ""
    description: LongText = ""


class EvaluationProgressOut(Schema):
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
    is_counting: bool = Field(
        description="these are the numbers of the last count, and what has changed since is being counted"
    )


class EvaluationDetailOut(EvaluationOut):
    guidelines: str
    queries: int
    candidates: int
    people: int
    standing: EvaluationProgressOut
    next_step: str = Field(description="what you could do now, as the page says it")


class EventOut(Schema):
    id: int
    created_at: datetime
    verb: str
    object_type: str
    object_id: int | None
    person: PersonOut | None
    through_token: str | None = Field(description="the name of the token, where a program did it")
    before: JsonDict
    after: JsonDict


class EventPage(Schema):
    items: list[EventOut]
    next: str | None
