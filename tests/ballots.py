"""That the ballots are what a recount of the verdicts gives."""

from typing import Any

from evaluations.models import Ballot, Comparison
from evaluations.services.balloting import recount

COLUMNS = (
    *("rater_id", "comparison_id", "shown", "sample", "call_id", "review_id", "source_import_id"),
    *("block", "first", "final", "inconsistent", "moment"),
)


def told(rows: Any) -> list[tuple[int, ...]]:
    """The rows in an order of their own, an empty column as -1."""
    found = [[getattr(row, column) for column in COLUMNS] for row in rows]
    return sorted(tuple(-1 if value is None else value for value in row) for row in found)


def assert_recounted() -> None:
    due = recount(Comparison.all_rows.select_related("evaluation"))
    assert told(Ballot.all_rows.all()) == told(due)
