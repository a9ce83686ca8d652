"""What PostgreSQL's planner believes of a table."""

from django.db import connection


def keep_autovacuum_away(table: str) -> None:
    """Until the test's transaction ends. While it looks at a table, the product does not wait for it but goes on."""
    with connection.cursor() as cursor:
        cursor.execute(f"LOCK TABLE {table} IN SHARE UPDATE EXCLUSIVE MODE")


def empty(table: str) -> None:
    """Until the test's transaction ends, and that long nobody else looks at the table, autovacuum neither."""
    with connection.cursor() as cursor:
        cursor.execute(f"TRUNCATE {table}")


def expected_rows(table: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT reltuples FROM pg_class WHERE relname = %s", [table])
        return int(cursor.fetchone()[0])
