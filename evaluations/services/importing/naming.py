"""What one entry of a file adds, and who and what it means by the names that it uses."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from django.db import models

from evaluations.domain import JudgeKind, RaterKind, ScoreRow, VerdictRow, content_sha256
from evaluations.formats.values import RowRefused
from evaluations.models import Aspect, Candidate, Judge, Rater, Score, Verdict
from evaluations.services.importing.knowing import Batch, query_word
from evaluations.services.importing.scaling import Scale
from evaluations.services.importing.sketching import (
    ComparisonSketch,
    QuerySketch,
    ResponseSketch,
    Said,
    SaidKey,
    Sketch,
)

MAX_JUDGE_NAME: Final = 120
AnyRow = TypeVar("AnyRow", Candidate, Rater, Aspect)
# Of what something is said: its kind, and the names and sums that tell it from all else about its query.
Subject = tuple[str, ...]


@dataclass(slots=True, eq=False)
class Addition:
    """What one entry adds. It stands among what is known at once, and is taken out where the entry proves bad."""

    batch: Batch
    line: int
    new: list[Sketch] = field(default_factory=list)
    brought: list[ComparisonSketch] = field(default_factory=list)  # the comparisons that stand in it, new or known
    answered: list[ResponseSketch] = field(default_factory=list)  # the responses that stand in it, new or known
    put_in: list[tuple[dict[Any, Any], Any]] = field(default_factory=list)
    # What `Seen` is to remember: under which query, the key and the word.
    remembered: list[tuple[QuerySketch, tuple[Any, ...], str]] = field(default_factory=list)
    named: list[models.Model] = field(default_factory=list)
    imported_aspects: list[str] = field(default_factory=list)
    scales: list[tuple[str, Scale]] = field(default_factory=list)
    turned: bool = False  # it names its candidates in the other order; where it names none there is no order

    def put(self, table: dict[Any, Any], key: Any, value: object) -> None:
        table[key] = value
        self.put_in.append((table, key))

    def said(self, query: QuerySketch, subject: Subject, said: dict[SaidKey, Said], key: SaidKey) -> Said | None:
        """What stands already where something is to be said: stored, or in this file."""
        if key in said:
            return said[key]
        return self.batch.before(query, (*subject, *key))

    def say(self, query: QuerySketch, subject: Subject, said: dict[SaidKey, Said], key: SaidKey, word: str) -> None:
        self.put(said, key, (word, self.line))
        self.remember(query, (*subject, *key), word)

    def remember(self, query: QuerySketch, key: tuple[Any, ...], word: str = "") -> None:
        if self.batch.seen:
            self.remembered.append((query, key, word))

    def name(self, table: dict[Any, Any], name: Any, row: AnyRow) -> AnyRow:
        """A candidate, rater or aspect that this entry brings; the same one when it is named again."""
        self.put(table, name, row)
        self.named.append(row)
        return row

    def keep(self) -> Sequence[Sketch]:
        batch = self.batch
        batch.named += self.named
        batch.around.imported_aspects.update(self.imported_aspects)
        for aspect, scale in self.scales:
            known_scale = batch.around.scales.get(aspect, scale)
            batch.around.scales[aspect] = known_scale.joined(scale)
        batch.turned += self.turned
        if batch.seen:
            for sketch in self.new:
                if type(sketch) is QuerySketch:
                    sketch.owner = batch.seen.name(sketch.key, query_word(sketch), self.line)
            for query, key, word in self.remembered:
                batch.seen.remember(query.owner, key, word, self.line)
        return self.new

    def take_out(self) -> None:
        for table, key in reversed(self.put_in):
            del table[key]


def rater_meant(added: Addition, row: VerdictRow | ScoreRow) -> Rater:
    around = added.batch.around
    rater = around.raters.get((row.rater_kind, row.rater))
    if rater is not None:
        refuse_own_rater(rater)
        return rater
    rater = Rater(evaluation=around.evaluation, kind=row.rater_kind, name=row.rater)
    if row.rater_kind == RaterKind.JUDGE:
        rater.judge = imported_judge(added, row.rater)
    return added.name(around.raters, (str(row.rater_kind), row.rater), rater)


def refuse_own_rater(rater: Rater) -> None:
    """Nobody else's verdicts are put into the mouth of a person or judge who works here."""
    if rater.user_id:
        raise RowRefused(f"“{rater.name}” has an account here: give the imported person another name")
    if rater.judge is not None and rater.judge.kind != JudgeKind.IMPORTED:
        raise RowRefused(f"“{rater.name}” is a judge that runs here: give the imported judge another name")


def imported_judge(added: Addition, name: str) -> Judge:
    around = added.batch.around
    if len(name) > MAX_JUDGE_NAME:
        raise RowRefused(f"a judge's name has {len(name)} characters; at most {MAX_JUDGE_NAME} can be kept")
    if name in around.judge_names:
        raise RowRefused(f"“{name}” is a judge that runs here: give the imported judge another name")
    return Judge(
        evaluation=around.evaluation,
        name=name,
        kind=JudgeKind.IMPORTED,
        fingerprint=content_sha256([JudgeKind.IMPORTED, name]),
    )


def named_aspect(added: Addition, key: str) -> Aspect:
    around = added.batch.around
    aspect = around.aspects.get(key)
    if aspect is None:
        name = key.replace("_", " ").capitalize()
        aspect = added.name(around.aspects, key, Aspect(evaluation=around.evaluation, key=key, name=name))
    return aspect


def refuse_second_way(added: Addition, rater: Rater, aspect: Aspect, other: type[Verdict] | type[Score]) -> None:
    """Who gave choices on an aspect gives it no scores as well, nor the other way round: they would vote twice."""
    if not (rater.pk and aspect.pk):
        return
    around = added.batch.around
    if (rater.pk, aspect.pk) not in around.spoken:
        given = other.all_rows.filter(around.visible, rater=rater, aspect=aspect, source_import__isnull=False)
        around.spoken[rater.pk, aspect.pk] = given.exists()
    if around.spoken[rater.pk, aspect.pk]:
        there, here = ("verdicts", "scores") if other is Verdict else ("scores", "verdicts")
        raise RowRefused(
            f"{there} of “{rater.name}” on {aspect.key} are here already, and would count beside these {here}: "
            f"give the aspect of the {here} another name"
        )
