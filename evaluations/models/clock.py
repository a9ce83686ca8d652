"""The clock of the database, by which leases, waits and days are told: those of machines differ."""

from datetime import UTC, datetime

from django.db import connection


def clock_sql() -> str:
    """The SQL of the database's time, for `parse_clock`."""
    on_postgresql = connection.vendor == "postgresql"
    return "STATEMENT_TIMESTAMP()" if on_postgresql else "(julianday('now') - 2440587.5) * 86400"


def parse_clock(value: datetime | float) -> datetime:
    """What `clock_sql` selected. SQLite has seconds since 1970 there, and whole milliseconds as in `Now`."""
    return value if isinstance(value, datetime) else datetime.fromtimestamp(round(value, 3), UTC)


def read_clock() -> datetime:
    """The database's time."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {clock_sql()}")
        return parse_clock(cursor.fetchone()[0])
