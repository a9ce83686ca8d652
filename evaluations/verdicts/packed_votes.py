"""The packed form of verdicts, kept in the transaction that changes them."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from django.db.models import QuerySet
from django.utils import timezone

from evaluations.domain.choices import Choice, ShownOrder, Stage
from evaluations.domain.groups import group_values
from evaluations.domain.packed_votes import ORDER_CODES, block_of_slot, pack_choice, pack_choices, pack_mark, pack_marks
from evaluations.models.bulk import insert_many, insert_objects, update_many
from evaluations.models.imports import Import
from evaluations.models.rubrics import Aspect
from evaluations.models.runs import Call
from evaluations.models.verdicts import PackedVotes, Review, Verdict

# Columns that have no default of the database's own are named, empty ones too.
PACKED_COLUMNS: Final = (
    *("created_at", "rater_id", "comparison_id", "shown", "sample", "call_id"),
    *("aspect_block", "first_choices", "final_choices", "inconsistent_aspects", "decided_at_ms"),
)
# What identifies a row of one import.
PACKED_KEY_COLUMNS: Final = ("rater_id", "comparison_id", "sample", "shown", "aspect_block", "decided_at_ms")
IMPORTED_PACKED_COLUMNS: Final = (
    *("created_at", *PACKED_KEY_COLUMNS),
    *("first_choices", "final_choices", "inconsistent_aspects", "source_import_id"),
)
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MILLISECOND: Final = timedelta(milliseconds=1)


class VoteSource(NamedTuple):
    """The choices that a rater made together, in one block or several. ``decided_at_ms`` is only set for imports."""

    rater: int
    comparison: int
    shown: str
    sample: int
    call: int | None
    review: int | None
    source_import: int | None
    decided_at_ms: int | None


@dataclass
class SourceChoices:
    """The choices of one source by the aspect's place, and where they were marked inconsistent."""

    first: dict[int, str] = field(default_factory=dict)
    final: dict[int, str] = field(default_factory=dict)
    inconsistent: set[int] = field(default_factory=set)
    decided_at_ms: int = 0

    def rows(self, source: VoteSource) -> list[PackedVotes]:
        first, final, marks = pack_choices(self.first), pack_choices(self.final), pack_marks(self.inconsistent)
        return [
            PackedVotes(
                rater_id=source.rater,
                comparison_id=source.comparison,
                shown=ORDER_CODES[source.shown],
                sample=source.sample,
                call_id=source.call,
                review_id=source.review,
                source_import_id=source.source_import,
                aspect_block=block,
                first_choices=first.get(block, 0),
                final_choices=final.get(block, 0),
                inconsistent_aspects=marks.get(block, 0),
                decided_at_ms=self.decided_at_ms,
            )
            for block in sorted({*first, *final})
        ]


def count_days_since_epoch(moment: datetime | None) -> int:
    """Days since 1970-01-01 UTC; 0 where there is no moment."""
    return (moment - EPOCH).days if moment else 0


def count_milliseconds_since_epoch(moment: datetime | None) -> int:
    """Milliseconds since 1970-01-01 UTC; 0 where there is no moment."""
    return (moment - EPOCH) // MILLISECOND if moment else 0


def get_aspect_positions(evaluation_id: int) -> dict[int, int]:
    return dict(Aspect.objects.filter(evaluation=evaluation_id).values_list("pk", "slot"))


# ---- of a judge's calls: many at once, past the ORM


def build_packed_call_rows(
    rater_id: int, comparison_id: int, shown: ShownOrder, sample: int, call_id: int, choices: Mapping[int, Choice]
) -> list[tuple[object, ...]]:
    """``choices``: by the aspect's place."""
    about = (rater_id, comparison_id, ORDER_CODES[shown], sample, call_id)
    return [(*about, block, first, 0, 0) for block, first in pack_choices(choices).items()]


def insert_packed_calls(rows: Sequence[tuple[object, ...]], now: datetime) -> None:
    insert_many(PackedVotes, PACKED_COLUMNS, [(now, *row, count_milliseconds_since_epoch(now)) for row in rows])


def pack_call_verdicts(calls: "QuerySet[Call]") -> None:
    """Pack the verdicts of calls that count from now on."""
    chosen = Verdict.all_rows.filter(call__in=calls).select_related("comparison").order_by("pk")
    by_evaluation = group_values((verdict.comparison.evaluation_id, verdict) for verdict in chosen)
    for evaluation, verdicts in by_evaluation.items():
        PackedVotes.all_rows.bulk_create(pack_verdicts(verdicts, get_aspect_positions(evaluation)))


def delete_packed_calls(call_ids: Collection[int]) -> None:
    PackedVotes.all_rows.filter(call__in=call_ids).delete()


# ---- of a person's review


def pack_review_verdicts(review: Review, verdicts: Sequence[Verdict]) -> None:
    """Pack the choices just written for a review: first, final, or both."""
    if not verdicts:  # scores, which have rows of their own
        return
    packed = pack_verdicts(verdicts, {verdict.aspect_id: verdict.aspect.slot for verdict in verdicts})
    if all(verdict.stage == Stage.FINAL for verdict in verdicts):
        for row in packed:
            PackedVotes.all_rows.filter(review=review, aspect_block=row.aspect_block).update(
                final_choices=row.final_choices
            )
    else:
        insert_objects(packed)


def delete_packed_review(review: Review, stage: Stage | None = None) -> None:
    rows = PackedVotes.all_rows.filter(review=review)
    if stage is Stage.FINAL:
        rows.update(final_choices=0)
    else:
        rows.delete()


# ---- of an import


class ImportedVerdict(NamedTuple):
    """A verdict that a file brings. ``at``: when it was given, or is written where the file does not say."""

    rater: int
    comparison: int
    aspect: int
    shown: str
    sample: int
    choice: str
    inconsistent: bool
    at: datetime


PackedKey = tuple[int, ...]
# The first choices and the inconsistent aspects of an imported row.
PackedBits = tuple[int, int]


def pack_imported_verdicts(importing: Import, verdicts: Sequence[ImportedVerdict]) -> None:
    """Pack the verdicts of one import; add to the rows of earlier parts of the file where they belong there."""
    if not verdicts:
        return
    due = collect_packed_bits(importing, verdicts)
    earlier = find_packed_rows(importing, due)
    grown = [(pk, *merge_packed_bits(bits, due.pop(key))) for key, (pk, bits) in earlier.items() if key in due]
    update_many(PackedVotes, ("id", "first_choices", "inconsistent_aspects"), grown)
    now = timezone.now()
    new = [(now, *key, first, 0, inconsistent, importing.pk) for key, (first, inconsistent) in due.items()]
    insert_many(PackedVotes, IMPORTED_PACKED_COLUMNS, new)


def collect_packed_bits(importing: Import, verdicts: Iterable[ImportedVerdict]) -> dict[PackedKey, PackedBits]:
    place, latest = get_aspect_positions(importing.evaluation_id), importing.created_at
    due: dict[PackedKey, PackedBits] = {}
    for verdict in verdicts:
        at = place[verdict.aspect]
        decided_at_ms = count_milliseconds_since_epoch(min(verdict.at, latest))
        source = (verdict.rater, verdict.comparison, verdict.sample, ORDER_CODES[verdict.shown])
        key = (*source, block_of_slot(at), decided_at_ms)
        bits = pack_choice(at, verdict.choice), pack_mark(at) if verdict.inconsistent else 0
        due[key] = merge_packed_bits(due.get(key, (0, 0)), bits)
    return due


def find_packed_rows(importing: Import, due: Iterable[PackedKey]) -> dict[PackedKey, tuple[int, PackedBits]]:
    """Looked for by comparison alone: SQLite, asked for the import as well, would read all that it has brought."""
    rows = PackedVotes.all_rows.filter(comparison__in={key[1] for key in due})
    columns = rows.values_list("source_import", "pk", "first_choices", "inconsistent_aspects", *PACKED_KEY_COLUMNS)
    return {
        tuple(key): (pk, (first, marks)) for brought_by, pk, first, marks, *key in columns if brought_by == importing.pk
    }


def merge_packed_bits(bits: PackedBits, others: PackedBits) -> PackedBits:
    return bits[0] | others[0], bits[1] | others[1]


# ---- what the rows are to say


def pack_verdicts(verdicts: Iterable[Verdict], place: Mapping[int, int]) -> list[PackedVotes]:
    """``place``: by aspect id."""
    sources: dict[VoteSource, SourceChoices] = defaultdict(SourceChoices)
    for row in verdicts:
        decided_at_ms = count_milliseconds_since_epoch(get_verdict_time(row))
        source = VoteSource(
            *(row.rater_id, row.comparison_id, row.shown, row.sample),
            *(row.call_id, row.review_id, row.source_import_id, decided_at_ms if row.source_import_id else None),
        )
        choices = sources[source]
        choices.decided_at_ms = decided_at_ms
        about = choices.final if row.stage == Stage.FINAL else choices.first
        about[place[row.aspect_id]] = row.choice
        if row.inconsistent:
            choices.inconsistent.add(place[row.aspect_id])
    return [row for source, choices in sources.items() for row in choices.rows(source)]


def get_verdict_time(verdict: Verdict) -> datetime | None:
    """When the choice was made: of a review its first save, of an import what the file says, else when that came in.

    A row that does not say was made while its file was stored, which is later than the file came in.
    """
    if verdict.source_import:
        return min(verdict.created_at, verdict.source_import.created_at)
    return verdict.review.first_saved_at if verdict.review else verdict.created_at
