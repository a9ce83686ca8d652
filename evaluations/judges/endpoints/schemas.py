"""What the API accepts for endpoints, prices, tests."""

from datetime import date, datetime
from typing import Annotated, Literal

from ninja import Field, Schema

from evaluations.api.schemas import StrictIn
from evaluations.domain.json_values import JsonDict
from evaluations.domain.judges import Dialect
from evaluations.judges.runs.schemas import UsdAmount


class PriceOut(Schema):
    """In USD per million tokens."""

    model: str
    tokens_in: float
    tokens_cached: float
    tokens_out: float
    batch_percent: int
    most_tokens_out: int | None = Field(description="longest reply of the model, reasoning included")
    source: str = Field(description="date and source of a list price; empty for a price set manually")


class EndpointOut(Schema):
    id: int
    name: str
    base_url: str
    key_variable: str = Field(description="the worker's environment variable with the API key")
    has_stored_key: bool = Field(description="whether an API key is stored; it is never returned")
    max_in_flight: int | None
    requests_per_minute: int | None
    tokens_per_minute: int | None
    dialect: str = Field(description="default: by the base URL")
    timeout_seconds: int | None
    daily_budget_usd: float | None = Field(description="for all evaluations together, per UTC day")
    is_offered: bool = Field(description="to all evaluations, without a grant")
    extra_headers: JsonDict
    extra_query: JsonDict
    extra_body: JsonDict
    judges: int


class EndpointFindingOut(Schema):
    about: str
    found: str
    health: str = Field(description="ok, warning or problem")
    do: str


class EndpointTestOut(Schema):
    model: str
    checked_at: datetime
    is_waiting: bool = Field(description="whether the test is in progress")
    findings: list[EndpointFindingOut]


class EndpointTestIn(StrictIn):
    model: Annotated[str, Field(max_length=200)] = Field(
        "", description="default: the one its judges use, else one that it lists"
    )


class EndpointDetailOut(EndpointOut):
    prices: list[PriceOut]
    tests: list[EndpointTestOut] = Field(description="the latest tests, newest first")
    paused_until: datetime | None = Field(description="when an exhausted quota renews")
    pause_reason: str
    down_since: datetime | None = Field(description="when it stopped answering")
    down_reason: str
    next_probe_at: datetime | None


class GrantIn(StrictIn):
    evaluation: Annotated[str, Field(min_length=1, max_length=80)]
    budget_usd: UsdAmount | None = Field(None, description="for all its runs here together; null for no limit")


class GrantOut(Schema):
    """An evaluation at an endpoint. Withdrawn grants stay listed with their spending."""

    id: int
    evaluation: str
    is_active: bool
    budget_usd: float | None
    spent_usd: float
    reserved_usd: float = Field(description="for requests in flight")


class SpendingOut(Schema):
    """The requests of an evaluation at an endpoint on one UTC day. It is kept when either is deleted."""

    day: date
    evaluation: str = Field(description="its name on that day; blank for tests of the endpoint")
    requests: int
    tokens_in: int
    tokens_out: int
    cost_usd: float
    max_cost_usd: float = Field(description="upper bound of requests whose cost is unknown")


class SpendingPage(Schema):
    items: list[SpendingOut]
    next: str | None


class GrantList(Schema):
    items: list[GrantOut]


class GrantedEndpointOut(Schema):
    """An endpoint that an evaluation may use, and its own account there."""

    id: int
    name: str
    is_granted: bool = Field(description="false if it is only offered to all")
    budget_usd: float | None
    spent_usd: float
    reserved_usd: float


class GrantedEndpointList(Schema):
    items: list[GrantedEndpointOut]


class FoundServerOut(Schema):
    id: int
    base_url: str
    kind: str
    models: list[str]


class EndpointPage(Schema):
    items: list[EndpointOut]
    next: str | None
    found: list[FoundServerOut] = Field(description="local servers that a worker found")


PositiveLimit = Annotated[int, Field(ge=1, le=2**31 - 1)]
ApiKey = Annotated[str, Field(max_length=4_000)]
ExtraLines = dict[str, Annotated[str, Field(max_length=1_000)]]


class EndpointIn(StrictIn):
    """A value `$NAME` in an extra is the worker's environment variable of that name."""

    name: Annotated[str, Field(min_length=1, max_length=120)]
    base_url: Annotated[str, Field(min_length=1, max_length=500, examples=["https://api.openai.com/v1"])]
    key_variable: Annotated[str, Field(max_length=120, examples=["OPENAI_API_KEY"])] = ""
    api_key: ApiKey = Field("", description="stored encrypted and never returned; or name a variable")
    max_in_flight: PositiveLimit | None = None
    requests_per_minute: PositiveLimit | None = None
    tokens_per_minute: PositiveLimit | None = None
    dialect: Dialect | Literal[""] = ""
    timeout_seconds: PositiveLimit | None = None
    daily_budget_usd: UsdAmount | None = None
    is_offered: bool = False
    extra_headers: ExtraLines = {}
    extra_query: ExtraLines = {}
    extra_body: JsonDict = {}


class EndpointPatch(StrictIn):
    """Fields to change; omitted fields keep their values, and null removes a limit."""

    name: Annotated[str, Field(min_length=1, max_length=120)] | None = None
    base_url: Annotated[str, Field(min_length=1, max_length=500)] | None = None
    key_variable: Annotated[str, Field(max_length=120)] | None = None
    api_key: ApiKey | None = Field(None, description="replaces the stored key; null removes it")
    max_in_flight: PositiveLimit | None = None
    requests_per_minute: PositiveLimit | None = None
    tokens_per_minute: PositiveLimit | None = None
    dialect: Dialect | Literal[""] | None = None
    timeout_seconds: PositiveLimit | None = None
    daily_budget_usd: UsdAmount | None = None
    is_offered: bool | None = None
    extra_headers: ExtraLines | None = None
    extra_query: ExtraLines | None = None
    extra_body: JsonDict | None = None


class PriceIn(StrictIn):
    model: Annotated[str, Field(min_length=1, max_length=200)]
    tokens_in: UsdAmount
    tokens_cached: UsdAmount | None = None
    tokens_out: UsdAmount
    batch_percent: Annotated[int, Field(ge=0, le=100)] = 50
    most_tokens_out: Annotated[int, Field(ge=1, le=10_000_000)] | None = None


class ListPriceIn(StrictIn):
    model: Annotated[str, Field(min_length=1, max_length=200)]
