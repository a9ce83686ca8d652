"""Questions to the database server itself, and a copy of an SQLite file."""

from pathlib import Path

from django.db import connection


def read_server_version() -> str:
    return read_value("SELECT sqlite_version()", "SHOW server_version")


def read_durability_setting() -> str:
    """SQLite's journal mode, or the encoding of a PostgreSQL database."""
    return read_value("PRAGMA journal_mode", "SHOW server_encoding")


def read_value(on_sqlite: str, on_postgresql: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(on_sqlite if connection.vendor == "sqlite" else on_postgresql)
        return str(cursor.fetchone()[0])


def copy_sqlite_database(path: Path) -> None:
    """Write a consistent copy while others may write."""
    with connection.cursor() as cursor:
        cursor.execute("VACUUM INTO %s", [str(path)])
