"""A backup into this site: looked at whole first, then stored in one transaction, or not at all.

Every id is moved by one distance for each table, so that rows keep their order and refer to each other as they did.
People are matched by their user names; who is not known here gets an account that nobody can sign in to.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, BinaryIO, Final
from uuid import UUID

from django.core.exceptions import SuspiciousFileOperation
from django.db import DataError, IntegrityError, connection, models, transaction
from django.db.models.fields.files import FieldFile
from django.utils.text import slugify

from evaluations.domain import InputRefused, Role
from evaluations.models import (
    Candidate,
    Comparison,
    Endpoint,
    Evaluation,
    Event,
    Export,
    Import,
    Judge,
    Membership,
    Response,
    RubricVersion,
    Run,
    Slice,
    User,
)
from evaluations.models.many import insert_many, refresh_statistics
from evaluations.services.archiving.matching import accounts_for, endpoints_for
from evaluations.services.archiving.opening import Backup
from evaluations.services.archiving.tables import TABLES, Table, references
from evaluations.services.importing.indexing import read_by_hand
from evaluations.services.importing.recounting import TALLIED_TO
from evaluations.services.preparing.preparing import set_role
from evaluations.services.recording import record

ROWS_AT_ONCE: Final = 2_000
# Ids that others take while a range is being set aside on PostgreSQL fall into this gap.
GAP: Final = 1_000_000


@dataclass(frozen=True)
class Restored:
    """``matched``: user names that were known here; ``made``: those that were not."""

    evaluation: Evaluation
    rows: int
    matched: tuple[str, ...]
    made: tuple[str, ...]


# The lowest and the highest id of each table.
Spans = dict[type[models.Model], tuple[int, int]]


@dataclass
class Moved:
    """How ids of the backup become ids of this site: by a distance for each table, or one by one."""

    spans: Spans
    distances: dict[type[models.Model], int] = field(default_factory=dict)
    single: dict[type[models.Model], dict[int, int]] = field(default_factory=dict)

    def id_of(self, model: type[models.Model], pk: int | None) -> int | None:
        if pk is None:
            return None
        if model in self.single:
            return self.single[model][pk]
        return pk + self.distances[model]

    def has_place_for(self, model: type[models.Model], pk: int | None) -> bool:
        """Whether its number here was set aside. Any other is given to a row that is made later."""
        low, high = self.spans.get(model, (0, -1))
        return pk is not None and low <= pk <= high


def restore(file: BinaryIO, *, name: str, slug: str = "", owner: User | None = None) -> Restored:
    """The evaluation of a backup, under its own slug or another. Nothing is stored where anything is wrong."""
    backup = Backup(file, name)
    try:
        spans = look_through(backup)
        backup.look_through_uploads()
        return stored_with_uploads(backup, spans, slug or backup.manifest["evaluation"]["slug"], owner)
    except (KeyError, TypeError, AttributeError, IndexError, ValueError):
        raise backup.refusal("its manifest is damaged") from None
    except SuspiciousFileOperation:
        raise backup.refusal("a file in it is named so that it would lie elsewhere") from None
    except (IntegrityError, DataError) as error:
        raise backup.refusal(f"its rows contradict each other ({' '.join(str(error).split())[:200]})") from error


def look_through(backup: Backup) -> Spans:
    """Read every table once before anything is stored."""
    spans: Spans = {}
    for table in TABLES:
        lines = backup.lines(table)
        columns = next(lines, None)
        if columns is None:
            continue
        refuse_columns(backup, table, columns)
        place = columns.index("id")
        low, high = None, 0
        for row in lines:
            if len(row) != len(columns) or not isinstance(row[place], int):
                raise backup.damaged(table)
            low, high = min(row[place], row[place] if low is None else low), max(row[place], high)
        spans[table.model] = (low or 0, high)
    return spans


def refuse_columns(backup: Backup, table: Table, columns: list[str]) -> None:
    unknown = sorted(set(columns) - set(table.columns))
    if unknown or "id" not in columns:
        raise backup.refusal(f"its table of {table.model._meta.verbose_name_plural} has a column “{unknown[0]}”")


def stored_with_uploads(backup: Backup, spans: Spans, slug: str, owner: User | None) -> Restored:
    """Where the rows are not stored after all, no file that belongs to them stays either."""
    kept: list[FieldFile] = []
    try:
        return stored(backup, spans, slug, owner, kept)
    except BaseException:
        for file in kept:
            file.storage.delete(str(file.name))
        raise


@transaction.atomic
def stored(backup: Backup, spans: Spans, slug: str, owner: User | None, kept: list[FieldFile]) -> Restored:
    manifest = backup.manifest
    refuse_slug(slug)
    matched, made, people = accounts_for(manifest["people"])
    moved = Moved(spans, {model: set_aside(model, span) for model, span in spans.items()})
    moved.single = {User: people, Endpoint: endpoints_for(manifest["endpoints"])}
    evaluation = evaluation_of(manifest["evaluation"], slug)
    moved.single[Evaluation] = {manifest["evaluation"]["id"]: evaluation.pk}
    rows = sum(restore_table(backup, table, moved) for table in TABLES)
    for column, model in (("review_rubric_id", RubricVersion), ("shown_judge_id", Judge)):
        setattr(evaluation, column, moved.id_of(model, manifest["evaluation"][column]))
    evaluation.save(update_fields=["review_rubric", "shown_judge"])
    add_members(evaluation, manifest["members"], people, owner)
    keep_uploads(backup, moved, kept)
    read_by_hand(evaluation)
    told = {"backup": backup.name, "rows": rows, "product": manifest["product"], "accounts made": list(made)}
    record("restored", evaluation, user=owner, evaluation=evaluation, after=told)
    refresh_statistics(*(table.model for table in TABLES))
    return Restored(evaluation, rows, matched, made)


def refuse_slug(slug: str) -> None:
    if slug != slugify(slug) or not slug:
        raise InputRefused(f"“{slug}” cannot be a short name: use lower-case letters, digits and hyphens.")
    if Evaluation.objects.filter(slug=slug).exists():
        raise InputRefused(f"There is an evaluation “{slug}” here already: give the restored one another with --slug.")


# ---- the evaluation itself -------------------------------------------------------------------


def evaluation_of(told: Mapping[str, Any], slug: str) -> Evaluation:
    """The row itself; what it refers to is stored after it."""
    columns = {
        field.attname: read_value(field, told[field.attname])
        for field in Evaluation._meta.concrete_fields
        if field.attname in told and not field.primary_key and not isinstance(field, models.ForeignKey)
    }
    evaluation = Evaluation.objects.create(**{**columns, "slug": slug})
    Evaluation.objects.filter(pk=evaluation.pk).update(created_at=columns["created_at"])
    return evaluation


def add_members(evaluation: Evaluation, members: list[Any], people: dict[int, int], owner: User | None) -> None:
    Membership.objects.bulk_create(
        Membership(evaluation=evaluation, user_id=people[user], role=Role(role)) for user, role, _ in members
    )
    if owner is not None:
        set_role(evaluation, owner, Role.OWNER, by=None)


# ---- rows ------------------------------------------------------------------------------------


def set_aside(model: type[models.Model], span: tuple[int, int]) -> int:
    """How far the ids of a table are moved, into a range that nobody else uses."""
    table = model._meta.db_table
    low, high = span
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = %s", [table])
            return int(cursor.fetchone()[0]) + 1 - low
        cursor.execute("SELECT pg_get_serial_sequence(%s, 'id')", [table])
        sequence = cursor.fetchone()[0]
        cursor.execute(f"SELECT last_value FROM {sequence}")
        first = int(cursor.fetchone()[0]) + GAP
        cursor.execute("SELECT setval(%s, %s)", [sequence, first + high - low + 1])
        return first - low


def restore_table(backup: Backup, table: Table, moved: Moved) -> int:
    """Its rows, some at a time. A column that the backup does not know yet has its default."""
    lines = backup.lines(table)
    columns = next(lines, None)
    if columns is None:
        return 0
    fields = {field.column: field for field in table.fields}
    readers = [reader_of(fields[column]) for column in columns]
    refers = [
        (columns.index(table.columns[place]), model)
        for place, model in references(table)
        if table.columns[place] in columns
    ]
    missing = [field for column, field in fields.items() if column not in columns]
    added = tuple(field.get_default() for field in missing)
    names = (*columns, *(field.column for field in missing))
    mend = MENDED.get(table.model)
    rows: list[list[Any]] = []
    stored = 0
    for line in lines:
        row = [
            value if value is None or read is None else read(value) for value, read in zip(line, readers, strict=True)
        ]
        for place, model in refers:
            row[place] = moved_or_refused(backup, moved, table, model, row[place])
        if mend is not None:
            mend(row, columns, moved)
        rows.append([*row, *added])
        if len(rows) == ROWS_AT_ONCE:
            insert_many(table.model, names, rows)
            stored += len(rows)
            rows = []
    insert_many(table.model, names, rows)
    return stored + len(rows)


def moved_or_refused(
    backup: Backup, moved: Moved, table: Table, model: type[models.Model], pk: int | None
) -> int | None:
    try:
        return moved.id_of(model, pk)
    except (KeyError, TypeError):
        raise backup.refusal(
            f"its table of {table.model._meta.verbose_name_plural} refers to rows that it does not hold"
        ) from None


Reader = Callable[[Any], Any]


def reader_of(field: "models.Field[Any, Any]") -> Reader | None:
    """What makes a value of JSON the column's own; None where it is that already."""
    if isinstance(field, models.DateTimeField):
        return datetime.fromisoformat
    return UUID if isinstance(field, models.UUIDField) else None


def read_value(field: "models.Field[Any, Any]", value: Any) -> Any:
    read = reader_of(field)
    return value if value is None or read is None else read(value)


# ---- ids that stand inside JSON --------------------------------------------------------------


def mend_run(row: list[Any], columns: list[str], moved: Moved) -> None:
    """A trial names the one comparison or response that it asks about. Where it was interrupted nobody goes on."""
    place = columns.index("filters")
    told = dict(row[place])
    for name, model in (("comparison", Comparison), ("response", Response)):
        if told.get(name):
            told[name] = moved.id_of(model, told[name])
    told.pop("after", None)
    row[place] = told


def mend_comparison(row: list[Any], columns: list[str], moved: Moved) -> None:
    """The candidates of its responses, which it repeats as plain numbers."""
    for column in ("candidate_a", "candidate_b"):
        if column in columns:
            row[columns.index(column)] += moved.distances[Candidate]


def mend_import(row: list[Any], columns: list[str], moved: Moved) -> None:
    """What only an import needs that is not done yet, and how far its votes were counted: they are counted anew."""
    place = columns.index("summary")
    row[place] = {name: value for name, value in row[place].items() if name not in ("made", "paired", TALLIED_TO)}
    row[columns.index("file")] = ""


def mend_slice(row: list[Any], columns: list[str], moved: Moved) -> None:
    place = columns.index("filter")
    row[place] = with_moved_import(row[place], moved)


def mend_export(row: list[Any], columns: list[str], moved: Moved) -> None:
    place = columns.index("filters")
    if "filter" in row[place]:
        row[place] = {**row[place], "filter": with_moved_import(row[place]["filter"], moved)}


def with_moved_import(told: Mapping[str, Any], moved: Moved) -> dict[str, Any]:
    return {name: moved.id_of(Import, value) if name == "import" else value for name, value in told.items()}


def mend_event(row: list[Any], columns: list[str], moved: Moved) -> None:
    """What it is about, where that was moved too; what is gone or belongs to the site has no number here."""
    place, kind = columns.index("object_id"), row[columns.index("object_type")]
    model = {table.name: table.model for table in TABLES}.get(kind)
    if model is not None and moved.has_place_for(model, row[place]):
        row[place] = moved.id_of(model, row[place])
    elif kind == "evaluation":
        row[place] = next(iter(moved.single[Evaluation].values()))
    elif kind == "user":
        row[place] = moved.single[User].get(row[place])
    else:
        row[place] = None


MENDED: Final[Mapping[type[models.Model], Callable[[list[Any], list[str], Moved], None]]] = {
    Comparison: mend_comparison,
    Run: mend_run,
    Import: mend_import,
    Slice: mend_slice,
    Export: mend_export,
    Event: mend_event,
}


# ---- files -----------------------------------------------------------------------------------


def keep_uploads(backup: Backup, moved: Moved, kept: list[FieldFile]) -> None:
    for name, told in backup.manifest["files"].items():
        row = Import.objects.get(pk=told["import"] + moved.distances[Import])
        with backup.upload(name) as content:
            row.file.save(row.file_name, content)
            kept.append(row.file)
