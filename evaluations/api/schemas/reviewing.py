from datetime import datetime
from typing import Annotated, Literal

from ninja import Field, Schema

from evaluations.api.schemas.comparisons import AdjudicationTold, LabelTold
from evaluations.api.schemas.shared import Id, Message, Person, Sent, Version
from evaluations.domain import Choice, PickedBy, Reason, ReviewState, RoundKind, Strata

Key = Annotated[str, Field(min_length=1, max_length=60)]
Note = Annotated[str, Field(max_length=10_000)]
Score = Annotated[float, Field(ge=-1e12, le=1e12)]


# ---- one comparison ------------------------------------------------------------------------


class Scored(Schema):
    """What the two responses were given, A being the first that you see."""

    a: float
    b: float


class QueueTold(Schema):
    total: int
    done: int
    skipped: int


class NextTold(Schema):
    """What you are to review next; ``comparison`` is null where nothing waits for you."""

    comparison: int | None
    result_of_calibration: int | None = Field(description="a round whose result you are to look at first")
    progress: QueueTold


class JudgeSaid(Schema):
    choice: Choice
    inconsistent: bool
    orders: int
    rationale: str
    remark: str
    scores: Scored | None


class LineTold(Schema):
    """One aspect, everything as you see it: A is the first response."""

    aspect: str
    name: str
    definition: str
    choices: list[Choice] = Field(description="what may be chosen; empty where responses are scored")
    scale: list[float | None] | None = Field(description="lowest, highest and step, where responses are scored")
    first: Choice | Scored | None
    final: Choice | Scored | None
    note: str
    reason: str
    judge: JudgeSaid | None = Field(description="null while its choices must not be seen")


class SpanTold(Schema):
    id: int
    side: Literal["a", "b"]
    turn: int
    start: int
    end: int
    quote: str
    comment: str
    aspect: str | None


class DraftTold(Schema):
    fields: dict[str, str]
    kept_at: datetime
    number: int


class ReviewTold(Schema):
    """One comparison as you should see it now. Each step names the ``version`` that it was made from."""

    comparison: int
    rubric_version: int
    stage: Literal["choose", "confirm", "done"]
    state: ReviewState | None
    version: int
    comes_back: bool = Field(description="the judge has answered since: look again, or leave it as it is")
    query: list[Message]
    context: str | None
    reference: str | None
    a: list[Message]
    b: list[Message]
    aspects: list[LineTold]
    note: str
    judge_rationales: list[str]
    draft: DraftTold | None
    spans: list[SpanTold]


class Step(Sent):
    """``rubric_version``: by which one you were asked, if you want a change of it to be refused."""

    version: Version
    rubric_version: Id | None = None
    active_ms: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0


class ScoresSent(Sent):
    a: Score
    b: Score


class Saving(Step):
    choices: dict[Key, Choice | ScoresSent] = Field(
        examples=[{"helpfulness": "A", "clarity": "tie"}], description="by aspect; two scores where it has a scale"
    )
    note: Note = ""


class Confirming(Saving):
    notes: dict[Key, Note] = Field(default_factory=dict)
    reasons: dict[Key, Reason] = Field(default_factory=dict)


class Skipping(Step):
    reason: Annotated[str, Field(max_length=200)] = ""


class Drafting(Step):
    """Fields as the page names them, such as ``choice_clarity`` and ``note``."""

    fields: Annotated[dict[Key, Note], Field(max_length=200)]
    number: Version = Field(0, description="of the draft that you have seen last")


class Marking(Sent):
    """Without its place the quote is looked for."""

    side: Literal["a", "b"]
    quote: Annotated[str, Field(max_length=20_000)] = ""
    turn: Annotated[int, Field(ge=0, le=32_767)] | None = None
    start: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None
    end: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None
    comment: Note = ""
    aspect: Annotated[str, Field(max_length=60)] = ""


class Remark(Sent):
    comment: Note = ""
    aspect: Annotated[str, Field(max_length=60)] = ""


class SpanList(Schema):
    items: list[SpanTold]


class DiffTold(Schema):
    """The turns as HTML: ``del`` and ``ins`` mark the words that differ."""

    a: list[str]
    b: list[str]
    refusal: str


# ---- rounds --------------------------------------------------------------------------------


class RoundTold(Schema):
    id: int
    name: str
    kind: RoundKind
    strategy: PickedBy
    random_percent: int
    reviews_wanted: int
    by_name: bool
    is_closed: bool
    is_outdated: bool
    comparisons: int
    reviews: int
    people: int
    created_at: datetime


class PoolTold(Schema):
    comparisons: int
    drawn: int
    reviews: int
    wanted: int


class RoundPage(Schema):
    items: list[RoundTold]
    next: str | None
    pool: PoolTold


class WorkTold(Schema):
    name: str
    done: int
    given: int
    open: int
    skipped: int
    median_seconds: float | None


class RoundWhole(RoundTold):
    work: list[WorkTold]


class PickTold(Schema):
    comparison: int
    place: int
    picked_by: PickedBy
    probability: float | None
    done: list[str]
    waiting: list[str]


class PickPage(Schema):
    items: list[PickTold]
    next: str | None


class RoundNew(Sent):
    """``who``: pool (everyone), split (the people, divided among them) or each (all of it to each)."""

    name: Annotated[str, Field(min_length=1, max_length=120)]
    strategy: PickedBy = PickedBy.RANDOM
    strata: Strata | None = None
    size: Annotated[int, Field(ge=1, le=100_000)] | None = None
    random_percent: Annotated[int, Field(ge=0, le=100)] | None = None
    reviews_wanted: Annotated[int, Field(ge=1, le=100)] = 1
    who: Literal["pool", "split", "each"] = "pool"
    people: Annotated[list[Id], Field(max_length=500)] = Field(default_factory=list)
    seed: Annotated[int, Field(ge=0, le=2**53)] = 0


class RoundPreview(Schema):
    matching: int
    at_random: int
    by_strategy: int


class CalibrationNew(Sent):
    """Either how many are to be drawn, or which ones."""

    name: Annotated[str, Field(min_length=1, max_length=120)] = "Calibration"
    size: Annotated[int, Field(ge=1, le=100_000)] | None = None
    comparisons: Annotated[list[Id], Field(max_length=1_000)] = Field(default_factory=list)
    seed: Annotated[int, Field(ge=0, le=2**53)] = 0


class PeopleSent(Sent):
    people: Annotated[list[Id], Field(min_length=1, max_length=500)]


class GivenTold(Schema):
    given: int


class AgreementTold(Schema):
    aspect: str
    compared: int
    agreed: int


class CalibrationTold(Schema):
    """One's own, once it is whole."""

    done: int
    total: int
    is_finished: bool
    skipped: int
    agreements: list[AgreementTold]


class CalibrationRow(Schema):
    person: Person
    done: int
    total: int
    agreements: list[AgreementTold]


class CalibrationPage(Schema):
    mine: CalibrationTold
    items: list[CalibrationRow] = Field(description="everyone's, for those who see all")
    next: str | None


# ---- disagreements -------------------------------------------------------------------------


class DifferenceTold(Schema):
    aspect: str
    votes: dict[str, int]
    kinds: list[str]
    judge: Choice | None
    settled: AdjudicationTold | None


class DisagreementTold(Schema):
    comparison: int
    query: str
    candidate_a: str
    candidate_b: str
    differences: list[DifferenceTold]


class DisagreementPage(Schema):
    items: list[DisagreementTold]
    next: str | None
    between_people: int
    settled: int


class VoiceSaid(Schema):
    choice: Choice | None
    scores: list[float | None] | None
    reason: str
    note: str


class VoiceTold(Schema):
    rater: str
    review: int | None
    first: VoiceSaid | None
    final: VoiceSaid | None
    is_vote: bool


class QuestionTold(Schema):
    aspect: str
    voices: list[VoiceTold]
    difference: DifferenceTold | None


class CommentTold(Schema):
    id: int
    person: Person
    aspect: str | None
    text: str = Field(description="empty where it was withdrawn")
    is_withdrawn: bool
    created_at: datetime


class DisagreementWhole(Schema):
    comparison: int
    questions: list[QuestionTold]
    labels: list[LabelTold]
    comments: list[CommentTold]


class Settling(Sent):
    """``version``: that of the decision which stands now, 0 where there is none."""

    aspect: Key
    choice: Choice
    reason: Annotated[str, Field(max_length=2_000)] = ""
    version: Version = 0


class Explaining(Sent):
    review: Id
    aspect: Key
    reason: Reason | Literal[""] = ""
    note: Note = ""


class Commenting(Sent):
    text: Annotated[str, Field(min_length=1, max_length=10_000)]
    aspect: Annotated[str, Field(max_length=60)] = ""


class CommentMade(CommentTold):
    called: list[str]
    unknown: list[str] = Field(description="names that nobody who may see this has")


class Withdrawing(Sent):
    version: Version


class MentionTold(Schema):
    evaluation: str
    comparison: int
    is_seen: bool
    comment: CommentTold


class MentionPage(Schema):
    items: list[MentionTold]
    next: str | None
