"""The restoring of a backup: it is checked completely, then stored in one transaction or not at all."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, BinaryIO, Final, TypeAlias
from uuid import UUID

from django.core.exceptions import SuspiciousFileOperation
from django.db import DataError, IntegrityError, models, transaction
from django.db.models.fields.files import FieldFile
from django.utils.text import slugify

from evaluations.audit.events import record_event
from evaluations.backups.archive_reader import BackupArchive
from evaluations.backups.selectors import (
    BACKUP_TABLES,
    ENDPOINT_COLUMNS,
    PRICE_COLUMNS,
    BackupTable,
    list_references,
    refuse_if_busy,
)
from evaluations.backups.sql import reserve_id_range
from evaluations.comparisons.search.services import schedule_indexing
from evaluations.domain.errors import InputRefused
from evaluations.domain.json_values import JsonDict, JsonMapping
from evaluations.domain.roles import Role
from evaluations.domain.texts import find_free_name
from evaluations.judges.endpoints.services import EndpointSettings, create_endpoint
from evaluations.llm.request_extras import extras_variables
from evaluations.members.services import set_role
from evaluations.models.bulk import insert_many, refresh_statistics
from evaluations.models.comparisons import Candidate, Comparison, Response, SavedFilter
from evaluations.models.evaluations import Evaluation, Event
from evaluations.models.exports import Export
from evaluations.models.imports import Import
from evaluations.models.judges import Endpoint, Judge, Price
from evaluations.models.rubrics import RubricVersion
from evaluations.models.runs import Run
from evaluations.models.users import Membership, User
from evaluations.verdicts.label_updates import recount_labels_later


def match_accounts(people: JsonMapping) -> tuple[tuple[str, ...], tuple[str, ...], dict[int, int]]:
    """Names of existing accounts, names of new accounts, account ids by their id in the backup."""
    names = {person["username"] for person in people.values()}
    ids_by_name = dict(User.objects.filter(username__in=names).values_list("username", "pk"))
    ids, created = {}, []
    for pk, person in people.items():
        if person["username"] not in ids_by_name:
            account = User(username=person["username"], display_name=person["display_name"], is_active=False)
            account.set_unusable_password()
            account.full_clean(exclude=["password"])
            account.save()
            ids_by_name[account.username] = account.pk
            created.append(account.username)
        ids[int(pk)] = ids_by_name[person["username"]]
    return tuple(sorted(names - set(created))), tuple(sorted(created)), ids


@dataclass
class RestoredEndpoints:
    """``ids``: endpoint ids by their id in the backup. ``made``: the endpoints that this site did not have."""

    ids: dict[int, int] = field(default_factory=dict)
    made: list[Endpoint] = field(default_factory=list)


def match_endpoints(endpoints: JsonMapping) -> RestoredEndpoints:
    """For each endpoint one of this site with the same URL and key variable, else a new one."""
    restored = RestoredEndpoints()
    for pk, columns in endpoints.items():
        same = Endpoint.objects.filter(base_url=columns["base_url"], key_variable=columns["key_variable"])
        endpoint = same.order_by("pk").first()
        if endpoint is None:
            endpoint = create_restored_endpoint(columns)
            restored.made.append(endpoint)
        restored.ids[int(pk)] = endpoint.pk
    return restored


def create_restored_endpoint(columns: JsonMapping) -> Endpoint:
    """A new endpoint without secrets that is not offered to evaluations: its address comes from the file."""
    settings = {name: columns[name] for name in ENDPOINT_COLUMNS if name in columns and name != "key_variable"}
    for name in ("extra_headers", "extra_query", "extra_body"):
        extras = settings.get(name, {})
        settings[name] = {key: value for key, value in extras.items() if not extras_variables({key: value})}
    name = find_free_name(columns["name"], Endpoint.objects.values_list("name", flat=True))
    endpoint = create_endpoint(EndpointSettings(**{**settings, "name": name}), user=None)
    Price.objects.bulk_create(
        Price(endpoint=endpoint, **{name: price[name] for name in PRICE_COLUMNS if name in price})
        for price in columns["prices"]
    )
    return endpoint


def list_ungranted_endpoints(evaluation: Evaluation) -> tuple[Endpoint, ...]:
    """The endpoints that the judges of a restored evaluation wait for: it has no grant yet."""
    return tuple(Endpoint.objects.filter(judges__evaluation=evaluation, is_offered=False).distinct().order_by("pk"))


RESTORE_BATCH_ROWS: Final = 2_000


@dataclass(frozen=True)
class RestoredEvaluation:
    """``matched``: names of existing accounts; ``made``: names of accounts that were created.

    ``ungranted``: the endpoints that a site administrator has to grant; ``new_endpoints``: those that have no key yet.
    """

    evaluation: Evaluation
    rows: int
    matched: tuple[str, ...]
    made: tuple[str, ...]
    ungranted: tuple[Endpoint, ...]
    new_endpoints: tuple[Endpoint, ...]


# The lowest and the highest id of each table.
IdSpans = dict[type[models.Model], tuple[int, int]]


@dataclass
class IdMap:
    """Maps ids of the backup to ids of this site: by an offset for each table, or one by one."""

    spans: IdSpans
    distances: dict[type[models.Model], int] = field(default_factory=dict)
    single: dict[type[models.Model], dict[int, int]] = field(default_factory=dict)

    def map_id(self, model: type[models.Model], pk: int | None) -> int | None:
        if pk is None:
            return None
        if model in self.single:
            return self.single[model][pk]
        return pk + self.distances[model]

    def has_reserved(self, model: type[models.Model], pk: int | None) -> bool:
        """Whether the id is in the reserved range of its table."""
        low, high = self.spans.get(model, (0, -1))
        return pk is not None and low <= pk <= high


def restore_backup(file: BinaryIO, *, name: str, slug: str = "", owner: User | None = None) -> RestoredEvaluation:
    """Restore the evaluation of a backup, under its own slug or another. An invalid backup stores nothing."""
    backup = BackupArchive(file, name)
    try:
        spans = validate_tables(backup)
        backup.check_uploads()
        return save_with_uploads(backup, spans, slug or backup.manifest["evaluation"]["slug"], owner)
    except (KeyError, TypeError, AttributeError, IndexError, ValueError):
        raise backup.refusal("its manifest is damaged") from None
    except SuspiciousFileOperation:
        raise backup.refusal("a file in it has an unsafe name") from None
    except (IntegrityError, DataError) as error:
        raise backup.refusal(f"its rows contradict each other ({' '.join(str(error).split())[:200]})") from error


def validate_tables(backup: BackupArchive) -> IdSpans:
    """Read every table once before anything is stored."""
    spans: IdSpans = {}
    for table in BACKUP_TABLES:
        lines = backup.read_lines(table)
        columns = next(lines, None)
        if columns is None:
            continue
        refuse_unknown_table_columns(backup, table, columns)
        place = columns.index("id")
        low, high = None, 0
        for row in lines:
            if len(row) != len(columns) or not isinstance(row[place], int):
                raise backup.damaged(table)
            low, high = min(row[place], row[place] if low is None else low), max(row[place], high)
        spans[table.model] = (low or 0, high)
    return spans


def refuse_unknown_table_columns(backup: BackupArchive, table: BackupTable, columns: list[str]) -> None:
    unknown = sorted(set(columns) - set(table.columns))
    if unknown or "id" not in columns:
        raise backup.refusal(f"its table of {table.model._meta.verbose_name_plural} has a column “{unknown[0]}”")


def save_with_uploads(backup: BackupArchive, spans: IdSpans, slug: str, owner: User | None) -> RestoredEvaluation:
    """Save the rows and uploaded files. If the rows cannot be stored, the files are deleted."""
    kept: list[FieldFile] = []
    try:
        return save_backup(backup, spans, slug, owner, kept)
    except BaseException:
        for file in kept:
            file.storage.delete(str(file.name))
        raise


@transaction.atomic
def save_backup(
    backup: BackupArchive, spans: IdSpans, slug: str, owner: User | None, kept: list[FieldFile]
) -> RestoredEvaluation:
    manifest = backup.manifest
    refuse_unusable_slug(slug)
    matched, created, people = match_accounts(manifest["people"])
    endpoints = match_endpoints(manifest["endpoints"])  # before the ids are reserved: it records events
    moved = IdMap(spans, {model: reserve_id_range(model, span) for model, span in spans.items()})
    moved.single = {User: people, Endpoint: endpoints.ids}
    evaluation = create_restored_evaluation(manifest["evaluation"], slug)
    moved.single[Evaluation] = {manifest["evaluation"]["id"]: evaluation.pk}
    rows = sum(restore_table(backup, table, moved) for table in BACKUP_TABLES)
    refuse_if_busy(evaluation)  # a run at work would spend with nobody having started it here
    for column, model in (("review_rubric_id", RubricVersion), ("shown_judge_id", Judge)):
        setattr(evaluation, column, moved.map_id(model, manifest["evaluation"][column]))
    evaluation.save(update_fields=["review_rubric", "shown_judge"])
    restore_members(evaluation, manifest["members"], people, owner)
    restore_uploads(backup, moved, kept)
    schedule_indexing(evaluation)
    recount_labels_later(evaluation.imports.values_list("pk", flat=True))
    details = {"backup": backup.name, "rows": rows, "product": manifest["product"], "accounts made": list(created)}
    record_event("restored", evaluation, user=owner, evaluation=evaluation, after=details)
    refresh_statistics(*(table.model for table in BACKUP_TABLES))
    ungranted = list_ungranted_endpoints(evaluation)
    return RestoredEvaluation(evaluation, rows, matched, created, ungranted, tuple(endpoints.made))


def refuse_unusable_slug(slug: str) -> None:
    if slug != slugify(slug) or not slug:
        raise InputRefused(f"“{slug}” is not a URL name. Use lowercase letters, digits and hyphens.")
    if Evaluation.objects.filter(slug=slug).exists():
        raise InputRefused(f"An evaluation “{slug}” already exists. Choose another URL name with --slug.")


def create_restored_evaluation(columns_in_backup: JsonMapping, slug: str) -> Evaluation:
    """Create the evaluation's row. Rows that it refers to are stored later."""
    columns = {
        field.attname: parse_column_value(field, columns_in_backup[field.attname])
        for field in Evaluation._meta.concrete_fields
        if field.attname in columns_in_backup and not field.primary_key and not isinstance(field, models.ForeignKey)
    }
    evaluation = Evaluation.objects.create(**{**columns, "slug": slug})
    Evaluation.objects.filter(pk=evaluation.pk).update(created_at=columns["created_at"])
    return evaluation


def restore_members(evaluation: Evaluation, members: list[Any], people: dict[int, int], owner: User | None) -> None:
    Membership.objects.bulk_create(
        Membership(evaluation=evaluation, user_id=people[user], role=Role(role)) for user, role, _ in members
    )
    if owner is not None:
        set_role(evaluation, owner, Role.OWNER, by=None)


def restore_table(backup: BackupArchive, table: BackupTable, moved: IdMap) -> int:
    """Restore the rows of a table in batches. Columns that the backup lacks get their defaults."""
    lines = backup.read_lines(table)
    columns = next(lines, None)
    if columns is None:
        return 0
    fields = {field.column: field for field in table.fields}
    readers = [get_value_reader(fields[column]) for column in columns]
    refers = [
        (columns.index(table.columns[position]), model)
        for position, model in list_references(table)
        if table.columns[position] in columns
    ]
    missing = [field for column, field in fields.items() if column not in columns]
    added = tuple(field.get_default() for field in missing)
    names = (*columns, *(field.column for field in missing))
    emptied = [(columns.index(column), value) for column, value in table.emptied if column in columns]
    remap = REMAPPERS.get(table.model)
    rows: list[StoredRow] = []
    stored = 0
    for line in lines:
        row = [
            value if value is None or read is None else read(value) for value, read in zip(line, readers, strict=True)
        ]
        for position, model in refers:
            row[position] = map_reference(backup, moved, table, model, row[position])
        for position, value in emptied:
            row[position] = value
        if remap is not None:
            remap(row, columns, moved)
        rows.append([*row, *added])
        if len(rows) == RESTORE_BATCH_ROWS:
            insert_many(table.model, names, rows)
            stored += len(rows)
            rows = []
    insert_many(table.model, names, rows)
    return stored + len(rows)


def map_reference(
    backup: BackupArchive, moved: IdMap, table: BackupTable, model: type[models.Model], pk: int | None
) -> int | None:
    try:
        return moved.map_id(model, pk)
    except (KeyError, TypeError):
        raise backup.refusal(
            f"its table of {table.model._meta.verbose_name_plural} refers to rows that it does not hold"
        ) from None


# The values of one row of a backup, in the order of its columns.
StoredRow: TypeAlias = list[Any]
ValueReader = Callable[[Any], Any]


def get_value_reader(field: "models.Field[Any, Any]") -> ValueReader | None:
    """A function that converts a JSON value to the column's type; None if none is needed."""
    if isinstance(field, models.DateTimeField):
        return datetime.fromisoformat
    return UUID if isinstance(field, models.UUIDField) else None


def parse_column_value(field: "models.Field[Any, Any]", value: Any) -> Any:
    read = get_value_reader(field)
    return value if value is None or read is None else read(value)


def remap_run(row: StoredRow, columns: list[str], moved: IdMap) -> None:
    """Map the ids in a test call's filters, without the position of an interrupted plan."""
    place = columns.index("filters")
    options = dict(row[place])
    for name, model in (("comparison", Comparison), ("response", Response)):
        if options.get(name):
            options[name] = moved.map_id(model, options[name])
    options.pop("after", None)
    row[place] = options


def remap_comparison(row: StoredRow, columns: list[str], moved: IdMap) -> None:
    """Map the ids of candidates, which a comparison stores as plain numbers."""
    for column in ("candidate_a", "candidate_b"):
        if column in columns:
            row[columns.index(column)] += moved.distances[Candidate]


def remap_import(row: StoredRow, columns: list[str], moved: IdMap) -> None:
    """Reset the columns that only unfinished imports need."""
    row[columns.index("created_json")] = {}
    row[columns.index("pairs_cursor")] = 0
    row[columns.index("file")] = ""


def remap_saved_filter(row: StoredRow, columns: list[str], moved: IdMap) -> None:
    place = columns.index("filter")
    row[place] = remap_import_filter(row[place], moved)


def remap_export(row: StoredRow, columns: list[str], moved: IdMap) -> None:
    place = columns.index("filters")
    if "filter" in row[place]:
        row[place] = {**row[place], "filter": remap_import_filter(row[place]["filter"], moved)}


def remap_import_filter(stored: JsonMapping, moved: IdMap) -> JsonDict:
    return {name: moved.map_id(Import, value) if name == "import" else value for name, value in stored.items()}


def remap_event(row: StoredRow, columns: list[str], moved: IdMap) -> None:
    """Map the id of the object that the event is about; None if that object is not part of the backup."""
    place, kind = columns.index("object_id"), row[columns.index("object_type")]
    model = {table.name: table.model for table in BACKUP_TABLES}.get(kind)
    if model is not None and moved.has_reserved(model, row[place]):
        row[place] = moved.map_id(model, row[place])
    elif kind == "evaluation":
        row[place] = next(iter(moved.single[Evaluation].values()))
    elif kind == "user":
        row[place] = moved.single[User].get(row[place])
    else:
        row[place] = None


REMAPPERS: Final[Mapping[type[models.Model], Callable[[StoredRow, list[str], IdMap], None]]] = {
    Comparison: remap_comparison,
    Run: remap_run,
    Import: remap_import,
    SavedFilter: remap_saved_filter,
    Export: remap_export,
    Event: remap_event,
}


def restore_uploads(backup: BackupArchive, moved: IdMap, kept: list[FieldFile]) -> None:
    for name, entry in backup.manifest["files"].items():
        row = Import.objects.get(pk=entry["import"] + moved.distances[Import])
        with backup.open_upload(name) as content:
            row.file.save(row.file_name, content)
            kept.append(row.file)
