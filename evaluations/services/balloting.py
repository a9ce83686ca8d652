"""Ballots, kept in the transaction that writes, changes or deletes the Verdicts they are made of."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any, Final, NamedTuple

from django.db.models import QuerySet
from django.utils import timezone

from evaluations.domain import ORDER_CODE, Choice, Shown, Stage, block_of, choice_bits, mark_bits, marked, packed
from evaluations.models import Aspect, Ballot, Call, Comparison, Import, Review, Verdict, of_test_calls
from evaluations.models.many import insert_many, update_many

# Columns that have no default of the database's own are named, empty ones too.
COLUMNS: Final = (
    *("created_at", "rater_id", "comparison_id", "shown", "sample", "call_id"),
    *("block", "first", "final", "inconsistent", "moment"),
)
# What tells ballots of one import apart.
KEY: Final = ("rater_id", "comparison_id", "sample", "shown", "block", "moment")
IMPORTED_COLUMNS: Final = ("created_at", *KEY, "first", "final", "inconsistent", "source_import_id")
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND: Final = timedelta(milliseconds=1)


class Source(NamedTuple):
    """What one ballot, of one block or several, is made of. ``moment``: of an import, whose rows have their own."""

    rater: int
    comparison: int
    shown: str
    sample: int
    call: int | None
    review: int | None
    source_import: int | None
    moment: int | None


@dataclass
class Given:
    """The choices of one source by the aspect's place, and where they were marked inconsistent."""

    first: dict[int, str] = field(default_factory=dict)
    final: dict[int, str] = field(default_factory=dict)
    inconsistent: set[int] = field(default_factory=set)
    moment: int = 0

    def rows(self, source: Source) -> list[Ballot]:
        first, final, marks = packed(self.first), packed(self.final), marked(self.inconsistent)
        return [
            Ballot(
                rater_id=source.rater,
                comparison_id=source.comparison,
                shown=ORDER_CODE[source.shown],
                sample=source.sample,
                call_id=source.call,
                review_id=source.review,
                source_import_id=source.source_import,
                block=block,
                first=first.get(block, 0),
                final=final.get(block, 0),
                inconsistent=marks.get(block, 0),
                moment=self.moment,
            )
            for block in sorted({*first, *final})
        ]


def day_of(moment: datetime | None) -> int:
    """Days since 1970-01-01 UTC; 0 where there is no moment."""
    return (moment - EPOCH).days if moment else 0


def moment_of(moment: datetime | None) -> int:
    """Milliseconds since 1970-01-01 UTC; 0 where there is no moment."""
    return (moment - EPOCH) // MILLISECOND if moment else 0


def places(evaluation_id: int) -> dict[int, int]:
    """Aspect id → its place."""
    return dict(Aspect.objects.filter(evaluation=evaluation_id).values_list("pk", "place"))


# ---- of a judge's calls: many at once, past the ORM


def call_rows(
    rater_id: int, comparison_id: int, shown: Shown, sample: int, call_id: int, choices: Mapping[int, Choice]
) -> list[tuple[Any, ...]]:
    """``choices``: by the aspect's place."""
    about = (rater_id, comparison_id, ORDER_CODE[shown], sample, call_id)
    return [(*about, block, first, 0, 0) for block, first in packed(choices).items()]


def write_calls(rows: Sequence[tuple[Any, ...]], now: datetime) -> None:
    insert_many(Ballot, COLUMNS, [(now, *row, moment_of(now)) for row in rows])


def keep_calls(calls: "QuerySet[Call]") -> None:
    """Of calls whose verdicts count from now on."""
    chosen = Verdict.all_rows.filter(call__in=calls).select_related("comparison").order_by("pk")
    by_evaluation: dict[int, list[Verdict]] = defaultdict(list)
    for one in chosen:
        by_evaluation[one.comparison.evaluation_id].append(one)
    for evaluation, verdicts in by_evaluation.items():
        Ballot.all_rows.bulk_create(made_of(verdicts, evaluation))


def forget_calls(call_ids: Collection[int]) -> None:
    Ballot.all_rows.filter(call__in=call_ids).delete()


# ---- of a person's review


def keep_review(review: Review, verdicts: Sequence[Verdict]) -> None:
    """What was just written of this review: first choices, final ones, or both."""
    if not verdicts:  # scores, which have rows of their own
        return
    if all(verdict.stage == Stage.FINAL for verdict in verdicts):
        for row in made_of(verdicts, review.comparison.evaluation_id):
            Ballot.all_rows.filter(review=review, block=row.block).update(final=row.final)
    else:
        Ballot.all_rows.bulk_create(made_of(verdicts, review.comparison.evaluation_id))


def forget_review(review: Review, stage: Stage | None = None) -> None:
    """One stage of it, or all."""
    rows = Ballot.all_rows.filter(review=review)
    if stage is Stage.FINAL:
        rows.update(final=0)
    else:
        rows.delete()


# ---- of an import


class Imported(NamedTuple):
    """A verdict that a file brings. ``at``: when it was given, or is written where the file does not say."""

    rater: int
    comparison: int
    aspect: int
    shown: str
    sample: int
    choice: str
    inconsistent: bool
    at: datetime


Key = tuple[int, ...]
# What a ballot of an import says: ``first`` and ``inconsistent``.
Bits = tuple[int, int]


def keep_imported(importing: Import, verdicts: Sequence[Imported]) -> None:
    """Verdicts of one import. What belongs to a ballot of an earlier part of the file joins it."""
    if not verdicts:
        return
    due = bits_of(importing, verdicts)
    earlier = earlier_of(importing, due)
    grown = [(pk, *joined(bits, due.pop(key))) for key, (pk, bits) in earlier.items() if key in due]
    update_many(Ballot, ("id", "first", "inconsistent"), grown)
    now = timezone.now()
    new = [(now, *key, first, 0, inconsistent, importing.pk) for key, (first, inconsistent) in due.items()]
    insert_many(Ballot, IMPORTED_COLUMNS, new)


def bits_of(importing: Import, verdicts: Iterable[Imported]) -> dict[Key, Bits]:
    place, latest = places(importing.evaluation_id), importing.created_at
    due: dict[Key, Bits] = {}
    for one in verdicts:
        at = place[one.aspect]
        moment = moment_of(min(one.at, latest))
        key = (one.rater, one.comparison, one.sample, ORDER_CODE[one.shown], block_of(at), moment)
        bits = choice_bits(at, one.choice), mark_bits(at) if one.inconsistent else 0
        due[key] = joined(due.get(key, (0, 0)), bits)
    return due


def earlier_of(importing: Import, due: Iterable[Key]) -> dict[Key, tuple[int, Bits]]:
    """Looked for by comparison alone: SQLite, asked for the import as well, would read all that it has brought."""
    rows = Ballot.all_rows.filter(comparison__in={key[1] for key in due})
    told = rows.values_list("source_import", "pk", "first", "inconsistent", *KEY)
    return {
        tuple(key): (pk, (first, marks)) for brought_by, pk, first, marks, *key in told if brought_by == importing.pk
    }


def joined(one: Bits, other: Bits) -> Bits:
    return one[0] | other[0], one[1] | other[1]


# ---- what the rows are to say


def made_of(verdicts: Iterable[Verdict], evaluation_id: int) -> list[Ballot]:
    """The ballots that these verdicts make together."""
    place = places(evaluation_id)
    given: dict[Source, Given] = defaultdict(Given)
    for one in verdicts:
        moment = moment_of(told_at(one))
        source = Source(
            *(one.rater_id, one.comparison_id, one.shown, one.sample),
            *(one.call_id, one.review_id, one.source_import_id, moment if one.source_import_id else None),
        )
        said = given[source]
        said.moment = moment
        about = said.final if one.stage == Stage.FINAL else said.first
        about[place[one.aspect_id]] = one.choice
        if one.inconsistent:
            said.inconsistent.add(place[one.aspect_id])
    return [row for source, said in given.items() for row in said.rows(source)]


def told_at(verdict: Verdict) -> datetime | None:
    """When the choice was made: of a review its first save, of an import what the file says, else when that came in.

    A row that does not say was made while its file was stored, which is later than the file came in.
    """
    if verdict.source_import:
        return min(verdict.created_at, verdict.source_import.created_at)
    return verdict.review.first_saved_at if verdict.review else verdict.created_at


def recount(comparisons: Iterable[Comparison]) -> list[Ballot]:
    """What the rows of these comparisons are to say, from their verdicts alone."""
    found = []
    for comparison in comparisons:
        said = Verdict.all_rows.filter(comparison=comparison).exclude(of_test_calls())
        said = said.select_related("review", "source_import").order_by("pk")
        found += made_of(said, comparison.evaluation_id)
    return found
