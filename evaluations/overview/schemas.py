"""API shapes of evaluations and their progress."""

from datetime import datetime
from typing import Annotated

from ninja import Field, Schema

from evaluations.api.schemas import LongText, NameText, StrictIn, UserOut
from evaluations.domain.json_values import JsonDict
from evaluations.domain.roles import Role


class EvaluationOut(Schema):
    slug: str
    name: str
    description: str
    role: Role = Field(description="Your role")
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
    """Progress of each step."""

    comparisons: int = Field(description="What there is to review, single responses included")
    single_responses: int = Field(description="Of these, the responses that reviewers score by themselves")
    judged: int
    reviewed: int
    reviews: int
    reviews_per_comparison: int
    judges: int
    active_runs: int
    failed_calls: int
    exports: int
    open_disagreements: int | None = Field(description="Among reviewers; null if you may not see them")
    is_counting: bool = Field(
        description="Whether changes are still being counted; the numbers are those of the last count"
    )


class EvaluationDetailOut(EvaluationOut):
    guidelines: str
    queries: int
    candidates: int
    members: int
    progress: EvaluationProgressOut
    next_step: str = Field(description="Your next step")


class EvaluationDeletionIn(StrictIn):
    name: NameText = Field(description="The name of the evaluation, to confirm")


class EvaluationDeletionOut(Schema):
    slug: str = Field(description="The URL name, which is free again")


class EventOut(Schema):
    id: int
    created_at: datetime
    verb: str
    object_type: str
    object_id: int | None
    user: UserOut | None
    through_token: str | None = Field(description="Name of the API token, if one was used")
    before: JsonDict
    after: JsonDict


class EventPage(Schema):
    items: list[EventOut]
    next: str | None
