"""The writer of an export's file, which sends the file while it stores it."""

import hashlib
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from time import monotonic
from typing import Final, TypeVar, cast

from django.core.files.base import ContentFile
from django.db import DEFAULT_DB_ALIAS, connections, transaction
from django.db.backends.utils import CursorWrapper
from django.db.models import QuerySet
from django.db.models.functions import Now

from evaluations.audit.events import record_event
from evaluations.backups.selectors import BACKUP_TABLES, BACKUP_VERSION, iterate_backup_files
from evaluations.domain.disk_space import DiskFull, is_no_space_left
from evaluations.domain.errors import InputRefused
from evaluations.domain.files import ExportState
from evaluations.domain.jobs import SENT_EXPORT_JOB, JobState
from evaluations.domain.reports import ReportRules
from evaluations.exports.comparison_rows import iterate_full_rows, iterate_labelled_rows
from evaluations.exports.failures import remove_file
from evaluations.exports.manifest import (
    build_card_facts,
    build_export_counts,
    build_manifest_basis,
    build_manifest_header,
    iterate_agreement_facts,
)
from evaluations.exports.options import ExportRequest, get_export_format, parse_export_request
from evaluations.exports.participants import Participants, assign_pseudonyms, load_participants
from evaluations.exports.score_rows import iterate_score_rows
from evaluations.exports.verdict_rows import iterate_verdict_rows
from evaluations.formats.export_format import ExportRow, ExportRows, ExportTally, RowKind
from evaluations.formats.exported_rows import LabelledRow
from evaluations.jobs.claims import end_claim, find_own_claim
from evaluations.jobs.kinds import JobClaim, LeaseLost
from evaluations.models.comparison_filter import apply_comparison_filter
from evaluations.models.comparisons import Comparison, Response
from evaluations.models.evaluations import Evaluation
from evaluations.models.exports import Export
from evaluations.models.free_space import require_room
from evaluations.models.selection import (
    build_part_lookup,
    describe_no_match,
    filter_by_pairs,
    filter_by_split_part,
    select_single_responses,
)
from evaluations.models.transactions import PROCESS_STOPPING

Item = TypeVar("Item")
BLOCK_BYTES: Final = 64 * 1024
BYTES_BETWEEN_LOOKS: Final = 16 * 1024 * 1024  # at the free space
FLUSH_SECONDS: Final = 0.25
DOWNLOAD_ABORTED: Final = "It was interrupted: the download was stopped, or the disk is full."


class ExportHandedOver(Exception):
    """This process was told to stop: another process starts the export again."""


def stream_export(
    export: Export, comparisons: "QuerySet[Comparison]", claim: JobClaim | None = None
) -> Generator[bytes, None, None]:
    """Yield the file block by block while storing it; if the reader stops, nothing of it is stored."""
    claim = claim or find_own_claim(SENT_EXPORT_JOB, export.pk)
    if claim is None:
        raise LeaseLost(f"{export} has already ended.")
    tally, digest = ExportTally(), hashlib.sha256()
    size, whole = 0, False
    export.file.save(export.file_name, ContentFile(b""), save=False)
    Export.objects.filter(pk=export.pk).update(file=export.file.name)
    heartbeat = Heartbeat(export, tally, claim)
    try:
        with export.file.storage.open(str(export.file.name), "wb") as file:
            looked_at = 0
            for block in join_blocks(build_file_content(export, comparisons, tally, heartbeat)):
                if size - looked_at > BYTES_BETWEEN_LOOKS:
                    looked_at = size
                    require_room()
                file.write(block)
                digest.update(block)
                size += len(block)
                yield block
        finish_export(export, claim, tally, digest.hexdigest(), size)
        whole = True
    except OSError as error:
        if is_no_space_left(error):
            raise DiskFull from error
        raise
    finally:
        if not whole:
            discard_unfinished(export, claim)


@dataclass
class Heartbeat:
    """Reports progress about every second, as rows are read; raises if the export was cancelled."""

    export: Export
    tally: ExportTally
    claim: JobClaim

    def beat(self) -> None:
        if self.export.in_background and PROCESS_STOPPING.is_set():
            raise ExportHandedOver
        if self.claim.is_heartbeat_due():
            self.note_progress()

    def note_progress(self) -> None:
        self.claim.heartbeat(get_export_position(self.export, self.tally))

    def along(self, items: Iterable[Item]) -> Iterator[Item]:
        for item in items:
            self.beat()
            yield item


@dataclass
class SeparateHeartbeat(Heartbeat):
    """A heartbeat over a separate connection, for use during a read-only snapshot transaction."""

    tables: dict[str, int] = field(default_factory=dict)

    def note_progress(self) -> None:
        with open_separate_cursor() as cursor:
            self.claim.heartbeat(get_export_position(self.export, self.tally), cursor=cursor)

    def note_rows(self, table: str, rows: int) -> None:
        self.tally.rows += rows
        if rows:
            self.tables[table] = self.tables.get(table, 0) + rows
        self.beat()


def get_export_position(export: Export, tally: ExportTally) -> int:
    """The progress so far: comparisons, or rows of a backup."""
    return tally.rows if get_export_format(export.format).is_backup else tally.comparisons


def discard_unfinished(export: Export, claim: JobClaim) -> None:
    """Delete the file and fail the export, unless it runs in the background and will be continued."""
    remove_file(export)
    if not export.in_background:
        broken = Export.objects.filter(pk=export.pk, state=ExportState.UNFINISHED)
        broken.update(state=ExportState.FAILED, reason=DOWNLOAD_ABORTED, finished_at=Now())
        end_claim(claim, JobState.FAILED, DOWNLOAD_ABORTED)
    export.refresh_from_db()


def build_file_content(
    export: Export, comparisons: "QuerySet[Comparison]", tally: ExportTally, heartbeat: Heartbeat
) -> Iterator[bytes]:
    request = parse_export_request(export)
    export_format = get_export_format(export.format)
    participants = load_export_participants(export.evaluation, request)
    if export_format.is_backup:
        store_expected_rows(export, heartbeat)
        separate_heartbeat = SeparateHeartbeat(export, tally, heartbeat.claim)
        export.manifest = {
            **build_manifest_header(export_format, export.evaluation),
            "backup": {
                "version": BACKUP_VERSION,
                "tables": separate_heartbeat.tables,
            },  # each is in it once its rows were read
        }
        files = iterate_backup_files(export.evaluation, separate_heartbeat.note_rows)
        return separate_heartbeat.along(
            export_format.write(cast("ExportRows", files), participants.list_names(), request.options, tally)
        )
    chosen = filter_export_comparisons(export.evaluation, comparisons, request)
    export.manifest = basis = build_manifest_basis(export_format, request, participants)
    rows = read_export_rows(export_format.needs, chosen, participants, request, tally)
    options = replace(
        request.options,
        manifest=lambda: {**basis, "counts": build_export_counts(tally)},
        facts=lambda: replace(
            build_card_facts(request, participants, basis),
            agreement=tuple(iterate_agreement_facts(participants, chosen)),
        ),
    )
    return export_format.write(heartbeat.along(rows), participants.list_names(), options, tally)


def store_expected_rows(export: Export, heartbeat: Heartbeat) -> None:
    """Store the number of rows at the start, for the progress bar."""
    rows = sum(table.rows(export.evaluation).count() for table in heartbeat.along(BACKUP_TABLES))
    heartbeat.claim.heartbeat(total=rows)


def load_export_participants(evaluation: Evaluation, request: ExportRequest) -> Participants:
    return load_participants(evaluation, request.policy, assign_pseudonyms(evaluation) if request.anonymised else None)


def read_export_rows(
    needs: RowKind,
    comparisons: "QuerySet[Comparison]",
    participants: Participants,
    request: ExportRequest,
    tally: ExportTally,
) -> Iterator[ExportRow]:
    """The exported rows, counted as they pass, each with its part of the split if there is one."""
    part_of = build_part_lookup(participants.evaluation, request.split) if request.split else None
    if needs in (RowKind.VERDICTS, RowKind.SCORES):
        for cluster, long_row in iterate_long_rows(needs, comparisons, participants, request, tally):
            yield {**long_row, "split": part_of(cluster).value} if part_of else long_row
        return
    read = iterate_labelled_rows if needs == RowKind.LABELS else iterate_full_rows
    sources, aspect = tally.sources, request.aspect
    row: LabelledRow
    for row in read(comparisons, participants):
        if part_of is not None:
            row["split"] = part_of(row["cluster"]).value
        tally.comparisons += 1
        for key, label in row["labels"].items():
            if not aspect or key == aspect:
                sources[label["source"]] += 1
        yield row


def iterate_long_rows(
    needs: RowKind,
    comparisons: "QuerySet[Comparison]",
    participants: Participants,
    request: ExportRequest,
    tally: ExportTally,
) -> "Iterator[tuple[str, ExportRow]]":
    if needs == RowKind.VERDICTS:
        return iterate_verdict_rows(comparisons, participants, tally)
    alone = select_export_responses(participants.evaluation, request)
    return iterate_score_rows(comparisons, alone, participants, tally)


def select_export_responses(evaluation: Evaluation, request: ExportRequest) -> "QuerySet[Response]":
    """The responses whose scores are exported even if they are in no comparison. A saved filter is of comparisons."""
    responses = select_single_responses(evaluation, ReportRules(where=request.where, saved_filter=request.saved_filter))
    if request.part and request.split:
        responses = filter_by_split_part(responses, evaluation, request.split, request.part)
    return responses


def count_export_subjects(
    evaluation: Evaluation, needs: RowKind, comparisons: "QuerySet[Comparison]", request: ExportRequest
) -> int:
    """How many comparisons the export is about; of scores how many responses, if no saved filter chooses among them."""
    if needs == RowKind.SCORES and request.saved_filter is None:
        return select_export_responses(evaluation, request).count()
    return filter_export_comparisons(evaluation, comparisons, request).count()


def filter_export_comparisons(
    evaluation: Evaluation, comparisons: "QuerySet[Comparison]", request: ExportRequest
) -> "QuerySet[Comparison]":
    if request.saved_filter:
        comparisons = apply_comparison_filter(comparisons, evaluation, request.saved_filter.comparison_filter)
    comparisons = filter_by_pairs(comparisons, request.where)
    if request.where and not comparisons.exists() and not select_export_responses(evaluation, request).exists():
        raise InputRefused(describe_no_match(request.where))
    if request.part and request.split:
        comparisons = filter_by_split_part(comparisons, evaluation, request.split, request.part)
    return comparisons


def join_blocks(lines: Iterable[bytes]) -> Iterator[bytes]:
    """Join small blocks into larger ones. The first is sent at once, and none waits for long."""
    waiting, due = bytearray(), 0.0
    for line in lines:
        waiting += line
        if len(waiting) >= BLOCK_BYTES or (waiting and monotonic() >= due):
            yield bytes(waiting)
            waiting.clear()
            due = monotonic() + FLUSH_SECONDS
    if waiting:
        yield bytes(waiting)


@transaction.atomic
def finish_export(export: Export, claim: JobClaim, tally: ExportTally, sha256: str, size: int) -> None:
    """Store row count and checksum: the file can be downloaded from now on."""
    counts = build_export_counts(tally)
    claim.heartbeat(get_export_position(export, tally))
    end_claim(claim)
    done = Export.objects.filter(pk=export.pk, state=ExportState.UNFINISHED).update(
        state=ExportState.DONE,
        rows=tally.rows,
        sha256=sha256,
        size_bytes=size,
        counts=counts,
        manifest={**export.manifest, "counts": counts},
        finished_at=Now(),
    )
    if not done:
        raise LeaseLost(f"{export} has already ended.")
    export.refresh_from_db()
    details = {"format": export.format, "rows": export.rows, "sha256": sha256}
    record_event("exported", export, user=export.user, evaluation=export.evaluation, after=details)


@contextmanager
def open_separate_cursor() -> Iterator[CursorWrapper]:
    """A cursor of another connection, for use while the usual one is in a transaction."""
    connection = connections.create_connection(DEFAULT_DB_ALIAS)
    try:
        with connection.cursor() as cursor:
            yield cursor
    finally:
        connection.close()
