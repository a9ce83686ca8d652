"""How many rows one transaction writes, by database."""

from typing import Final

from django.db import connection

ROWS_PER_TRANSACTION: Final = {"sqlite": 64, "postgresql": 512}  # rows in one transaction
# Where rows are stored or removed without the ORM: how many at least, and how long it may take to write more.
MIN_BULK_ROWS: Final = {"sqlite": 256, "postgresql": 2_048}
TRANSACTION_SECONDS: Final = {"sqlite": 0.012, "postgresql": 0.2}
MAX_BULK_ROWS: Final = 4_096
# For how many rows it is looked up at once what is there. On SQLite the next ones are read during the pauses.
ROWS_PER_LOOKUP: Final = {"sqlite": 512, "postgresql": 4_096}

COMPARISONS_INDEXED_AT_ONCE: Final = {"sqlite": 128, "postgresql": 500}


def rows_per_transaction() -> int:
    """How many rows one transaction writes through the ORM."""
    return ROWS_PER_TRANSACTION[connection.vendor]


def min_bulk_rows() -> int:
    """How many rows one transaction writes past the ORM, where nothing is known yet of how long that takes."""
    return MIN_BULK_ROWS[connection.vendor]


def rows_per_lookup() -> int:
    return ROWS_PER_LOOKUP[connection.vendor]


def comparisons_indexed_at_once() -> int:
    """How many comparisons one transaction makes searchable."""
    return COMPARISONS_INDEXED_AT_ONCE[connection.vendor]


def next_bulk_rows(rows: int, seconds: float) -> int:
    """How many rows the next transaction is to write, after one of so many that took so long."""
    if seconds > TRANSACTION_SECONDS[connection.vendor]:
        return max(min_bulk_rows(), rows // 2)
    return min(MAX_BULK_ROWS, rows * 2) if seconds * 2 < TRANSACTION_SECONDS[connection.vendor] else rows
