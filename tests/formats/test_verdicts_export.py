"""Verdicts and scores, a row each, are read as they were written."""

import csv
import io
import string
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluations.domain.choices import INCONSISTENT, Choice, ShownOrder
from evaluations.domain.files import FileEntry, ReadOptions, ScoreRow, VerdictRow
from evaluations.domain.judges import FAILURE_STATES
from evaluations.formats.file_reader import read_file_rows
from evaluations.formats.jsonl_export import encode_line
from evaluations.formats.seen_index import SeenIndex
from evaluations.formats.verdicts_export import SCORE_COLUMNS, VERDICT_COLUMNS, verdict_csv_lines

Row = Mapping[str, Any]
# A name is no blank, and a spreadsheet may take it for a formula. NUL and surrogates are in no database.
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=20)
NAMES = TEXTS.filter(str.strip)
CALLED = NAMES.map(str.strip).filter(bool)  # models and raters
KEYS = st.text(string.ascii_lowercase + string.digits + "_-", min_size=1, max_size=9)
SHOWN: dict[Any, ShownOrder] = {
    True: ShownOrder.SWAPPED,
    False: ShownOrder.AS_STORED,
    "folded": ShownOrder.FOLDED,
    None: ShownOrder.UNKNOWN,
}
OF_RATER = {"rubric": st.none() | TEXTS, "judge_kind": st.none(), "model": st.none() | TEXTS}
VERDICTS = st.fixed_dictionaries(
    {
        "query_id": NAMES,
        "candidate_a": CALLED,
        "candidate_b": CALLED,
        "rater": CALLED,
        "rater_kind": st.just("judge"),
        "aspect": KEYS,
        "choice": st.sampled_from([*map(str, Choice), *map(str, FAILURE_STATES), INCONSISTENT]),
        "shown_swapped": st.sampled_from([True, False, "folded", None]),
        "sample": st.integers(0, 32_767),
        "stage": st.just("final"),
        "final_choice": st.none(),
        "rationale": TEXTS,
        "note": TEXTS,
        "created_at": st.datetimes().map(lambda at: f"{at.isoformat()}+00:00"),
        "blind": st.sampled_from([True, False, None]),
        **OF_RATER,
    }
).map(lambda row: {**row, "shown_swapped": "folded"} if row["choice"] == INCONSISTENT else row)
SCORES = st.fixed_dictionaries(
    {
        "query_id": NAMES,
        "candidate": CALLED,
        "rater": CALLED,
        "rater_kind": st.just("human"),
        "aspect": KEYS,
        "value": st.floats(allow_nan=False, allow_infinity=False).map(lambda value: value + 0.0),
        "sample": st.integers(0, 32_767),
        "stage": st.just("first"),
        "final_value": st.none() | st.floats(allow_nan=False, allow_infinity=False),
        "lower_is_better": st.booleans(),
        "margin": st.floats(0, 1),
        "rationale": TEXTS,
        "note": TEXTS,
        "created_at": st.just("2026-01-31T12:00:00+00:00"),
        **OF_RATER,
    }
)
Write = Callable[[Sequence[Row], tuple[str, ...]], Iterator[bytes]]
BOTH: dict[str, Write] = {
    "jsonl": lambda rows, columns: map(encode_line, rows),
    "csv": verdict_csv_lines,
}


def read(content: bytes, name: str) -> list[Any]:
    with SeenIndex() as seen:
        entries = list(read_file_rows(io.BytesIO(content), name, ReadOptions(), seen).entries)
    assert all(isinstance(entry, FileEntry) for entry in entries), entries
    return [row for entry in entries if isinstance(entry, FileEntry) for row in entry.rows]


@pytest.mark.parametrize("ending", BOTH)
@given(rows=st.lists(VERDICTS, min_size=1, max_size=4))
def test_verdicts_are_read_as_they_were_written(ending: str, rows: list[Row]) -> None:
    found = read(b"".join(BOTH[ending](rows, VERDICT_COLUMNS)), f"file.{ending}")
    assert len(found) == len(rows)
    for back, row in zip(found, rows, strict=True):
        assert isinstance(back, VerdictRow)
        assert (back.query_key, back.candidate_a, back.candidate_b) == (
            row["query_id"],
            row["candidate_a"],
            row["candidate_b"],
        )
        assert (back.rater, back.rater_kind, back.aspect) == (row["rater"], row["rater_kind"], row["aspect"])
        assert (back.choice, back.shown, back.sample) == (row["choice"], SHOWN[row["shown_swapped"]], row["sample"])
        assert (back.rationale, back.note, back.created_at) == (row["rationale"], row["note"], row["created_at"])


@pytest.mark.parametrize("ending", BOTH)
@given(rows=st.lists(SCORES, min_size=1, max_size=4))
def test_scores_are_read_as_they_were_written(ending: str, rows: list[Row]) -> None:
    found = read(b"".join(BOTH[ending](rows, SCORE_COLUMNS)), f"file.{ending}")
    assert len(found) == len(rows)
    for back, row in zip(found, rows, strict=True):
        assert isinstance(back, ScoreRow)
        assert (back.query_key, back.candidate, back.rater) == (row["query_id"], row["candidate"], row["rater"])
        assert (back.aspect, back.value, back.sample) == (row["aspect"], row["value"], row["sample"])
        assert back.rationale == row["rationale"]


def test_a_cell_that_a_spreadsheet_would_execute_is_harmless_and_a_negative_number_is_none() -> None:
    row = {**dict.fromkeys(SCORE_COLUMNS, ""), "rater": "=1+1", "value": -0.5, "margin": 0.0, "final_value": None}
    (cells,) = csv.DictReader(io.StringIO(b"".join(verdict_csv_lines([row], SCORE_COLUMNS)).decode(), newline=""))
    assert (cells["rater"], cells["value"], cells["final_value"]) == ("'=1+1", "-0.5", "")
    assert cells["neutralised"] == "rater"
