"""Rows that several tests find, stored once."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction

from tests.factories.evaluations import FIRST_NUMBER, restart_numbers


@contextmanager
def rows_taken_back() -> Iterator[None]:
    """Roll back, after the block, what it stored. Its rows have names that no test gives."""
    restart_numbers(FIRST_NUMBER + 100_000)
    with transaction.atomic():
        yield
        transaction.set_rollback(True)
