"""What one entry of a file adds, and who and what it means by the names that it uses."""

from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from django.db import models

from evaluations.domain import JudgeKind, RaterKind, ScoreRow, VerdictRow, content_sha256
from evaluations.formats.values import RowRefused
from evaluations.models import Aspect, Candidate, Comparison, Judge, Rater, Response, Score, Verdict
from evaluations.services.importing.knowing import Batch, Found, Key
from evaluations.services.importing.scaling import Scale

MAX_JUDGE_NAME: Final = 120
AnyRow = TypeVar("AnyRow", Candidate, Rater, Aspect)


@dataclass
class Addition:
    """What one entry adds, kept apart until the whole of it has proved good."""

    batch: Batch
    line: int
    new: dict[Key, Found] = field(default_factory=dict)
    comparisons: list[Comparison] = field(default_factory=list)
    responses: list[Response] = field(default_factory=list)
    named: list[tuple[dict[Any, Any], Any, models.Model]] = field(default_factory=list)
    imported_aspects: set[str] = field(default_factory=set)
    scales: list[tuple[str, Scale]] = field(default_factory=list)
    turned: bool = False

    def find(self, key: Key) -> Found | None:
        return self.new.get(key) or self.batch.find(key)

    def put(self, key: Key, row: models.Model, word: str = "") -> None:
        self.new[key] = Found(row, word, self.line)

    def name(self, table: dict[Any, Any], name: Any, row: AnyRow) -> AnyRow:
        """A candidate, rater or aspect that this entry brings; the same one when it is named again."""
        for _, known, earlier in self.named:
            if known == name and type(earlier) is type(row):
                return earlier
        self.named.append((table, name, row))
        return row

    def keep(self) -> None:
        for table, name, row in self.named:
            table[name] = row
            self.batch.new[type(row).__name__, str(name)] = row
        for key, found in self.new.items():
            self.batch.known[key] = found
            assert found.row is not None
            self.batch.new[key] = found.row
            if self.batch.seen:
                self.batch.seen.remember(key, found.word, self.line)
        for comparison in self.comparisons:
            self.batch.comparisons.setdefault(comparison.query.key, []).append(comparison)
        for response in self.responses:
            self.batch.responses.setdefault((response.query.key, response.candidate.name), []).append(response)
        self.batch.around.imported_aspects |= self.imported_aspects
        for aspect, scale in self.scales:
            known_scale = self.batch.around.scales.get(aspect, scale)
            self.batch.around.scales[aspect] = known_scale.joined(scale)
        self.batch.turned += self.turned
        self.batch.stored += bool(self.new)
        self.batch.unchanged += not self.new


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
