"""Rows that several tests find, stored once."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import transaction

from tests.factories.evaluations import FIRST_NUMBER, restart_numbers


@contextmanager
def rows_taken_back() -> Iterator[None]:
    """Whatever is stored in the block is gone after it, and has no name that a test would give."""
    restart_numbers(FIRST_NUMBER + 100_000)
    with transaction.atomic():
        yield
        transaction.set_rollback(True)
