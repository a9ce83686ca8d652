"""API schemas of reviews."""

from datetime import datetime
from typing import Annotated, Literal

from ninja import Field, Schema

from evaluations.api.schemas import AspectKey, MessageOut, NoteText, RowId, StrictIn, VersionNumber
from evaluations.domain.choices import Choice
from evaluations.domain.reviews import DifferenceReason, ReviewState

ScoreValue = Annotated[float, Field(ge=-1e12, le=1e12)]

# ---- one comparison ------------------------------------------------------------------------


class ScorePairOut(Schema):
    """The scores of both responses; A is the first that you see."""

    a: float
    b: float


class SingleScoreOut(Schema):
    """The score of the only response."""

    score: float


class ReviewProgressOut(Schema):
    total: int
    done: int
    skipped: int


class NextComparisonOut(Schema):
    """Your next comparison; ``comparison`` is null if there is none."""

    comparison: int | None
    result_of_calibration: int | None = Field(description="a calibration whose result you must open first")
    progress: ReviewProgressOut


class AgreementOut(Schema):
    """How many of your first choices, one for each aspect, are those of somebody else."""

    agreed: int
    compared: int


class ReviewSummaryOut(Schema):
    """Your last final reviews, up to 200. ``judge_name`` is empty if no judge is revealed to you."""

    reviewed: int
    median_seconds: float | None
    judge_name: str
    judge: AgreementOut
    others: AgreementOut


class JudgeChoiceOut(Schema):
    choice: Choice | None = Field(description="null where there is one response, which has a score alone")
    inconsistent: bool
    orders: int
    rationale: str
    remark: str
    scores: ScorePairOut | SingleScoreOut | None


class SheetLineOut(Schema):
    """One aspect as you see it: A is the first response."""

    aspect: str
    name: str
    definition: str
    choices: list[Choice] = Field(description="choices offered; empty for scores")
    scale: list[float | None] | None = Field(description="lowest, highest and step of the scores, if it has a scale")
    first: Choice | ScorePairOut | SingleScoreOut | None
    final: Choice | ScorePairOut | SingleScoreOut | None
    note: str
    reason: str
    judge: JudgeChoiceOut | None = Field(description="null until it is revealed to you")


class SpanOut(Schema):
    id: int
    side: Literal["a", "b"]
    turn: int
    start: int
    end: int
    quote: str
    comment: str
    aspect: str | None


class DraftOut(Schema):
    fields: dict[str, str]
    kept_at: datetime
    number: int


class ReviewOut(Schema):
    """One comparison as you may see it now. Each step names the ``version`` that it was made from."""

    comparison: int
    rubric_version: int
    stage: Literal["choose", "confirm", "done"]
    state: ReviewState | None
    version: int
    comes_back: bool = Field(description="the judge answered after you saved: look again, or keep your choices")
    query: list[MessageOut]
    context: str | None
    reference: str | None
    a: list[MessageOut]
    b: list[MessageOut] | None = Field(description="null where there is one response, to be scored by itself")
    aspects: list[SheetLineOut]
    note: str
    judge_rationales: list[str]
    draft: DraftOut | None
    spans: list[SpanOut]


class StepIn(StrictIn):
    """``rubric_version``: pass the version that you saw, and a step after a rubric change is refused."""

    version: VersionNumber
    rubric_version: RowId | None = None
    active_ms: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0


class ScorePairIn(StrictIn):
    a: ScoreValue
    b: ScoreValue


class SingleScoreIn(StrictIn):
    score: ScoreValue


class FirstChoicesIn(StepIn):
    choices: dict[AspectKey, Choice | ScorePairIn | SingleScoreIn] = Field(
        examples=[{"helpfulness": "A", "clarity": "tie"}],
        description="by aspect; if it has a scale, a score for each response",
    )
    note: NoteText = ""


class FinalChoicesIn(FirstChoicesIn):
    notes: dict[AspectKey, NoteText] = Field(default_factory=dict)
    reasons: dict[AspectKey, DifferenceReason] = Field(default_factory=dict)


class SkipIn(StepIn):
    reason: Annotated[str, Field(max_length=200)] = ""


class DraftIn(StepIn):
    """Fields as the page names them, such as ``choice_clarity`` and ``note``."""

    fields: Annotated[dict[AspectKey, NoteText], Field(max_length=200)]
    number: VersionNumber = Field(0, description="of the last draft that you have seen")


class SpanIn(StrictIn):
    """Without a position the quote is searched for."""

    side: Literal["a", "b"]
    quote: Annotated[str, Field(max_length=20_000)] = ""
    turn: Annotated[int, Field(ge=0, le=32_767)] | None = None
    start: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None
    end: Annotated[int, Field(ge=0, le=2**31 - 1)] | None = None
    comment: NoteText = ""
    aspect: Annotated[str, Field(max_length=60)] = ""


class SpanPatch(StrictIn):
    comment: NoteText = ""
    aspect: Annotated[str, Field(max_length=60)] = ""


class SpanList(Schema):
    items: list[SpanOut]


class ResponseDiffOut(Schema):
    """The turns as HTML: ``del`` and ``ins`` mark the words that differ."""

    a: list[str]
    b: list[str]
    refusal: str


class NextComparisonQuery(Schema):
    besides: Annotated[
        list[RowId], Field(max_length=50, description="comparisons that are already open on your screen")
    ] = []
