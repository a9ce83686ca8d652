"""One evaluation as a ZIP that another site can restore: its rows as they stand, its uploads, and a manifest.

The same evaluation gives the same bytes: who made the file, and when, stands in the record of the export alone.
"""

import hashlib
import json
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final

from django.conf import settings
from django.core.serializers.json import DjangoJSONEncoder
from django.db import connection, transaction
from django.db.migrations.recorder import MigrationRecorder

from evaluations.domain import OPEN_BATCH_STATES, ImportState, InputRefused, RunState
from evaluations.formats.zipped import zipped
from evaluations.models import Batch, Endpoint, Evaluation, Import, Membership, Price, Run, User
from evaluations.services.archiving.tables import TABLES, Table, references

KIND: Final = "judgeweb backup"
VERSION: Final = 2  # 1 was made before release 0.1.0, of other tables
ROWS_AT_ONCE: Final = 2_000
EVALUATION_REFERS_TO: Final = ("review_rubric_id", "shown_judge_id")


Noted = Callable[[str, int], None]


def unnoted(table: str, rows: int) -> None:
    """Nobody waits to hear of it."""


@dataclass
class Gathered:
    """What was found while the tables were read. ``people``: ids of everyone a row names."""

    people: set[int] = field(default_factory=set)
    endpoints: set[int] = field(default_factory=set)
    tables: dict[str, Any] = field(default_factory=dict)


def back_up(evaluation: Evaluation) -> Iterator[bytes]:
    """The bytes of the ZIP. Everything is read as of one moment, while others go on working."""
    return zipped(members(evaluation))


def members(evaluation: Evaluation, noted: Noted = unnoted) -> Iterator[tuple[str, Path | bytes]]:
    """The files of the ZIP by name. ``noted``: of which table how many rows were read since, within the one moment."""
    with tempfile.TemporaryDirectory(prefix="judgeweb-backup-") as folder:
        with one_moment():
            refuse_busy(evaluation)
            manifest = read_tables(evaluation, Path(folder), noted)
        yield from files_of(evaluation, Path(folder), manifest)


def refuse_busy(evaluation: Evaluation) -> None:
    """What is under way elsewhere cannot go on twice."""
    runs = Run.objects.filter(evaluation=evaluation, state__in=(RunState.PLANNING, RunState.RUNNING))
    if run := runs.first():
        raise InputRefused(f"Run {run.pk} of “{run.judge}” is under way: pause or cancel it, then back up.")
    if Batch.objects.filter(run__evaluation=evaluation, state__in=OPEN_BATCH_STATES).exists():
        raise InputRefused("A batch of a run has not come back yet: wait for it, then back up.")


@contextmanager
def one_moment() -> Iterator[None]:
    """Whatever is read within is as it was when the first of it was read; nobody who writes waits for it."""
    if connection.in_atomic_block:  # in a transaction already, as tests are
        yield
    elif connection.vendor == "postgresql":
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield
    else:
        with connection.cursor() as cursor:
            cursor.execute("BEGIN DEFERRED")  # Django's own would lock out every writer
            try:
                yield
            finally:
                cursor.execute("ROLLBACK")


def read_tables(evaluation: Evaluation, folder: Path, noted: Noted) -> dict[str, Any]:
    """Each table into a file of the folder. Returns the manifest."""
    gathered = Gathered()
    for table in TABLES:
        read_table(evaluation, table, folder, gathered, noted)
    row = Evaluation.objects.get(pk=evaluation.pk)
    members = Membership.objects.filter(evaluation=evaluation).order_by("pk")
    gathered.people.update(members.values_list("user", flat=True))
    return {
        "kind": KIND,
        "version": VERSION,
        "product": settings.VERSION,
        "migration": newest_migration(),
        "evaluation": {field.attname: value_of(row, field.attname) for field in Evaluation._meta.concrete_fields},
        "members": [[one.user_id, one.role, in_json(one.created_at)] for one in members],
        "people": people_among(gathered.people),
        "endpoints": endpoints_among(gathered.endpoints),
        "tables": gathered.tables,
    }


def newest_migration() -> str:
    applied = MigrationRecorder.Migration.objects.filter(app="evaluations").order_by("-name")
    return applied.values_list("name", flat=True).first() or ""


def value_of(row: Evaluation, column: str) -> Any:
    return in_json(getattr(row, column))


def in_json(value: Any) -> Any:
    return json.loads(json.dumps(value, cls=ExactEncoder))


def read_table(evaluation: Evaluation, table: Table, folder: Path, gathered: Gathered, noted: Noted) -> None:
    """Its rows, a line each; the first line has the columns. Nothing is written of a table without rows."""
    emptied = [(table.columns.index(column), value) for column, value in table.emptied]
    people = places_of(table, User)
    endpoints = places_of(table, Endpoint)
    digest, rows, path = hashlib.sha256(), 0, folder / f"{table.name}.jsonl"
    with path.open("wb") as file:
        for values in table.rows(evaluation).iterator(chunk_size=ROWS_AT_ONCE):
            row = list(values)
            for place, value in emptied:
                row[place] = value
            gathered.people.update(row[place] for place in people if row[place] is not None)
            gathered.endpoints.update(row[place] for place in endpoints if row[place] is not None)
            for line in [table.columns, row] if rows == 0 else [row]:
                written = json.dumps(line, cls=ExactEncoder, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"
                digest.update(written)
                file.write(written)
            rows += 1
            if rows % ROWS_AT_ONCE == 0:
                noted(table.name, ROWS_AT_ONCE)
    noted(table.name, rows % ROWS_AT_ONCE)
    if rows:
        gathered.tables[table.name] = {"rows": rows, "sha256": digest.hexdigest()}
    else:
        path.unlink()


class ExactEncoder(DjangoJSONEncoder):
    """Moments to the microsecond: Django's own encoder cuts them off at the millisecond."""

    def default(self, o: Any) -> Any:
        return o.isoformat() if hasattr(o, "isoformat") else super().default(o)


def places_of(table: Table, model: type[Any]) -> list[int]:
    return [place for place, other in references(table) if other is model and other is not table.model]


def people_among(ids: set[int]) -> dict[str, Any]:
    """Names alone: nobody's password travels."""
    found = User.objects.filter(pk__in=ids).order_by("pk").values_list("pk", "username", "display_name")
    return {str(pk): {"username": username, "display_name": name} for pk, username, name in found}


def endpoints_among(ids: set[int]) -> dict[str, Any]:
    """Addresses, limits and prices; of a key the name of its variable, never the key."""
    return {str(one.pk): endpoint_in_words(one) for one in Endpoint.objects.filter(pk__in=ids).order_by("pk")}


def endpoint_in_words(endpoint: Endpoint) -> dict[str, Any]:
    columns = (
        *("name", "base_url", "key_variable", "max_in_flight", "requests_per_minute", "tokens_per_minute"),
        *("dialect", "timeout_seconds", "extra_headers", "extra_query", "extra_body"),
    )
    prices = Price.objects.filter(endpoint=endpoint).order_by("model")
    of_price = ("model", "tokens_in", "tokens_cached", "tokens_out", "batch_percent", "most_tokens_out", "source")
    return {
        **{column: getattr(endpoint, column) for column in columns},
        "prices": [dict(zip(of_price, row, strict=True)) for row in prices.values_list(*of_price)],
    }


def files_of(evaluation: Evaluation, folder: Path, manifest: dict[str, Any]) -> Iterator[tuple[str, Path | bytes]]:
    """The manifest first: whoever restores looks at it before anything else."""
    uploads = list(uploads_of(evaluation))
    manifest = {**manifest, "files": {name: {"import": pk} for name, pk, _ in uploads}}
    yield "manifest.json", json.dumps(manifest, ensure_ascii=False, sort_keys=True, indent=1).encode()
    for table in TABLES:
        if table.name in manifest["tables"]:
            yield f"tables/{table.name}.jsonl", folder / f"{table.name}.jsonl"
    for name, _, path in uploads:
        yield name, path


def uploads_of(evaluation: Evaluation) -> Iterator[tuple[str, int, Path]]:
    """The files that its imports brought, where they are still there."""
    for one in Import.objects.filter(evaluation=evaluation, state=ImportState.DONE).exclude(file="").order_by("pk"):
        path = Path(one.file.path)
        if path.is_file():
            yield f"files/{one.pk}/{PurePosixPath(one.file_name).name or 'upload'}", one.pk, path
