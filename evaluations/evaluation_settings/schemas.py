"""API shapes of an evaluation's settings, guidelines and model families."""

from datetime import datetime
from typing import Annotated

from ninja import Field, Schema

from evaluations.api.schemas import LongText, NameText, RowId, StrictIn
from evaluations.domain.choices import LabelPolicy
from evaluations.domain.reviews import Reveal


class EvaluationSettingsOut(Schema):
    name: str
    description: str
    guidelines: str
    review_rubric: int | None = Field(description="the id of a rubric version")
    reviews_wanted: int
    reservation_minutes: int
    shown_judge: int | None
    reveal: Reveal
    label_policy: LabelPolicy
    resolve_judge_disagreements: bool


class EvaluationSettingsPatch(StrictIn):
    """Settings to change; omitted fields keep their values."""

    name: NameText | None = None
    description: LongText | None = None
    guidelines: LongText | None = None
    review_rubric: RowId | None = None
    reviews_wanted: Annotated[int, Field(ge=1, le=100)] | None = None
    reservation_minutes: Annotated[int, Field(ge=1, le=10_080)] | None = None
    shown_judge: RowId | None = None
    reveal: Reveal | None = None
    label_policy: LabelPolicy | None = None
    resolve_judge_disagreements: bool | None = None


class GuidelinesOut(Schema):
    guidelines: str
    changed_at: datetime | None


class FamilyOut(Schema):
    id: int
    name: str
    family: str


class FamiliesOut(Schema):
    candidates: list[FamilyOut]
    judges: list[FamilyOut]


class FamiliesPatch(StrictIn):
    """By id; who is left out stays as they are."""

    candidates: dict[str, Annotated[str, Field(max_length=80)]] = Field(default_factory=dict)
    judges: dict[str, Annotated[str, Field(max_length=80)]] = Field(default_factory=dict)
