"""Backups of one evaluation as a ZIP that another site can restore, with equal bytes for equal evaluations."""

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final

from django.conf import settings
from django.core.serializers.json import DjangoJSONEncoder
from django.db import models
from django.db.migrations.recorder import MigrationRecorder
from django.db.models import Case, F, Q, QuerySet, When

from evaluations.backups.sql import open_snapshot
from evaluations.domain.errors import InputRefused
from evaluations.domain.events import DOWNLOADED
from evaluations.domain.files import BACKUP_FORMAT_NAME, ExportState, ImportState
from evaluations.domain.json_values import JsonDict
from evaluations.domain.judges import OPEN_BATCH_STATES, CallState, RunState
from evaluations.domain.scratch_folders import open_scratch_folder
from evaluations.formats.zip_stream import stream_zip
from evaluations.models.comparisons import (
    Candidate,
    Comparison,
    Query,
    Rendering,
    Response,
    SavedFilter,
    Tag,
    TagChange,
    Tagging,
)
from evaluations.models.endpoint_grants import EndpointAccount, EndpointGrant, EndpointSpending
from evaluations.models.evaluations import EarlierGuidelines, Evaluation, Event, JudgeComparisonLook
from evaluations.models.exports import Export, ReviewerPseudonym
from evaluations.models.free_space import require_room
from evaluations.models.imports import ColumnMapping, Import
from evaluations.models.jobs import CallTotal, CallTotalCursor, Job, Lease, Worker
from evaluations.models.judges import Endpoint, EndpointCheck, Judge, LocalServer, Price, Rater
from evaluations.models.progress import ComparisonProgress, ProgressCounters, VerdictChange
from evaluations.models.queues import Assignment, DefaultQueue, Queue, QueueItem, QueueProgress, QueueSlot
from evaluations.models.reports import ServedReport
from evaluations.models.results import OverviewResults
from evaluations.models.rubrics import Aspect, Rubric, RubricAspect, RubricVersion
from evaluations.models.runs import Attempt, Batch, Call, Reparse, Run
from evaluations.models.sign_ins import SecurityEvent, Session, Throttle
from evaluations.models.users import (
    ApiToken,
    IdempotencyRecord,
    Invitation,
    JoinLink,
    Membership,
    SignInLink,
    SitePolicy,
    User,
)
from evaluations.models.verdicts import (
    Adjudication,
    Comment,
    Disclosure,
    Label,
    Mention,
    PackedVotes,
    Review,
    Score,
    Span,
    Verdict,
)
from evaluations.models.webhooks import Delivery, DeliveryAttempt, OutboxEntry, Webhook


@dataclass(frozen=True)
class BackupTable:
    """A table of a backup.

    ``path``: the lookup from its rows to their evaluation. ``emptied``: columns that are meaningless on another site,
    with the values that they get.
    """

    model: type[models.Model]
    path: str
    emptied: tuple[tuple[str, Any], ...] = ()

    @property
    def name(self) -> str:
        return self.model._meta.model_name or ""

    @property
    def columns(self) -> list[str]:
        return [str(field.column) for field in self.fields]

    @property
    def fields(self) -> "Sequence[models.Field[Any, Any]]":
        return self.model._meta.concrete_fields

    def rows(self, evaluation: Evaluation) -> "QuerySet[Any, tuple[Any, ...]]":
        """All rows by id, without those of unfinished imports and exports.

        Backups and their events are left out, so that a backup does not change the next one.
        """
        rows = getattr(self.model, "all_rows", self.model._default_manager).filter(**{self.path: evaluation.pk})
        if self.model is Import:
            rows = rows.filter(state=ImportState.DONE)
        elif self.model is Export:
            rows = rows.exclude(format=BACKUP_FORMAT_NAME).exclude(
                state__in=(ExportState.WAITING, ExportState.UNFINISHED)
            )
        elif self.model is Event:
            backups = Export.objects.filter(evaluation=evaluation, format=BACKUP_FORMAT_NAME).values("pk")
            of_backups = Q(object_type="export", object_id__in=backups)
            rows = rows.exclude(of_backups & ~Q(verb=DOWNLOADED))  # its reader has seen everything
        elif any(field.name == "source_import" for field in self.fields):
            rows = rows.filter(Q(source_import__isnull=True) | Q(source_import__state=ImportState.DONE))
        return rows.order_by("pk").values_list(*(self.read(field, evaluation) for field in self.fields))

    def read(self, field: "models.Field[Any, Any]", evaluation: Evaluation) -> Any:
        """The column or expression of a field. A call copied from another evaluation loses its reference."""
        if self.model is Call and field.name == "copied_from":
            return Case(When(copied_from__judge__evaluation=evaluation, then=F("copied_from_id")))
        return field.attname


LEASE_COLUMNS: Final = (("lease", None), ("lease_until", None), ("not_before", None))

# Users, endpoints and the evaluation itself are in the manifest.
BACKUP_TABLES: Final = (
    BackupTable(Rubric, "evaluation"),
    BackupTable(RubricVersion, "rubric__evaluation"),
    BackupTable(Aspect, "evaluation"),
    BackupTable(RubricAspect, "version__rubric__evaluation"),
    BackupTable(Judge, "evaluation"),
    BackupTable(Rater, "evaluation", (("verdict_changes", 0),)),
    BackupTable(Import, "evaluation"),
    BackupTable(Candidate, "evaluation"),
    BackupTable(Query, "evaluation"),
    BackupTable(Response, "query__evaluation"),
    BackupTable(Comparison, "evaluation"),
    BackupTable(DefaultQueue, "rubric_version__rubric__evaluation"),
    BackupTable(QueueItem, "rubric_version__rubric__evaluation"),
    BackupTable(Queue, "evaluation"),
    BackupTable(QueueSlot, "queue__evaluation"),
    BackupTable(Run, "evaluation", (("reserved", 0),)),
    BackupTable(Batch, "run__evaluation"),
    BackupTable(Call, "judge__evaluation", (*LEASE_COLUMNS, ("reserved", 0))),
    BackupTable(Attempt, "call__judge__evaluation"),
    BackupTable(Reparse, "judge__evaluation"),
    BackupTable(Review, "rater__evaluation"),
    BackupTable(Assignment, "rater__evaluation"),
    BackupTable(QueueProgress, "rater__evaluation"),
    BackupTable(Verdict, "rater__evaluation"),
    BackupTable(Score, "rater__evaluation"),
    BackupTable(Span, "review__rater__evaluation"),
    BackupTable(Comment, "comparison__evaluation"),
    BackupTable(Mention, "comment__comparison__evaluation"),
    BackupTable(Adjudication, "comparison__evaluation"),
    BackupTable(Disclosure, "evaluation"),
    BackupTable(Label, "comparison__evaluation"),
    BackupTable(PackedVotes, "rater__evaluation"),
    BackupTable(Tag, "evaluation"),
    BackupTable(Tagging, "tag__evaluation"),
    BackupTable(SavedFilter, "evaluation"),
    BackupTable(ColumnMapping, "evaluation"),
    BackupTable(Export, "evaluation", (("file", ""),)),
    BackupTable(ReviewerPseudonym, "evaluation"),
    BackupTable(EarlierGuidelines, "evaluation"),
    BackupTable(JudgeComparisonLook, "evaluation"),
    BackupTable(Event, "evaluation"),
)

# Tables of the site, derived tables that are rebuilt, and secrets that must not leave the site.
EXCLUDED_MODELS: Final = (
    *(SitePolicy, Session, Throttle, SecurityEvent, Invitation, JoinLink, SignInLink, ApiToken, IdempotencyRecord),
    *(Webhook, OutboxEntry, Delivery, DeliveryAttempt),
    *(EndpointGrant, EndpointAccount, EndpointSpending),
    *(LocalServer, EndpointCheck, Worker, Job, Lease, CallTotal, CallTotalCursor, Rendering, TagChange),
    *(VerdictChange, ComparisonProgress, ProgressCounters, ServedReport, OverviewResults),
)

# These are in the manifest and are matched with existing rows.
MATCHED_MODELS: Final = (User, Endpoint, Price, Evaluation, Membership)


def list_references(table: BackupTable) -> "Iterator[tuple[int, type[models.Model]]]":
    """Positions of the columns that hold ids, with the table each refers to. The row's own id is included."""
    for position, column in enumerate(table.fields):
        if column.primary_key:
            yield position, table.model
        elif isinstance(column, models.ForeignKey):
            yield position, column.related_model


BACKUP_KIND: Final = "judgeweb backup"
BACKUP_VERSION: Final = 2  # 1 was made before release 0.1.0, of other tables
BACKUP_BATCH_ROWS: Final = 2_000
ROWS_BETWEEN_LOOKS: Final = 100  # at the free space
RowsRead = Callable[[str, int], None]


def ignore_rows_read(table: str, rows: int) -> None:
    """A callback that ignores progress."""


@dataclass
class BackupReferences:
    """References collected while tables are read. ``people``: ids of everyone that a row names."""

    people: set[int] = field(default_factory=set)
    endpoints: set[int] = field(default_factory=set)
    tables: dict[str, object] = field(default_factory=dict)


def build_backup(evaluation: Evaluation) -> Iterator[bytes]:
    """The bytes of the ZIP, read from one snapshot."""
    return stream_zip(iterate_backup_files(evaluation))


def iterate_backup_files(
    evaluation: Evaluation, noted: RowsRead = ignore_rows_read
) -> Iterator[tuple[str, Path | bytes]]:
    """The files of the ZIP by name. ``noted`` is called with a table and the number of rows read since then."""
    with open_scratch_folder(settings.SCRATCH_DIR, "backup-") as folder:
        with open_snapshot():
            refuse_if_busy(evaluation)
            manifest = save_tables(evaluation, folder, noted)
        yield from iterate_archive_entries(evaluation, folder, manifest)


def refuse_if_busy(evaluation: Evaluation) -> None:
    """Refuse to back up an evaluation with unfinished jobs or runs, which could not continue on two sites."""
    runs = Run.objects.filter(evaluation=evaluation, state__in=(RunState.PLANNING, RunState.RUNNING))
    if run := runs.first():
        raise InputRefused(f"Run {run.pk} of “{run.judge}” is in progress. Pause or cancel it, then back up.")
    if Batch.objects.filter(run__evaluation=evaluation, state__in=OPEN_BATCH_STATES).exists():
        raise InputRefused("A batch of a run is still in progress. Wait for it, then back up.")
    if Call.all_rows.filter(run__evaluation=evaluation, state=CallState.RUNNING).exists():
        raise InputRefused("Requests of a paused run are still in flight. Wait a moment, then back up.")


def save_tables(evaluation: Evaluation, folder: Path, noted: RowsRead) -> dict[str, object]:
    """Save each table into a file of the folder. Returns the manifest."""
    references = BackupReferences()
    for table in BACKUP_TABLES:
        save_table(evaluation, table, folder, references, noted)
    row = Evaluation.objects.get(pk=evaluation.pk)
    members = Membership.objects.filter(evaluation=evaluation).order_by("pk")
    references.people.update(members.values_list("user", flat=True))
    return {
        "kind": BACKUP_KIND,
        "version": BACKUP_VERSION,
        "product": settings.VERSION,
        "migration": get_newest_migration(),
        "evaluation": {
            field.attname: serialize_value(getattr(row, field.attname)) for field in Evaluation._meta.concrete_fields
        },
        "members": [[member.user_id, member.role, serialize_value(member.created_at)] for member in members],
        "people": serialize_people(references.people),
        "endpoints": serialize_endpoints(references.endpoints),
        "tables": references.tables,
    }


def get_newest_migration() -> str:
    applied = MigrationRecorder.Migration.objects.filter(app="evaluations").order_by("-name")
    return applied.values_list("name", flat=True).first() or ""


def serialize_value(value: object) -> object:
    return json.loads(json.dumps(value, cls=ExactEncoder))


def save_table(
    evaluation: Evaluation, table: BackupTable, folder: Path, references: BackupReferences, noted: RowsRead
) -> None:
    """Save the rows of a table, one per line after the line of columns. An empty table has no file."""
    emptied = [(table.columns.index(column), value) for column, value in table.emptied]
    people = find_reference_positions(table, User)
    endpoints = find_reference_positions(table, Endpoint)
    require_room()
    digest, rows, path = hashlib.sha256(), 0, folder / f"{table.name}.jsonl"
    with path.open("wb") as file:
        for values in table.rows(evaluation).iterator(chunk_size=BACKUP_BATCH_ROWS):
            row = list(values)
            for position, value in emptied:
                row[position] = value
            references.people.update(row[position] for position in people if row[position] is not None)
            references.endpoints.update(row[position] for position in endpoints if row[position] is not None)
            for line in [table.columns, row] if rows == 0 else [row]:
                written = json.dumps(line, cls=ExactEncoder, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
                digest.update(written)
                file.write(written)
            rows += 1
            if rows % ROWS_BETWEEN_LOOKS == 0:
                require_room()
            if rows % BACKUP_BATCH_ROWS == 0:
                noted(table.name, BACKUP_BATCH_ROWS)
    noted(table.name, rows % BACKUP_BATCH_ROWS)
    if rows:
        references.tables[table.name] = {"rows": rows, "sha256": digest.hexdigest()}
    else:
        path.unlink()


class ExactEncoder(DjangoJSONEncoder):
    """Encodes times to the microsecond. Django's encoder cuts them off at the millisecond."""

    def default(self, o: Any) -> Any:
        return o.isoformat() if hasattr(o, "isoformat") else super().default(o)


def find_reference_positions(table: BackupTable, model: type[object]) -> list[int]:
    return [position for position, other in list_references(table) if other is model and other is not table.model]


def serialize_people(ids: set[int]) -> dict[str, object]:
    """Names only: passwords are never included."""
    users = User.objects.filter(pk__in=ids).order_by("pk").values_list("pk", "username", "display_name")
    return {str(pk): {"username": username, "display_name": name} for pk, username, name in users}


def serialize_endpoints(ids: set[int]) -> dict[str, object]:
    """Addresses, limits and prices, with the names of key variables but never a key."""
    endpoints = Endpoint.objects.filter(pk__in=ids).order_by("pk")
    return {str(endpoint.pk): serialize_endpoint(endpoint) for endpoint in endpoints}


ENDPOINT_COLUMNS: Final = (
    *("name", "base_url", "key_variable", "max_in_flight", "requests_per_minute", "tokens_per_minute"),
    *("dialect", "timeout_seconds", "extra_headers", "extra_query", "extra_body"),
)
PRICE_COLUMNS: Final = (
    *("model", "tokens_in", "tokens_cached", "tokens_out", "batch_percent", "most_tokens_out", "source"),
)


def serialize_endpoint(endpoint: Endpoint) -> dict[str, object]:
    prices = Price.objects.filter(endpoint=endpoint).order_by("model")
    return {
        **{column: getattr(endpoint, column) for column in ENDPOINT_COLUMNS},
        "prices": [dict(zip(PRICE_COLUMNS, row, strict=True)) for row in prices.values_list(*PRICE_COLUMNS)],
    }


def iterate_archive_entries(
    evaluation: Evaluation, folder: Path, manifest: JsonDict
) -> Iterator[tuple[str, Path | bytes]]:
    """The files of the archive, the manifest first, since restoring reads it first."""
    uploads = list(iterate_uploads(evaluation))
    manifest = {**manifest, "files": {name: {"import": pk} for name, pk, _ in uploads}}
    yield "manifest.json", json.dumps(manifest, ensure_ascii=False, sort_keys=True, indent=1).encode()
    for table in BACKUP_TABLES:
        if table.name in manifest["tables"]:
            yield f"tables/{table.name}.jsonl", folder / f"{table.name}.jsonl"
    for name, _, path in uploads:
        yield name, path


def iterate_uploads(evaluation: Evaluation) -> Iterator[tuple[str, int, Path]]:
    """The stored files of the evaluation's imports."""
    for row in Import.objects.filter(evaluation=evaluation, state=ImportState.DONE).exclude(file="").order_by("pk"):
        path = Path(row.file.path)
        if path.is_file():
            yield f"files/{row.pk}/{PurePosixPath(row.file_name).name or 'upload'}", row.pk, path
