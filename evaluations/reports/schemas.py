"""API shapes of reviewers whom results may leave out."""

from datetime import datetime
from typing import Literal

from ninja import Field, Schema

from evaluations.api.schemas import StrictIn, UserOut
from evaluations.domain.reviews import ScreeningChoice


class ScreenedReviewerOut(Schema):
    id: int
    name: str
    choice: ScreeningChoice | Literal[""] = Field(description="whether results count the reviewer; empty: not decided")
    chosen_at: datetime | None
    chosen_by: UserOut | None


class ReviewerPage(Schema):
    items: list[ScreenedReviewerOut]
    next: str | None


class ScreeningIn(StrictIn):
    choice: ScreeningChoice | Literal[""] = Field(description="empty undoes the choice")
