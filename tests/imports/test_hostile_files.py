"""Files that are broken, or made to break what reads them: one sentence, and nothing of them is kept or stored."""

import json
from typing import Any

import pytest

from evaluations.domain.errors import InputRefused
from evaluations.models.comparisons import Query
from evaluations.models.imports import Import
from tests.factories.evaluations import make_evaluation
from tests.factories.imports import comparison_row, preview_rows
from tests.helpers.broken_files import CSV, WHOLE
from tests.helpers.packed_files import as_parquet

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]


@pytest.mark.parametrize(("name", "content", "sentence"), WHOLE.values(), ids=list(WHOLE))
def test_a_hostile_file_is_refused_in_one_sentence_and_not_kept(name: str, content: bytes, sentence: str) -> None:
    evaluation = make_evaluation()
    with pytest.raises(InputRefused) as refused:
        preview_rows(evaluation, content, name=name)
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not Import.objects.exists()
    assert not Query.all_rows.exists()


def deep(levels: int) -> object:
    value: object = 1
    for _ in range(levels):
        value = [value]
    return value


def test_rows_that_no_database_keeps_are_bad_wherever_they_stand() -> None:
    """The last of them changes its columns; the others are what JSON can say and a table cannot hold."""
    odd: list[tuple[dict[str, Any], str]] = [
        ({"score": float("nan")}, "score is NaN or infinite"),
        ({"score": float("-inf")}, "score is NaN or infinite"),
        ({"response_a": "a\x00b"}, "response_a holds a NUL character"),
        ({"response_a": "\ud800"}, "response_a holds half of a surrogate pair"),
        ({"notes": deep(60)}, "notes is nested more than 50 levels deep"),
        ({"query_id": "q" * 201}, "query_id has 201 characters; the limit is 200"),
        ({"candidate_b": None}, "candidate_b is missing"),
    ]
    lines = [json.dumps(comparison_row(f"q{number}", **columns)) for number, (columns, _) in enumerate(odd)]
    lines.append(lines[0].replace("NaN", "9" * 5_000))
    lines.append(json.dumps(comparison_row("good")))
    importing = preview_rows(make_evaluation(), "\n".join(lines).encode())
    reasons = [reason for _, reason in odd] + ["has a number with too many digits"]
    assert importing.bad_rows == [{"line": line, "reason": reason} for line, reason in enumerate(reasons, start=1)]
    assert importing.rows_stored == 1


def test_nan_in_a_table_is_a_bad_row_by_its_number() -> None:
    rows = [comparison_row(f"q{number}", score=score) for number, score in enumerate([1.0, float("nan")])]
    importing = preview_rows(make_evaluation(), as_parquet(rows), name="rows.parquet")
    assert importing.bad_rows == [{"line": 2, "reason": "score is NaN or infinite"}]


def test_a_header_in_the_middle_of_a_table_is_no_row() -> None:
    """Two files that somebody put one behind the other."""
    importing = preview_rows(make_evaluation(), CSV + CSV.replace(b"q1", b"r1"), name="rows.csv")
    assert importing.bad_rows == [{"line": 22, "reason": "repeats the header"}]
