"""Writers that leave room for others: where there is one writer at a time, a tight loop shuts all others out."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.db import connection

ROWS_AT_ONCE: Final = 64


def rest_after(seconds: float) -> float:
    """How long to leave the database alone after a transaction that took so long."""
    return seconds if connection.vendor == "sqlite" else 0.0


@contextmanager
def paced() -> Iterator[None]:
    """Round a transaction that is one of many: on SQLite it is followed by a pause as long as it took."""
    began = time.monotonic()
    yield
    time.sleep(rest_after(time.monotonic() - began))
