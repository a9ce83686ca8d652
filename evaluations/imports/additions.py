"""The rows that one entry of a file adds."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from django.db import models

from evaluations.domain.files import ScoreRow, VerdictRow
from evaluations.domain.imports import ScoreScale
from evaluations.domain.judges import JudgeKind
from evaluations.domain.roles import RaterKind
from evaluations.domain.texts import content_sha256
from evaluations.formats.values import RowRefused
from evaluations.imports.lookup import EntryBatch, encode_query
from evaluations.imports.row_sketches import (
    ComparisonSketch,
    QuerySketch,
    ResponseSketch,
    RowSketch,
    StatementKey,
    describe_line,
)
from evaluations.models.comparisons import Candidate
from evaluations.models.judges import Judge, Rater
from evaluations.models.rubrics import Aspect
from evaluations.models.verdicts import Score, Verdict

MAX_JUDGE_NAME: Final = 120
NamedRow = TypeVar("NamedRow", Candidate, Rater, Aspect)


@dataclass(slots=True, eq=False)
class EntryAddition:
    """The rows that one entry adds. They are added to the batch at once, and withdrawn if the entry is bad."""

    batch: EntryBatch
    line: int
    new: list[RowSketch] = field(default_factory=list)
    comparisons: list[ComparisonSketch] = field(default_factory=list)  # of the entry, new or known
    responses: list[ResponseSketch] = field(default_factory=list)  # of the entry, new or known
    insertions: list[tuple[dict[Any, Any], Any]] = field(default_factory=list)
    # For the SeenIndex: the query, the key and the value.
    remembered: list[tuple[QuerySketch, tuple[Any, ...], str]] = field(default_factory=list)
    named: list[models.Model] = field(default_factory=list)
    imported_aspects: list[str] = field(default_factory=list)
    scales: list[tuple[str, ScoreScale]] = field(default_factory=list)
    swapped: bool = False  # whether it names its candidates in the other order

    def put(self, table: dict[Any, Any], key: Any, value: object) -> None:
        table[key] = value
        self.insertions.append((table, key))

    def is_new_statement(self, subject: ComparisonSketch | ResponseSketch, key: StatementKey, value: str) -> bool:
        """Whether a verdict, score or failure is new. Another value in its place is refused."""
        kind, what = ("verdict", "choice") if isinstance(subject, ComparisonSketch) else ("score", "value")
        key_in_file = (kind, *subject.key, *key)
        earlier = subject.statements.get(key) or self.batch.find_earlier(subject.query, key_in_file)
        if earlier is None:
            self.put(subject.statements, key, (value, self.line))
            self.remember(subject.query, key_in_file, value)
        elif earlier[0] != value:
            where = describe_line(earlier[1])
            raise RowRefused(f"the same {kind} {where} has the {what} {earlier[0]}, not {value}")
        return earlier is None

    def remember(self, query: QuerySketch, key: tuple[Any, ...], value: str = "") -> None:
        if self.batch.seen:
            self.remembered.append((query, key, value))

    def name(self, table: dict[Any, Any], name: Any, row: NamedRow) -> NamedRow:
        """Add a new candidate, rater or aspect under its name."""
        self.put(table, name, row)
        self.named.append(row)
        return row

    def accept(self) -> Sequence[RowSketch]:
        batch = self.batch
        batch.named += self.named
        batch.context.imported_aspects.update(self.imported_aspects)
        for aspect, scale in self.scales:
            known_scale = batch.context.scales.get(aspect, scale)
            batch.context.scales[aspect] = known_scale.joined(scale)
        batch.swapped += self.swapped
        if batch.seen:
            for sketch in self.new:
                if type(sketch) is QuerySketch:
                    sketch.owner = batch.seen.name(sketch.key, encode_query(sketch), self.line)
            for query, key, value in self.remembered:
                batch.seen.remember(query.owner, key, value, self.line)
        return self.new

    def withdraw(self) -> None:
        for table, key in reversed(self.insertions):
            del table[key]


def resolve_rater(added: EntryAddition, row: VerdictRow | ScoreRow) -> Rater:
    context = added.batch.context
    rater = context.raters.get((row.rater_kind, row.rater))
    if rater is not None:
        refuse_active_rater(rater)
        return rater
    rater = Rater(evaluation=context.evaluation, kind=row.rater_kind, name=row.rater)
    if row.rater_kind == RaterKind.JUDGE:
        rater.judge = build_imported_judge(added, row.rater)
    return added.name(context.raters, (str(row.rater_kind), row.rater), rater)


def refuse_active_rater(rater: Rater) -> None:
    """Refuse imported verdicts under the name of a reviewer or judge who works in this evaluation."""
    if rater.user_id:
        raise RowRefused(f"“{rater.name}” is a user here. Rename the imported reviewer")
    if rater.judge is not None and rater.judge.kind != JudgeKind.IMPORTED:
        raise RowRefused(f"“{rater.name}” is a judge of this evaluation. Rename the imported judge")


def build_imported_judge(added: EntryAddition, name: str) -> Judge:
    context = added.batch.context
    if len(name) > MAX_JUDGE_NAME:
        raise RowRefused(f"the judge name has {len(name)} characters; the limit is {MAX_JUDGE_NAME}")
    if name in context.judge_names:
        raise RowRefused(f"“{name}” is a judge of this evaluation. Rename the imported judge")
    return Judge(
        evaluation=context.evaluation,
        name=name,
        kind=JudgeKind.IMPORTED,
        fingerprint=content_sha256([JudgeKind.IMPORTED, name]),
    )


def resolve_named_aspect(added: EntryAddition, key: str) -> Aspect:
    context = added.batch.context
    aspect = context.aspects.get(key)
    if aspect is None:
        name = key.replace("_", " ").capitalize()
        aspect = added.name(context.aspects, key, Aspect(evaluation=context.evaluation, key=key, name=name))
    return aspect


def refuse_verdicts_and_scores(
    added: EntryAddition, rater: Rater, aspect: Aspect, other: type[Verdict] | type[Score]
) -> None:
    """Refuse both choices and scores of a rater on one aspect, because they would vote twice."""
    if not (rater.pk and aspect.pk):
        return
    context = added.batch.context
    if (rater.pk, aspect.pk) not in context.rated_otherwise:
        statements = other.all_rows.filter(context.visible, rater=rater, aspect=aspect, source_import__isnull=False)
        context.rated_otherwise[rater.pk, aspect.pk] = statements.exists()
    if context.rated_otherwise[rater.pk, aspect.pk]:
        there, here = ("verdicts", "scores") if other is Verdict else ("scores", "verdicts")
        raise RowRefused(
            f"“{rater.name}” already has {there} on {aspect.key}, which would count twice with these {here}. "
            f"Rename the aspect of the {here}"
        )
