from datetime import datetime
from typing import Annotated, Any, Literal

from ninja import Field, Schema

from evaluations.api.schemas.shared import Id, Message, Name, Person, Sent, ShortText, Text
from evaluations.domain import (
    CallState,
    Channel,
    Choice,
    Dialect,
    JudgeKind,
    Orders,
    RubricKind,
    RubricOrigin,
    RunState,
    Shown,
)

Number = Annotated[float, Field(ge=-1e12, le=1e12)]
Usd = Annotated[float, Field(ge=0, le=1_000_000)]


# ---- rubrics -------------------------------------------------------------------------------


class AspectSpecTold(Schema):
    """What is asked about one aspect. The scale is null for pairwise aspects."""

    key: str
    name: str
    definition: str
    offers_tie: bool
    offers_both_bad: bool
    labels: dict[str, str]
    scale_min: float | None
    scale_max: float | None
    scale_step: float | None
    scale_labels: dict[str, str]
    tie_margin: float
    reply_key: str


class SpecTold(Schema):
    kind: RubricKind
    instructions: str
    aspects: list[AspectSpecTold]
    output_order: list[str]
    placeholders: dict[str, str]
    answer_format: str
    few_shot: list[dict[str, Any]]
    rationale_key: str
    choices_key: str


class AspectSent(Sent):
    key: Annotated[str, Field(min_length=1, max_length=60, pattern=r"^[-a-zA-Z0-9_]+$", examples=["clarity"])]
    name: Annotated[str, Field(min_length=1, max_length=80, examples=["Clarity"])]
    definition: Text = ""
    offers_tie: bool = True
    offers_both_bad: bool = False
    labels: dict[str, ShortText] = Field(default_factory=dict)
    scale_min: Number | None = None
    scale_max: Number | None = None
    scale_step: Number | None = None
    scale_labels: dict[str, ShortText] = Field(default_factory=dict)
    tie_margin: Annotated[float, Field(ge=0, le=1e12)] = 0.0
    reply_key: Annotated[str, Field(max_length=60)] = ""


class SpecSent(Sent):
    kind: RubricKind = RubricKind.PAIRWISE
    instructions: Annotated[Text, Field(min_length=1, examples=["Say which response is clearer."])]
    aspects: Annotated[list[AspectSent], Field(min_length=1, max_length=40)]
    output_order: Annotated[list[str], Field(max_length=40)] = Field(
        default_factory=list, description="keys in the order of the reply; empty: as the aspects stand"
    )
    placeholders: dict[str, ShortText] = Field(default_factory=dict)
    answer_format: Annotated[str, Field(max_length=400, pattern=r"^(json|two_step|text(:.*)?)$")] = "json"
    few_shot: Annotated[list[dict[str, Any]], Field(max_length=20)] = Field(default_factory=list)
    rationale_key: Annotated[str, Field(min_length=1, max_length=60)] = "rationale"
    choices_key: Annotated[str, Field(max_length=60)] = "choices"


class RubricTold(Schema):
    id: int
    name: str
    kind: RubricKind
    origin: RubricOrigin
    newest: int | None
    judges: int


class RubricPage(Schema):
    items: list[RubricTold]
    next: str | None


class VersionTold(Schema):
    id: int
    number: int
    is_frozen: bool
    judges: int
    created_at: datetime


class RubricWhole(Schema):
    id: int
    name: str
    kind: RubricKind
    origin: RubricOrigin
    versions: list[VersionTold]
    version: int = Field(description="the number of the one whose words stand below")
    spec: SpecTold


class RubricNew(Sent):
    name: Annotated[str, Field(min_length=1, max_length=120)]
    spec: SpecSent


class VersionNew(Sent):
    spec: SpecSent
    for_reviews: bool = Field(False, description="ask people by this version from now on")


class BuiltinNew(Sent):
    builtin: Annotated[str, Field(max_length=60, examples=["six-aspect"])]
    name: Annotated[str, Field(max_length=120)] = ""
    metric: Annotated[str, Field(max_length=60)] = ""
    reason_key: Annotated[str, Field(max_length=60)] = ""


class Pasted(Sent):
    text: Annotated[Text, Field(min_length=1)]


class PromptDraft(Schema):
    name: str
    placeholders: list[str]
    unknown: list[str] = Field(description="placeholders whose name does not say what they stand for")
    spec: SpecTold


class DraftList(Schema):
    items: list[PromptDraft]


class LookTold(Schema):
    """What a judge would be sent by a rubric that is being written; or why nothing can be."""

    messages: list[Message]
    reply_schema: str
    problem: str


# ---- endpoints -----------------------------------------------------------------------------


class PriceTold(Schema):
    """In USD for a million tokens."""

    model: str
    tokens_in: float
    tokens_cached: float
    tokens_out: float
    batch_percent: int
    most_tokens_out: int | None = Field(description="the longest reply of the model, reasoning included")
    source: str = Field(description="of a list price: its date and address; empty where a person set the price")


class EndpointTold(Schema):
    id: int
    name: str
    base_url: str
    key_variable: str
    max_in_flight: int | None
    requests_per_minute: int | None
    tokens_per_minute: int | None
    dialect: str = Field(description="chosen by the base URL where empty")
    timeout_seconds: int | None
    extra_headers: dict[str, Any]
    extra_query: dict[str, Any]
    extra_body: dict[str, Any]
    judges: int


class EndpointFinding(Schema):
    about: str
    found: str
    health: str = Field(description="ok, warning or problem")
    do: str


class EndpointTest(Schema):
    model: str
    checked_at: datetime
    is_waiting: bool = Field(description="no worker has answered yet")
    findings: list[EndpointFinding]


class EndpointCheck(Sent):
    model: Annotated[str, Field(max_length=200)] = Field(
        "", description="where empty, the one its judges use, else the first it offers"
    )


class EndpointWhole(EndpointTold):
    prices: list[PriceTold]
    tests: list[EndpointTest] = Field(description="the latest tests, newest first")
    paused_until: datetime | None = Field(description="a quota is used up until then")
    pause_reason: str


class FoundServer(Schema):
    id: int
    base_url: str
    kind: str
    models: list[str]


class EndpointPage(Schema):
    items: list[EndpointTold]
    next: str | None
    found: list[FoundServer] = Field(description="local servers that a worker found, to be added")


Limit = Annotated[int, Field(ge=1, le=2**31 - 1)]
Lines = dict[str, Annotated[str, Field(max_length=1_000)]]


class EndpointNew(Sent):
    """A value `$NAME` of an extra is the environment variable of that name where the worker runs."""

    name: Annotated[str, Field(min_length=1, max_length=120)]
    base_url: Annotated[str, Field(min_length=1, max_length=500, examples=["https://api.openai.com/v1"])]
    key_variable: Annotated[str, Field(max_length=120, examples=["OPENAI_API_KEY"])] = ""
    max_in_flight: Limit | None = None
    requests_per_minute: Limit | None = None
    tokens_per_minute: Limit | None = None
    dialect: Dialect | Literal[""] = ""
    timeout_seconds: Limit | None = None
    extra_headers: Lines = {}
    extra_query: Lines = {}
    extra_body: dict[str, Any] = {}


class EndpointChange(Sent):
    """What is left out stays; null takes a limit away."""

    name: Annotated[str, Field(min_length=1, max_length=120)] | None = None
    base_url: Annotated[str, Field(min_length=1, max_length=500)] | None = None
    key_variable: Annotated[str, Field(max_length=120)] | None = None
    max_in_flight: Limit | None = None
    requests_per_minute: Limit | None = None
    tokens_per_minute: Limit | None = None
    dialect: Dialect | Literal[""] | None = None
    timeout_seconds: Limit | None = None
    extra_headers: Lines | None = None
    extra_query: Lines | None = None
    extra_body: dict[str, Any] | None = None


class PriceSet(Sent):
    model: Annotated[str, Field(min_length=1, max_length=200)]
    tokens_in: Usd
    tokens_cached: Usd | None = None
    tokens_out: Usd
    batch_percent: Annotated[int, Field(ge=0, le=100)] = 50
    most_tokens_out: Annotated[int, Field(ge=1, le=10_000_000)] | None = None


class ListPriceUse(Sent):
    model: Annotated[str, Field(min_length=1, max_length=200)]


# ---- judges --------------------------------------------------------------------------------


class JudgeTold(Schema):
    id: int
    name: str
    kind: JudgeKind
    is_baseline: bool
    model: str
    endpoint: str | None
    rubric: str | None
    rubric_version: int | None = Field(description="its number")
    archived: bool
    created_at: datetime


class JudgePage(Schema):
    items: list[JudgeTold]
    next: str | None


class JudgeWhole(JudgeTold):
    mode: str
    temperature: float | None
    max_tokens: int | None
    seed: int | None
    reasoning_effort: str
    logprobs: bool
    repairs: bool
    one_aspect_per_call: bool
    sent_as: list[str] = Field(description="how its requests are written so that the model takes them, where unusual")
    extra_headers: dict[str, Any]
    extra_body: dict[str, Any]
    family: str
    fingerprint: str


class JudgeNew(Sent):
    """Without an endpoint it is a rule (`longest`, `first`, `random`), not an LLM."""

    endpoint: Id | None = None
    rule: Annotated[str, Field(max_length=40)] = ""
    model: Name = ""
    name: Annotated[str, Field(max_length=120)] = ""
    version: Id = Field(description="the id of a rubric version; it is frozen with the judge")
    mode: Annotated[str, Field(max_length=12)] = "auto"
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    seed: Annotated[int, Field(ge=-(2**63), le=2**63 - 1)] | None = None
    max_tokens: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    reasoning_effort: Annotated[str, Field(max_length=20)] = ""
    repairs: bool = True
    logprobs: bool = False
    one_aspect_per_call: bool = Field(False, description="a request for each aspect; needs a rubric with several")
    extra_headers: Lines = {}
    extra_body: dict[str, Any] = {}


class PromptTold(Schema):
    subject: int | None
    shown: Shown
    messages: list[Message]
    reply_schema: str
    shape: str
    aspects: list[str] = Field(
        [], description="one aspect per call: the names of all in order, this being the request for the first"
    )


class Trying(Sent):
    subject: Id | None = Field(None, description="a comparison, or of a pointwise judge a response; null: the first")
    shown: Shown = Shown.AS_STORED


# ---- runs ----------------------------------------------------------------------------------


class RangeTold(Schema):
    low: float
    high: float


class EstimateTold(Schema):
    judge: int
    comparisons: int
    calls: int
    reused: int
    left_as_they_are: int
    requests: RangeTold
    tokens_in: RangeTold
    tokens_out: RangeTold
    cost_usd: RangeTold | None = Field(description="null where no price is known")
    minutes: RangeTold | None
    assumptions: list[str]


class EstimateList(Schema):
    items: list[EstimateTold]


class RunNew(Sent):
    judges: Annotated[list[Id], Field(min_length=1, max_length=50)]
    orders: Orders = Orders.BOTH
    samples: Annotated[int, Field(ge=1, le=100)] = 1
    limit: Annotated[int, Field(ge=1, le=10**9)] | None = None
    budget_usd: Usd | None = None
    channel: Channel = Channel.LIVE
    ask_failures_again: bool = False


class BudgetChange(Sent):
    budget_usd: Usd | None = Field(None, description="null: no budget")


class Retrying(Sent):
    states: Annotated[list[CallState], Field(min_length=1, max_length=20)]
    budget_usd: Usd | None = None


class RunTold(Schema):
    id: int
    judge: int
    judge_name: str
    batch: str = Field(description="runs that were started together share it")
    state: RunState
    channel: Channel
    orders: Orders
    samples: int
    planned: int
    reused: int
    budget_usd: float | None
    spent_usd: float
    stop_reason: str
    person: Person | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class RunPage(Schema):
    items: list[RunTold]
    next: str | None


class OpenRun(Schema):
    """A run that is not over, as site administrators see it."""

    id: int
    evaluation: str
    judge_name: str
    endpoint: int | None
    state: RunState
    spent_usd: float
    person: Person | None
    created_at: datetime


class OpenRunPage(Schema):
    items: list[OpenRun]
    next: str | None


class RunList(Schema):
    items: list[RunTold]


class RunProgress(Schema):
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


class RunWhole(RunTold):
    progress: RunProgress


class CallTold(Schema):
    id: int
    comparison: int | None
    response: int | None
    query_id: str
    shown: Shown
    sample: int
    state: CallState
    repaired: bool
    copied_from: int | None
    error: str


class CallPage(Schema):
    items: list[CallTold]
    next: str | None


class AttemptTold(Schema):
    number: int
    step: str
    outcome: str
    http_status: int | None
    raw: str
    finish_reason: str
    model_returned: str
    tokens_in: int | None
    tokens_out: int | None
    tokens_reasoning: int | None = Field(description="of tokens_out, where the server counts them apart")
    cost_usd: float | None
    latency_ms: int
    reasoning: str = Field(description="what the model thought, where told apart; never read for a verdict")
    aspect: str = Field(description="the aspect that was asked for; empty where all were")
    error: str


class CallVerdict(Schema):
    aspect: str
    choice: Choice
    inconsistent: bool
    rationale: str


class CallScore(Schema):
    aspect: str
    value: float
    rationale: str


class CallWhole(CallTold):
    rationale: str
    confirmed_by: Person | None = Field(description="who decided that the verdict of a suspect call counts")
    confirmed_at: datetime | None
    attempts: list[AttemptTold]
    verdicts: list[CallVerdict]
    scores: list[CallScore]


class TrialTold(Schema):
    run: RunTold
    is_moving: bool
    call: CallWhole | None


class Reread(Schema):
    calls: int
