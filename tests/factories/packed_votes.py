"""An assertion that packed votes equal a recount of the verdicts."""

from collections.abc import Iterable
from typing import Any

from evaluations.models.comparisons import Comparison
from evaluations.models.runs import test_call_condition
from evaluations.models.verdicts import PackedVotes, Verdict
from evaluations.verdicts.packed_votes import get_aspect_positions, pack_verdicts

COMPARED_COLUMNS = (
    *("rater_id", "comparison_id", "shown", "sample", "call_id", "review_id", "source_import_id"),
    *("aspect_block", "first_choices", "final_choices", "inconsistent_aspects", "decided_at_ms"),
)


def repack_comparisons(comparisons: Iterable[Comparison]) -> list[PackedVotes]:
    """The rows of these comparisons, packed anew from their verdicts."""
    packed = []
    for comparison in comparisons:
        verdicts = Verdict.all_rows.filter(comparison=comparison).exclude(test_call_condition())
        verdicts = verdicts.select_related("review", "source_import").order_by("pk")
        packed += pack_verdicts(verdicts, get_aspect_positions(comparison.evaluation_id))
    return packed


def list_packed_rows(rows: Any) -> list[tuple[int, ...]]:
    """The rows in an order of their own, an empty column as -1."""
    values = [[getattr(row, column) for column in COMPARED_COLUMNS] for row in rows]
    return sorted(tuple(-1 if value is None else value for value in row) for row in values)


def assert_packed_votes_match() -> None:
    due = repack_comparisons(Comparison.all_rows.select_related("evaluation"))
    assert list_packed_rows(PackedVotes.all_rows.all()) == list_packed_rows(due)
