"""How writers of long jobs leave room for others."""

from django.db import connection

from evaluations.models.transactions import write_pause_seconds


def test_a_writer_rests_on_sqlite_for_as_long_as_it_wrote() -> None:
    assert write_pause_seconds(0.25) == (0.25 if connection.vendor == "sqlite" else 0.0)
