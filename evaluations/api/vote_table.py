"""The votes on one comparison as the API shows them."""

from collections.abc import Sequence
from datetime import datetime

from ninja import Field, Schema

from evaluations.api.schemas import PersonOut
from evaluations.api.serializers import serialize_person
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
    first: Choice | None = Field(description="a person's own, where the final one differs")
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
    choice: Choice | None = Field(description="null where the votes are split")
    source: LabelSource
    votes: dict[str, int]
    by: str


class AdjudicationOut(Schema):
    id: int
    aspect: str
    choice: Choice
    reason: str
    by: PersonOut
    version: int
    changed_at: datetime


class VoteTableOut(Schema):
    aspects: list[str]
    raters: list[VoteRowOut]
    labels: list[LabelOut]
    adjudications: list[AdjudicationOut]


def serialize_vote_table(table: VoteTable, decided: Sequence[Adjudication]) -> VoteTableOut:
    labels = [
        LabelOut(
            aspect=aspect.key,
            choice=label.choice or None,
            source=label.source,
            votes={str(choice): number for choice, number in label.votes.items()},
            by=label.by,
        )
        for aspect, label in zip(table.aspects, table.labels, strict=True)
        if label
    ]
    return VoteTableOut(
        aspects=[aspect.key for aspect in table.aspects],
        raters=[serialize_vote_row(row, [aspect.key for aspect in table.aspects]) for row in table.rows],
        labels=labels,
        adjudications=[serialize_adjudication(one) for one in decided],
    )


def serialize_vote_row(row: VoteRow, aspects: Sequence[str]) -> VoteRowOut:
    cells = [
        VoteCellOut(
            aspect=aspect,
            choices=list(cell.choices),
            first=cell.first,
            inconsistent=cell.inconsistent,
            orders=[ShownOrderOut(shown=shown, choice=choice) for shown, choice in cell.orders],
            note=cell.note,
            weighted=cell.weighted,
        )
        for aspect, cell in zip(aspects, row.cells, strict=True)
        if cell
    ]
    askings = [
        JudgeAnswerOut(
            shown=one.shown,
            sample=one.sample,
            state=one.state,
            rationale=one.rationale,
            error=one.error,
            call=one.call_id,
        )
        for one in row.askings
    ]
    return VoteRowOut(
        name=row.name,
        kind=RaterKind(row.kind),
        is_baseline=bool(row.judge and row.judge.is_baseline),
        cells=cells,
        askings=askings,
        notes=list(row.notes),
    )


def serialize_adjudication(one: Adjudication) -> AdjudicationOut:
    return AdjudicationOut(
        id=one.pk,
        aspect=one.aspect.key,
        choice=Choice(one.choice),
        reason=one.reason,
        by=serialize_person(one.user),
        version=one.version,
        changed_at=one.changed_at,
    )
