"""The SQL of backups: a snapshot to read from, a range of ids to restore into."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.db import connection, models, transaction


@contextmanager
def open_snapshot() -> Iterator[None]:
    """Everything read within is as of one moment; writers are not blocked."""
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


# Ids that others take while a range is being set aside on PostgreSQL fall into this gap.
ID_GAP: Final = 1_000_000

# ---- rows ------------------------------------------------------------------------------------


def reserve_id_range(model: type[models.Model], span: tuple[int, int]) -> int:
    """Reserve a range of ids that nobody else uses. Returns the distance by which ids are shifted."""
    table = model._meta.db_table
    low, high = span
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute("SELECT coalesce(max(seq), 0) FROM sqlite_sequence WHERE name = %s", [table])
            return int(cursor.fetchone()[0]) + 1 - low
        cursor.execute("SELECT pg_get_serial_sequence(%s, 'id')", [table])
        sequence = cursor.fetchone()[0]
        cursor.execute(f"SELECT last_value FROM {sequence}")
        first = int(cursor.fetchone()[0]) + ID_GAP
        cursor.execute("SELECT setval(%s, %s)", [sequence, first + high - low + 1])
        return first - low
