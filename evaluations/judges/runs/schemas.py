"""What the API accepts for runs."""

from datetime import datetime
from typing import Annotated

from ninja import Field, Schema

from evaluations.api.schemas import RowId, StrictIn, UserOut
from evaluations.domain.judges import CallState, RunChannel, RunOrders, RunState

UsdAmount = Annotated[float, Field(ge=0, le=1_000_000)]


class RangeOut(Schema):
    low: float
    high: float


class RunEstimateOut(Schema):
    judge: int
    comparisons: int
    calls: int
    reused: int
    left_as_they_are: int
    requests: RangeOut
    tokens_in: RangeOut
    tokens_out: RangeOut
    cost_usd: RangeOut | None = Field(description="null if no price is known")
    minutes: RangeOut | None
    assumptions: list[str]


class RunEstimateList(Schema):
    items: list[RunEstimateOut]


class RunIn(StrictIn):
    judges: Annotated[list[RowId], Field(min_length=1, max_length=50)]
    orders: RunOrders = RunOrders.BOTH
    samples: Annotated[int, Field(ge=1, le=100)] = 1
    limit: Annotated[int, Field(ge=1, le=10**9)] | None = None
    budget_usd: UsdAmount | None = None
    channel: RunChannel = RunChannel.LIVE
    ask_failures_again: bool = False


class RunBudgetIn(StrictIn):
    budget_usd: UsdAmount | None = Field(None, description="null: no budget")


class RunRetryIn(StrictIn):
    states: Annotated[list[CallState], Field(min_length=1, max_length=20)]
    budget_usd: UsdAmount | None = None


class RunOut(Schema):
    id: int
    judge: int
    judge_name: str
    batch: str = Field(description="shared by runs that were started together")
    state: RunState
    channel: RunChannel
    orders: RunOrders
    samples: int
    planned: int
    reused: int
    budget_usd: float | None
    spent_usd: float
    stop_reason: str
    archived: bool = Field(description="off the list of runs; its verdicts count as before")
    waits_for: str = Field(description="why a running run waits for its endpoint; else empty")
    next_try_at: datetime | None = Field(description="when the endpoint is checked again with a free request")
    created_by: UserOut | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class RunPage(Schema):
    items: list[RunOut]
    next: str | None


class OpenRunOut(Schema):
    """A run that is not over, as site administrators see it."""

    id: int
    evaluation: str
    judge_name: str
    endpoint: int | None
    state: RunState
    spent_usd: float
    created_by: UserOut | None
    created_at: datetime


class OpenRunPage(Schema):
    items: list[OpenRunOut]
    next: str | None


class RunList(Schema):
    items: list[RunOut]


class RunProgressOut(Schema):
    counts: dict[str, int]
    total: int
    settled: int
    failures: dict[str, int]
    per_minute: float | None
    seconds_left: float | None
    repeated: int
    retried: int
    tokens_in: int | None
    tokens_out: int | None
    cost_usd: float | None
    unpriced: int
    repaired: int
    copied: int


class RunDetailOut(RunOut):
    progress: RunProgressOut


class ReparseOut(Schema):
    calls: int
