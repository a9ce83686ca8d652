"""API shapes of an evaluation's settings, bars of decisions, guidelines and model families."""

from datetime import datetime
from typing import Annotated

from ninja import Field, Schema

from evaluations.api.schemas import OMITTED, LongText, NameText, RowId, StrictIn
from evaluations.domain.choices import LabelPolicy
from evaluations.domain.reviews import NameReveal, Reveal
from evaluations.evaluation_settings.services import MAX_HALF_WIDTH, MAX_RESERVATION_MINUTES, MAX_REVIEWS_WANTED


class EvaluationSettingsOut(Schema):
    name: str
    description: str
    guidelines: str
    review_rubric: int | None = Field(description="the id of a rubric version")
    reviews_wanted: int
    reservation_minutes: int
    shown_judge: int | None
    reveal: Reveal
    name_reveal: NameReveal = Field(description="when reviewers see the names of the candidates")
    label_policy: LabelPolicy
    resolve_judge_disagreements: bool


class EvaluationSettingsPatch(StrictIn):
    """Settings to change; omitted fields keep their values."""

    name: NameText = OMITTED
    description: LongText = OMITTED
    guidelines: LongText = OMITTED
    review_rubric: RowId | None = None
    reviews_wanted: Annotated[int, Field(ge=1, le=MAX_REVIEWS_WANTED)] = OMITTED
    reservation_minutes: Annotated[int, Field(ge=1, le=MAX_RESERVATION_MINUTES)] = OMITTED
    shown_judge: RowId | None = None
    reveal: Reveal = OMITTED
    name_reveal: NameReveal = OMITTED
    label_policy: LabelPolicy = OMITTED
    resolve_judge_disagreements: bool = OMITTED


class DecisionBarsOut(Schema):
    """The bars of decisions on judges, as shares of 1."""

    stand_in: float = Field(description="how far below reviewers a judge may agree and still stand in")
    aspect: float = Field(description="the same for one aspect")
    unreliable: float = Field(description="from how far below reviewers a judge is not reliable")
    failures: float = Field(description="the largest share of failed calls")
    inconsistency: float = Field(description="the largest share of comparisons on which the two orders disagree")
    bias: float = Field(description="the largest effect of position, length or own family")
    half_width: float = Field(description="how exactly spot checks estimate a win rate")
    set_at: datetime = Field(description="since when the bars hold")
    results_seen_at: datetime | None = Field(description="when somebody first looked at decisions")


Share = Annotated[float, Field(gt=0, lt=1)]


class DecisionBarsPatch(StrictIn):
    """Bars to change; omitted ones keep their values."""

    stand_in: Share = OMITTED
    aspect: Share = OMITTED
    unreliable: Share = OMITTED
    failures: Share = OMITTED
    inconsistency: Share = OMITTED
    bias: Share = OMITTED
    half_width: Annotated[float, Field(gt=0, le=MAX_HALF_WIDTH)] = OMITTED


class GuidelinesOut(Schema):
    guidelines: str
    changed_at: datetime | None


class CandidatePatch(StrictIn):
    name: Annotated[str, Field(min_length=1, max_length=200)]


class FamilyOut(Schema):
    id: int
    name: str
    family: str


class FamiliesOut(Schema):
    candidates: list[FamilyOut]
    judges: list[FamilyOut]


class FamiliesPatch(StrictIn):
    """By id. Models and judges that are not listed stay unchanged."""

    candidates: dict[str, Annotated[str, Field(max_length=80)]] = Field(default_factory=dict)
    judges: dict[str, Annotated[str, Field(max_length=80)]] = Field(default_factory=dict)
