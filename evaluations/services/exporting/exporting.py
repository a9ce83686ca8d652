"""A dataset file, written once: sent while it is written, kept, and recorded with rows and checksum."""

import hashlib
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Final, TypeVar, cast

from django.conf import settings
from django.core.files import File
from django.core.files.base import ContentFile
from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.db.backends.utils import CursorWrapper
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from evaluations.domain import ExportState, InputRefused
from evaluations.formats.exported import LabelledRow
from evaluations.formats.leaving import Needs, Row, Rows, Tally
from evaluations.formats.writing import LEAVING
from evaluations.models import Comparison, Evaluation, Export, User
from evaluations.models.filtering import narrowed_to
from evaluations.services import pacing
from evaluations.services.archiving.backing_up import VERSION as BACKUP_VERSION
from evaluations.services.archiving.backing_up import members, refuse_busy
from evaluations.services.archiving.tables import TABLES
from evaluations.services.exporting import casting, composing, labelled
from evaluations.services.exporting.agreeing import agreed
from evaluations.services.exporting.aliasing import aliases_of
from evaluations.services.exporting.listing import verdict_rows
from evaluations.services.exporting.listing_scores import score_rows
from evaluations.services.exporting.manifesting import about, counts_of, facts_of, foundation
from evaluations.services.exporting.wanting import (
    ANYTHING,
    Wanted,
    filters_of,
    format_of,
    options_of,
    settled,
    wanted_of,
)
from evaluations.services.recording import record
from evaluations.services.reporting.narrowing import comparisons_where
from evaluations.services.reporting.splitting import in_part, parting

Passing = TypeVar("Passing")
BLOCK_BYTES: Final = 64 * 1024
HELD_SECONDS: Final = 0.25
BEAT_SECONDS: Final = 1.0
GOES_ON: Final = "UPDATE evaluations_export SET seen_at = CURRENT_TIMESTAMP, reached = %s WHERE id = %s AND state = %s"
BROKEN_OFF: Final = "It broke off before the last byte: the download was stopped, or the disk is full."
SAID: Final[Mapping[Needs, Callable[["QuerySet[Comparison]", casting.Cast, Tally], Iterator[tuple[str, Row]]]]] = {
    Needs.VERDICTS: verdict_rows,
    Needs.SCORES: score_rows,
}


class Handed(Exception):
    """This process is told to stop: another begins the export again."""


class Stopped(Exception):
    """Somebody cancelled the export, or it was given up for dead: write no more of it."""


@transaction.atomic
def begin(
    evaluation: Evaluation,
    *,
    written_as: str,
    user: User | None,
    wanted: Wanted = ANYTHING,
    in_background: bool = False,
) -> Export:
    """The record of an export, unfinished until its last byte was written."""
    leaving = format_of(written_as)
    wanted = settled(evaluation, leaving, wanted)
    assert wanted.policy is not None
    if leaving.is_whole:
        refuse_busy(evaluation)
    chosen = narrowed(evaluation, Comparison.objects.filter(evaluation=evaluation), wanted)
    export = Export.objects.create(
        evaluation=evaluation,
        user=user,
        format=written_as,
        ending=leaving.ending,
        policy=wanted.policy,
        filters=filters_of(wanted),
        options=options_of(wanted),
        state=ExportState.WAITING if in_background else ExportState.UNFINISHED,
        in_background=in_background,
        expected=chosen.count() if in_background and not leaving.is_whole else None,
        seen_at=None if in_background else timezone.now(),
    )
    told = {"format": written_as, "policy": export.policy, "filters": export.filters, "options": export.options}
    record("began", export, user=user, evaluation=evaluation, after=told)
    return export


def is_long(evaluation: Evaluation, written_as: str, comparisons: "QuerySet[Comparison]", wanted: Wanted) -> bool:
    """Whether a worker writes it, and nobody waits for it."""
    if format_of(written_as).is_whole:
        return True
    return narrowed(evaluation, comparisons, wanted).count() > settings.EXPORT_SENT_ROWS


def write(export: Export, comparisons: "QuerySet[Comparison]") -> Generator[bytes, None, None]:
    """The file block by block, kept in storage as it is sent.

    Whoever stops reading leaves an export that failed, and nothing of it in storage.
    """
    tally, digest = Tally(), hashlib.sha256()
    size, whole = 0, False
    export.file.save(export.file_name, ContentFile(b""), save=False)
    Export.objects.filter(pk=export.pk).update(file=export.file.name, begun_at=Now())
    heartbeat = Heartbeat(export, tally)
    try:
        with export.file.storage.open(str(export.file.name), "wb") as kept:
            for block in blocks(content(export, comparisons, tally, heartbeat)):
                kept.write(block)
                digest.update(block)
                size += len(block)
                yield block
        finish(export, tally, digest.hexdigest(), size)
        whole = True
    finally:
        if not whole:
            break_off(export)


@dataclass
class Heartbeat:
    """Says every second or so that the work goes on, and how far it is; stops it where it is no longer wanted.

    It goes with the rows that are read: a folder gives no byte away before the last of them.
    """

    export: Export
    tally: Tally
    due: float = field(default_factory=lambda: monotonic() + BEAT_SECONDS)

    def beat(self) -> None:
        if self.export.in_background and pacing.LEAVING.is_set():
            raise Handed
        if monotonic() < self.due:
            return
        if not self.goes_on():
            raise Stopped
        self.due = monotonic() + BEAT_SECONDS

    def goes_on(self) -> bool:
        writing = Export.objects.filter(pk=self.export.pk, state=ExportState.UNFINISHED)
        return bool(writing.update(seen_at=Now(), reached=reached(self.export, self.tally)))

    def along(self, passing: Iterable[Passing]) -> Iterator[Passing]:
        for one in passing:
            self.beat()
            yield one


@contextmanager
def apart() -> Iterator[CursorWrapper]:
    """A connection of its own, while the usual one is in a transaction."""
    connection = connections.create_connection(DEFAULT_DB_ALIAS)
    try:
        with connection.cursor() as cursor:
            yield cursor
    finally:
        connection.close()


@dataclass
class HeartbeatBeside(Heartbeat):
    """Over a connection of its own, beside a transaction that reads as of one moment and must not write."""

    tables: dict[str, int] = field(default_factory=dict)

    def goes_on(self) -> bool:
        with apart() as cursor:
            cursor.execute(GOES_ON, [reached(self.export, self.tally), self.export.pk, ExportState.UNFINISHED.value])
            return bool(cursor.rowcount)

    def noted(self, table: str, rows: int) -> None:
        self.tally.rows += rows
        if rows:
            self.tables[table] = self.tables.get(table, 0) + rows
        self.beat()


def reached(export: Export, tally: Tally) -> int:
    """How far it is: in comparisons, and of the whole in rows."""
    return tally.rows if format_of(export.format).is_whole else tally.comparisons


def break_off(export: Export) -> None:
    """Nothing of it stays but the record. One in the background that is to go on elsewhere says so before."""
    remove_file(export)
    broken = Export.objects.filter(pk=export.pk, state=ExportState.UNFINISHED, in_background=False)
    broken.update(state=ExportState.FAILED, reason=BROKEN_OFF, finished_at=Now())
    export.refresh_from_db()


def remove_file(export: Export) -> None:
    export.refresh_from_db(fields=["file"])
    if export.file:
        export.file.storage.delete(str(export.file.name))
        Export.objects.filter(pk=export.pk).update(file="")


def content(export: Export, comparisons: "QuerySet[Comparison]", tally: Tally, heartbeat: Heartbeat) -> Iterator[bytes]:
    """The bytes of the file as its format has them."""
    wanted = wanted_of(export)
    leaving = format_of(export.format)
    those = cast_for(export.evaluation, wanted)
    if leaving.is_whole:
        foresee_rows(export, heartbeat)
        beside = HeartbeatBeside(export, tally)
        export.manifest = {
            **about(leaving, export.evaluation),
            "backup": {"version": BACKUP_VERSION, "tables": beside.tables},  # each is in it once its rows were read
        }
        files = members(export.evaluation, beside.noted)
        return beside.along(leaving.write(cast("Rows", files), those.names(), wanted.options, tally))
    chosen = narrowed(export.evaluation, comparisons, wanted)
    export.manifest = told = foundation(leaving, wanted, those)
    rows = reading(leaving.needs, chosen, those, wanted, tally)
    options = replace(
        wanted.options,
        manifest=lambda: {**told, "counts": counts_of(tally)},
        facts=lambda: replace(facts_of(wanted, those, told), agreement=tuple(agreed(those, chosen))),
    )
    return leaving.write(heartbeat.along(rows), those.names(), options, tally)


def foresee_rows(export: Export, heartbeat: Heartbeat) -> None:
    """How many there are as it begins: what comes or goes meanwhile makes no odds to a bar."""
    rows = sum(table.rows(export.evaluation).count() for table in heartbeat.along(TABLES))
    Export.objects.filter(pk=export.pk).update(expected=rows)


@dataclass(frozen=True)
class Foreseen:
    """What an export would hold, found out by writing it for a moment. ``whole``: all of it was looked at."""

    comparisons: int
    tally: Tally
    whole: bool
    excluded: list[tuple[str, int]]


def in_words(written_as: str, excluded: Mapping[str, int]) -> list[tuple[str, int]]:
    """Why, as the format says it in words, and how often. A format of an older version has its own words alone."""
    words = LEAVING[written_as].reasons if written_as in LEAVING else {}
    return [(words.get(reason, reason.replace("_", " ")), n) for reason, n in sorted(excluded.items())]


def foresee(
    evaluation: Evaluation, written_as: str, wanted: Wanted, comparisons: "QuerySet[Comparison]", seconds: float
) -> Foreseen:
    """The same writer, its bytes thrown away, for at most so long."""
    leaving, until = format_of(written_as), monotonic() + seconds
    wanted = settled(evaluation, leaving, wanted)
    those, tally = cast_for(evaluation, replace(wanted, anonymised=False)), Tally()
    chosen = narrowed(evaluation, comparisons, wanted)
    whole = True

    def for_a_moment() -> Iterator[Row]:
        nonlocal whole
        for row in reading(leaving.needs, chosen, those, wanted, tally):
            if monotonic() > until:
                whole = False
                tally.comparisons = max(0, tally.comparisons - 1)  # of scores none are counted
                return
            yield row

    for _ in leaving.write(for_a_moment(), those.names(), wanted.options, tally):
        pass
    return Foreseen(chosen.count(), tally, whole, in_words(written_as, tally.excluded))


def cast_for(evaluation: Evaluation, wanted: Wanted) -> casting.Cast:
    return casting.cast_of(evaluation, wanted.policy, aliases_of(evaluation) if wanted.anonymised else None)


def reading(
    needs: Needs, comparisons: "QuerySet[Comparison]", those: casting.Cast, wanted: Wanted, tally: Tally
) -> Iterator[Row]:
    """The comparisons, or what was said of them, counted as they pass; each with its part where there are parts."""
    part_of = parting(those.evaluation, wanted.split) if wanted.split else None
    if needs in SAID:
        for cluster, said in SAID[needs](comparisons, those, tally):
            yield {**said, "split": part_of(cluster).value} if part_of else said
        return
    read = labelled.rows if needs == Needs.LABELS else composing.rows
    sources, aspect = tally.sources, wanted.aspect
    row: LabelledRow
    for row in read(comparisons, those):
        if part_of is not None:
            row["split"] = part_of(row["cluster"]).value
        tally.comparisons += 1
        for key, label in row["labels"].items():
            if not aspect or key == aspect:
                sources[label["source"]] += 1
        yield row


def narrowed(evaluation: Evaluation, comparisons: "QuerySet[Comparison]", wanted: Wanted) -> "QuerySet[Comparison]":
    if wanted.sliced:
        comparisons = narrowed_to(comparisons, evaluation, wanted.sliced.wanted)
    comparisons = comparisons_where(comparisons, wanted.where)
    if wanted.part and wanted.split:
        comparisons = in_part(comparisons, evaluation, wanted.split, wanted.part)
    return comparisons


def blocks(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces that are worth a system call: the first at once, and none held back for long."""
    waiting, due = bytearray(), 0.0
    for line in lines:
        waiting += line
        if len(waiting) >= BLOCK_BYTES or (waiting and monotonic() >= due):
            yield bytes(waiting)
            waiting.clear()
            due = monotonic() + HELD_SECONDS
    if waiting:
        yield bytes(waiting)


@transaction.atomic
def finish(export: Export, tally: Tally, sha256: str, size: int) -> None:
    """From now on rows and checksum stand, and the file can be had again."""
    counts = counts_of(tally)
    done = Export.objects.filter(pk=export.pk, state=ExportState.UNFINISHED).update(
        state=ExportState.DONE,
        rows=tally.rows,
        sha256=sha256,
        bytes=size,
        counts=counts,
        manifest={**export.manifest, "counts": counts},
        reached=reached(export, tally),
        finished_at=Now(),
    )
    if not done:
        raise Stopped
    export.refresh_from_db()
    told = {"format": export.format, "rows": export.rows, "sha256": sha256}
    record("exported", export, user=export.user, evaluation=export.evaluation, after=told)


def kept(export: Export) -> "File[bytes]":
    """The file of a finished export, again."""
    if export.removed_at:
        raise InputRefused("The file of this export was removed; its record stays. Make a new export.")
    try:
        return export.file.open("rb")
    except (FileNotFoundError, ValueError):
        raise InputRefused("The file of this export is no longer in storage: make a new export.") from None


def content_type(export: Export) -> str:
    return format_of(export.format).content_type
