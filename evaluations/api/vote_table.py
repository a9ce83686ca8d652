"""The votes on one comparison as the API shows them."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from ninja import Field, Schema

from evaluations.api.schemas import UserOut
from evaluations.api.serializers import serialize_row, serialize_user
from evaluations.domain.choices import Choice, LabelSource
from evaluations.domain.roles import RaterKind
from evaluations.models.verdicts import Adjudication
from evaluations.verdicts.vote_table import VoteRow, VoteTable


class ShownOrderOut(Schema):
    shown: str
    choice: Choice


class VoteCellOut(Schema):
    aspect: str
    choices: list[Choice]
    first: Choice | None = Field(description="the reviewer's first choice, if the final one differs")
    inconsistent: bool
    orders: list[ShownOrderOut]
    note: str
    weighted: float | None


class JudgeAnswerOut(Schema):
    shown: str
    sample: int
    state: str
    rationale: str
    error: str
    call: int | None


class VoteRowOut(Schema):
    name: str
    kind: RaterKind
    is_baseline: bool
    cells: list[VoteCellOut]
    askings: list[JudgeAnswerOut]
    notes: list[str]


class LabelOut(Schema):
    aspect: str
    choice: Choice | None = Field(description="null if the votes are split")
    source: LabelSource
    votes: dict[str, int]
    by: str


class AdjudicationOut(Schema):
    id: int
    aspect: str
    choice: Choice
    category: str = Field(description="the reason chosen from the list, or empty")
    reason: str = Field(description="a note, or empty")
    by: UserOut
    version: int
    changed_at: datetime
    batch: UUID | None = Field(description="version for undoing it; null once it was changed")
    in_bulk: bool = Field(description="accepted as the majority in bulk")


class VoteTableOut(Schema):
    aspects: list[str]
    raters: list[VoteRowOut]
    labels: list[LabelOut]
    adjudications: list[AdjudicationOut]


def serialize_vote_table(table: VoteTable, decided: Sequence[Adjudication]) -> VoteTableOut:
    labels = [
        serialize_row(
            LabelOut,
            label,
            aspect=aspect.key,
            choice=label.choice or None,
            votes={str(choice): number for choice, number in label.votes.items()},
        )
        for aspect, label in zip(table.aspects, table.labels, strict=True)
        if label
    ]
    return VoteTableOut(
        aspects=[aspect.key for aspect in table.aspects],
        raters=[serialize_vote_row(row, [aspect.key for aspect in table.aspects]) for row in table.rows],
        labels=labels,
        adjudications=[serialize_adjudication(adjudication) for adjudication in decided],
    )


def serialize_vote_row(row: VoteRow, aspects: Sequence[str]) -> VoteRowOut:
    cells = [
        serialize_row(
            VoteCellOut,
            cell,
            aspect=aspect,
            orders=[ShownOrderOut(shown=shown, choice=choice) for shown, choice in cell.orders],
        )
        for aspect, cell in zip(aspects, row.cells, strict=True)
        if cell
    ]
    return serialize_row(
        VoteRowOut,
        row,
        is_baseline=bool(row.judge and row.judge.is_baseline),
        cells=cells,
        askings=[serialize_row(JudgeAnswerOut, answer, call=answer.call_id) for answer in row.answers],
    )


def serialize_adjudication(row: Adjudication) -> AdjudicationOut:
    return serialize_row(AdjudicationOut, row, aspect=row.aspect.key, by=serialize_user(row.user))
