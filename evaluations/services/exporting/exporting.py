"""A dataset file, written once: sent while it is written, kept, and recorded with rows and checksum."""

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from django.core.files import File
from django.core.files.base import ContentFile
from django.db import transaction
from django.db.models import QuerySet
from django.utils import timezone

from evaluations.domain import ExportState, InputRefused
from evaluations.formats import csv_out, jsonl_out
from evaluations.formats.exported import ExportedRow, Raters
from evaluations.models import Comparison, Evaluation, Export, User
from evaluations.services.exporting import collecting, composing
from evaluations.services.recording import record

Writer = Callable[[Iterable[ExportedRow], Raters], Iterator[bytes]]

WRITERS: Final[Mapping[str, Writer]] = {"jsonl": jsonl_out.lines, "csv": csv_out.lines}
CONTENT_TYPES: Final = {"jsonl": "application/x-ndjson", "csv": "text/csv; charset=utf-8"}
BLOCK_BYTES: Final = 64 * 1024


@dataclass
class Tally:
    """What is known of a file only after its last row."""

    rows: int = 0
    labels: Counter[str] = field(default_factory=Counter)

    def counted(self, rows: Iterable[ExportedRow]) -> Iterator[ExportedRow]:
        for row in rows:
            self.rows += 1
            self.labels.update(label["source"] for label in row["labels"].values())
            yield row


@transaction.atomic
def begin(evaluation: Evaluation, *, written_as: str, user: User | None) -> Export:
    """The record of an export, unfinished until its last byte was written."""
    if written_as not in WRITERS:
        raise InputRefused(f"There is no export as “{written_as}”: choose one of {', '.join(WRITERS)}.")
    export = Export.objects.create(evaluation=evaluation, user=user, format=written_as, policy=evaluation.label_policy)
    record("began", export, user=user, evaluation=evaluation, after={"format": written_as, "policy": export.policy})
    return export


def write(export: Export, comparisons: "QuerySet[Comparison]") -> Iterator[bytes]:
    """The file block by block, kept in storage as it is sent.

    Whoever stops reading leaves the export unfinished, and nothing of it in storage.
    """
    tally, digest = Tally(), hashlib.sha256()
    whole = False
    export.file.save(export.file_name, ContentFile(b""))
    try:
        with export.file.storage.open(str(export.file.name), "wb") as kept:
            for block in blocks(lines(export, comparisons, tally)):
                kept.write(block)
                digest.update(block)
                yield block
        finish(export, tally, digest.hexdigest())
        whole = True
    finally:
        if not whole:
            export.file.delete()


def lines(export: Export, comparisons: "QuerySet[Comparison]", tally: Tally) -> Iterator[bytes]:
    those = collecting.cast_of(export.evaluation)
    return WRITERS[export.format](tally.counted(composing.rows(comparisons, those)), those.names())


def blocks(lines: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes in pieces that are worth a system call."""
    waiting = bytearray()
    for line in lines:
        waiting += line
        if len(waiting) >= BLOCK_BYTES:
            yield bytes(waiting)
            waiting.clear()
    if waiting:
        yield bytes(waiting)


@transaction.atomic
def finish(export: Export, tally: Tally, sha256: str) -> None:
    """From now on rows and checksum stand, and the file can be had again."""
    export.state = ExportState.DONE
    export.rows = tally.rows
    export.sha256 = sha256
    export.counts = {"labels": dict(sorted(tally.labels.items()))}
    export.finished_at = timezone.now()
    export.save(update_fields=["state", "rows", "sha256", "counts", "finished_at"])
    record(
        "exported",
        export,
        user=export.user,
        evaluation=export.evaluation,
        after={"format": export.format, "rows": export.rows, "sha256": sha256},
    )


def kept(export: Export) -> "File[bytes]":
    """The file of a finished export, again."""
    try:
        return export.file.open("rb")
    except (FileNotFoundError, ValueError):
        raise InputRefused("The file of this export is no longer in storage: make a new export.") from None
