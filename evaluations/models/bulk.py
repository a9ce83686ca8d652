"""Bulk inserts, updates and deletes of rows, past the ORM."""

import json
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from functools import cache, lru_cache
from operator import attrgetter
from typing import Any, Final, TypeVar

from django.db import IntegrityError, connection, models
from django.utils import timezone

from evaluations.domain.json_values import JsonMapping

ColumnRows = Sequence[Sequence[Any]]
Row = TypeVar("Row", bound=models.Model)
# The name of the sequence is looked up once, and not for every number: OFFSET keeps the planner from doing so.
NEXT_IDS: Final = """
SELECT nextval(ids.name)
FROM (SELECT pg_get_serial_sequence(%s, 'id')::regclass AS name OFFSET 0) AS ids, generate_series(1, %s)
"""
# What PostgreSQL and SQLite say of a row whose like is there.
UNIQUE_VIOLATION_CODES: Final = frozenset({"23505", "SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_PRIMARYKEY"})


def insert_many(model: type[models.Model], columns: tuple[str, ...], rows: ColumnRows) -> None:
    insert_prepared(model, columns, to_stored_rows(model, columns, rows))


def insert_objects(objects: Sequence[models.Model]) -> None:
    """Insert new rows of one model as `bulk_create` does, but without telling their ids."""
    if objects:
        model, now = type(objects[0]), timezone.now()
        fields = [field for field in model._meta.concrete_fields if not field.primary_key]
        columns = tuple(str(field.column) for field in fields)
        names = [field.attname for field in fields]
        rows = [[now if name == "created_at" else getattr(one, name) for name in names] for one in objects]
        insert_many(model, columns, rows)


def insert_prepared(model: type[models.Model], columns: tuple[str, ...], ready: ColumnRows) -> None:
    """COPY on PostgreSQL, one prepared statement on SQLite. JSON is text already, and on SQLite UUIDs and times."""
    if not ready:
        return
    table, names = model._meta.db_table, ", ".join(map(connection.ops.quote_name, columns))
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            # Unlike the cursor's other methods, COPY comes past Django's own names for errors.
            with connection.wrap_database_errors, cursor.copy(f"COPY {table} ({names}) FROM STDIN") as copy:
                for row in ready:
                    copy.write_row(row)
        else:
            marks = ", ".join(["%s"] * len(columns))
            cursor.executemany(f"INSERT INTO {table} ({names}) VALUES ({marks})", ready)


def filter_by_values(
    rows: "models.QuerySet[Row, Any]", column: str, values: Collection[str] | Collection[int]
) -> "models.QuerySet[Row, Any]":
    """Rows whose column is one of many values, passed as a single parameter: each of its own costs Python as much."""
    name = f"{connection.ops.quote_name(rows.model._meta.db_table)}.{connection.ops.quote_name(column)}"
    is_one = "= ANY(%s)" if connection.vendor == "postgresql" else "IN (SELECT value FROM json_each(%s))"
    return rows.extra(where=[f"{name} {is_one}"], params=[values_parameter(values)])


def values_parameter(values: Collection[str] | Collection[int]) -> list[str] | list[int] | str:
    """Many values as the single parameter of `filter_by_values`."""
    return list(values) if connection.vendor == "postgresql" else json.dumps(list(values))  # type: ignore[return-value]


def update_many(model: type[models.Model], columns: tuple[str, ...], rows: ColumnRows) -> None:
    """Give each row its own values by one statement; the first column is its id."""
    if not rows:
        return
    ready = to_stored_rows(model, columns, rows)
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            objects = [dict(zip(columns, row, strict=True)) for row in ready]
            values = json.dumps(objects, default=str, ensure_ascii=False)
            cursor.execute(update_from_json(model, columns), [values])
        else:
            cursor.executemany(update_by_id(model, columns), [(*row[1:], row[0]) for row in ready])


def reserve_row_ids(model: type[models.Model], number: int) -> Sequence[int]:
    """Reserve ids for rows that refer to each other before they are written.

    On SQLite these are the next ids, and the same transaction must write the rows.
    """
    if not number:
        return ()
    table = model._meta.db_table
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute(NEXT_IDS, [table, number])
            return [pk for (pk,) in cursor.fetchall()]
        cursor.execute("SELECT seq FROM sqlite_sequence WHERE name = %s", [table])
        last = (cursor.fetchone() or (0,))[0]
        return range(last + 1, last + 1 + number)


def delete_of_import(model: type[models.Model], import_id: int, most: int) -> int:
    """Delete up to ``most`` rows of one import in one statement and return their number.

    Unlike the ORM it looks up no related rows first: the database refuses to delete rows that others refer to.
    """
    table = model._meta.db_table
    first_rows = f"SELECT id FROM {table} WHERE source_import_id = %s ORDER BY id LIMIT %s"
    with connection.cursor() as cursor:
        cursor.execute(f"DELETE FROM {table} WHERE id IN ({first_rows})", [import_id, most])
        return int(cursor.rowcount)


def is_unique_violation(error: IntegrityError) -> bool:
    """Whether the database refused a row because of a unique constraint."""
    cause = error.__cause__
    code = getattr(cause, "sqlstate", None) or getattr(cause, "sqlite_errorname", None)
    return code in UNIQUE_VIOLATION_CODES


def prepare_time(moment: datetime) -> datetime | str:
    """The time as `insert_prepared` needs it."""
    return time_for_sqlite(moment) if connection.vendor == "sqlite" else moment


def to_json_text(value: JsonMapping) -> str:
    return json.dumps(dict(value)) if value else "{}"


def refresh_statistics(*models_filled: type[models.Model]) -> None:
    """Analyze tables that were just filled in bulk, on PostgreSQL.

    Until autovacuum runs, PostgreSQL plans every statement for the few rows from before. SQLite plans by its indexes
    alone.
    """
    if connection.vendor == "postgresql":
        tables = ", ".join(model._meta.db_table for model in models_filled)
        with connection.cursor() as cursor:
            cursor.execute(f"ANALYZE (SKIP_LOCKED) {tables}")


@cache
def update_from_json(model: type[models.Model], columns: tuple[str, ...]) -> str:
    """The statement with one JSON parameter for all rows: hundreds of parameters would take longer."""
    table = model._meta.db_table
    sets = ", ".join(f"{name} = new.{name}" for name in columns[1:])
    types = ", ".join(f"{name} {column_type(model, name)}" for name in columns)
    return f"UPDATE {table} SET {sets} FROM json_to_recordset(%s::json) AS new ({types}) WHERE {table}.id = new.id"


@cache
def update_by_id(model: type[models.Model], columns: tuple[str, ...]) -> str:
    sets = ", ".join(f"{name} = %s" for name in columns[1:])
    return f"UPDATE {model._meta.db_table} SET {sets} WHERE id = %s"


def column_type(model: type[models.Model], column: str) -> str:
    field = get_column(model, column)
    return str((field.target_field if isinstance(field, models.ForeignKey) else field).rel_db_type(connection))


def get_column(model: type[models.Model], column: str) -> "models.Field[Any, Any]":
    return next(field for field in model._meta.concrete_fields if field.column == column)


def to_stored_rows(model: type[models.Model], columns: tuple[str, ...], rows: ColumnRows) -> ColumnRows:
    places = [
        (place, convert)
        for place, convert in enumerate(column_converters(model, columns, connection.vendor))
        if convert
    ]
    if not places:
        return rows
    ready = [list(row) for row in rows]
    for row in ready:
        for place, convert in places:
            if row[place] is not None:
                row[place] = convert(row[place])
    return ready


@cache
def column_converters(
    model: type[models.Model], columns: tuple[str, ...], vendor: str
) -> list[Callable[[Any], Any] | None]:
    return [column_converter(get_column(model, column), vendor) for column in columns]


def column_converter(field: "models.Field[Any, Any]", vendor: str) -> Callable[[Any], Any] | None:
    if isinstance(field, models.JSONField):
        return json.dumps
    if vendor == "sqlite" and isinstance(field, models.DateTimeField):
        return time_for_sqlite
    return attrgetter("hex") if vendor == "sqlite" and isinstance(field, models.UUIDField) else None


@lru_cache(maxsize=8)  # of many rows at once most are written at one moment
def time_for_sqlite(moment: datetime) -> str:
    return str(connection.ops.adapt_datetimefield_value(moment))
