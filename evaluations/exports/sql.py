"""The heartbeat of an export over a database connection of its own."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import DEFAULT_DB_ALIAS, connections
from django.db.backends.utils import CursorWrapper


@contextmanager
def open_separate_cursor() -> Iterator[CursorWrapper]:
    """A connection of its own, while the usual one is in a transaction."""
    connection = connections.create_connection(DEFAULT_DB_ALIAS)
    try:
        with connection.cursor() as cursor:
            yield cursor
    finally:
        connection.close()
