"""API schemas of disagreements, comments, mentions."""

from datetime import datetime
from typing import Annotated, Literal, TypeAlias
from uuid import UUID

from ninja import Field, Schema

from evaluations.api.schemas import AspectKey, NoteText, RowId, StrictIn, UserOut, VersionNumber
from evaluations.api.vote_table import AdjudicationOut, LabelOut
from evaluations.disagreements.services import MAX_REASON_LENGTH
from evaluations.domain.choices import Choice
from evaluations.domain.reviews import DifferenceReason

ResolutionReason: TypeAlias = Literal[
    DifferenceReason.MISSED_ERROR,
    DifferenceReason.IGNORED_INSTRUCTION,
    DifferenceReason.RUBRIC_UNCLEAR,
    DifferenceReason.LENGTH_OR_FORMAT,
    DifferenceReason.POSITION,
    DifferenceReason.QUERY_AMBIGUOUS,
    DifferenceReason.BOTH_ACCEPTABLE,
]

# ---- disagreements -------------------------------------------------------------------------


class DisagreementAspectOut(Schema):
    aspect: str
    votes: dict[str, int]
    kinds: list[str]
    judge: Choice | None
    resolution: AdjudicationOut | None


class DisagreementOut(Schema):
    """``candidate_a`` and ``candidate_b`` are null while you may not see them."""

    comparison: int
    query: str
    candidate_a: str | None
    candidate_b: str | None
    differences: list[DisagreementAspectOut]


class DisagreementPage(Schema):
    items: list[DisagreementOut]
    next: str | None
    between_reviewers: int = Field(description="comparisons with an open disagreement among reviewers")
    resolved: int


class StageChoiceOut(Schema):
    choice: Choice | None
    scores: list[float | None] | None
    reason: str
    note: str


class ReviewerChoiceOut(Schema):
    rater: str
    review: int | None
    first: StageChoiceOut | None
    final: StageChoiceOut | None
    is_vote: bool


class AspectQuestionOut(Schema):
    aspect: str
    reviewer_choices: list[ReviewerChoiceOut]
    difference: DisagreementAspectOut | None


class CommentOut(Schema):
    id: int
    author: UserOut
    aspect: str | None
    text: str = Field(description="empty if deleted")
    is_withdrawn: bool
    created_at: datetime


class DisagreementDetailOut(Schema):
    comparison: int
    questions: list[AspectQuestionOut]
    labels: list[LabelOut]
    comments: list[CommentOut]


class ResolveIn(StrictIn):
    """``version``: of the current resolution, 0 if there is none."""

    aspect: AspectKey
    choice: Choice
    category: ResolutionReason | Literal[""] = ""
    reason: Annotated[str, Field(max_length=MAX_REASON_LENGTH)] = ""
    version: VersionNumber = 0


class BulkResultOut(Schema):
    batch: UUID = Field(description="for undoing all of it")
    aspects: int = Field(description="how many were changed")
    remaining: int = Field(description="how many are left; repeat the request to continue")


class UndoIn(StrictIn):
    batch: UUID


class ExplainIn(StrictIn):
    review: RowId
    aspect: AspectKey
    reason: DifferenceReason | Literal[""] = ""
    note: NoteText = ""


class CommentIn(StrictIn):
    text: Annotated[str, Field(min_length=1, max_length=10_000)]
    aspect: Annotated[str, Field(max_length=60)] = ""


class PostedCommentOut(CommentOut):
    mentioned: list[str]
    unknown: list[str] = Field(description="mentioned names that can’t see this comparison")


class WithdrawIn(StrictIn):
    version: VersionNumber


class MentionOut(Schema):
    evaluation: str
    comparison: int
    is_seen: bool
    comment: CommentOut


class MentionPage(Schema):
    items: list[MentionOut]
    next: str | None
