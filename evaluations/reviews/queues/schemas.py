"""API schemas of queues and calibrations."""

from datetime import datetime
from typing import Annotated

from ninja import Field, Schema

from evaluations.api.schemas import RowId, StrictIn, UserOut
from evaluations.domain.reviews import QueueAudience, QueueKind, SelectionMethod, StratifyBy


class QueueOut(Schema):
    id: int
    name: str
    kind: QueueKind
    strategy: SelectionMethod
    random_percent: int
    reviews_wanted: int
    assigned_only: bool
    archived: bool
    is_outdated: bool
    comparisons: int
    reviews: int
    reviewers: int
    created_at: datetime


class DefaultQueueOut(Schema):
    comparisons: int
    drawn: int
    reviews: int
    wanted: int


class QueuePage(Schema):
    items: list[QueueOut]
    next: str | None
    default_queue: DefaultQueueOut


class ReviewerWorkOut(Schema):
    name: str
    done: int
    assigned: int
    open: int
    skipped: int
    median_seconds: float | None


class QueueDetailOut(QueueOut):
    work: list[ReviewerWorkOut]


class QueueSlotOut(Schema):
    comparison: int
    position: int
    selection_method: SelectionMethod
    probability: float | None
    done: list[str]
    waiting: list[str]


class QueueSlotPage(Schema):
    items: list[QueueSlotOut]
    next: str | None


class QueueIn(StrictIn):
    """``who``: everyone, split (divided among ``reviewers``) or each (everyone selected reviews all)."""

    name: Annotated[str, Field(min_length=1, max_length=120)]
    strategy: SelectionMethod = SelectionMethod.RANDOM
    strata: StratifyBy | None = None
    size: Annotated[int, Field(ge=1, le=100_000)] | None = None
    random_percent: Annotated[int, Field(ge=0, le=100)] | None = None
    reviews_wanted: Annotated[int, Field(ge=1, le=100)] = 1
    who: QueueAudience = QueueAudience.EVERYONE
    reviewers: Annotated[list[RowId], Field(max_length=500)] = Field(default_factory=list)
    seed: Annotated[int, Field(ge=0, le=2**53)] = 0


class QueuePreviewOut(Schema):
    matching: int
    at_random: int
    by_strategy: int


class CalibrationIn(StrictIn):
    """Either a random sample size or comparison ids."""

    name: Annotated[str, Field(min_length=1, max_length=120)] = "Calibration"
    size: Annotated[int, Field(ge=1, le=100_000)] | None = None
    comparisons: Annotated[list[RowId], Field(max_length=1_000)] = Field(default_factory=list)
    seed: Annotated[int, Field(ge=0, le=2**53)] = 0


class ReviewersIn(StrictIn):
    reviewers: Annotated[list[RowId], Field(min_length=1, max_length=500)]


class AssignedOut(Schema):
    assigned: int


class AspectAgreementOut(Schema):
    aspect: str
    compared: int
    agreed: int


class CalibrationOut(Schema):
    """Your own result, once the calibration is finished."""

    done: int
    total: int
    is_finished: bool
    skipped: int
    agreements: list[AspectAgreementOut]


class CalibrationMemberOut(Schema):
    user: UserOut
    done: int
    total: int
    agreements: list[AspectAgreementOut]


class CalibrationPage(Schema):
    mine: CalibrationOut
    items: list[CalibrationMemberOut] = Field(description="of all reviewers, if you may see all choices")
    next: str | None
