"""An exported file is read as the comparisons it was written from, without what raters said of them."""

import io
from typing import Any

import pytest

from evaluations.domain.files import ComparisonRow, FileEntry, ReadOptions
from evaluations.formats import exported_rows
from evaluations.formats.csv_export import csv_export_lines
from evaluations.formats.exported_rows import ExportedRaters, ExportedRow, read_exported_material
from evaluations.formats.file_reader import read_file_rows
from evaluations.formats.jsonl_export import encode_line
from evaluations.formats.seen_index import SeenIndex

TURNS = [
    {"role": "user", "content": "Hello"},
    {"role": "assistant", "content": "Hi."},
    {"role": "user", "content": "مرحبا"},
]
MATERIAL: list[dict[str, Any]] = [
    {"query_id": "1", "query": "=1+1?", "messages": None, "response_a": "", "response_b": "-2\r\n\r\n'=3"},
    {"query_id": "2", "query": None, "messages": TURNS, "response_a": "，「引用」\n", "response_b": "'-'.join(x)"},
    {"query_id": "3", "query": "'=1", "messages": None, "response_a": TURNS[1:2] * 2, "response_b": '[{"content": 1}]'},
]
LABELS: dict[str, Any] = {
    "labels": {"clarity": {"choice": "A", "source": "single", "n": 1, "votes": {"A": 1}, "by": None}},
    "adjudications": {
        "clarity": {
            "choice": "A",
            "category": "",
            "reason": "=1",
            "by": "ada",
            "at": "2026-01-01T00:00:00+00:00",
            "in_bulk": False,
        }
    },
    "comments": [{"author": "ann", "aspect": None, "text": "-1", "at": "2026-01-01T00:00:00+00:00"}],
    "skipped": [{"rater": "ben", "rubric": "own 1", "reason": "=2", "at": "2026-01-01T00:00:00+00:00"}],
    "gold": [],
    "judges": [],
    "people": [
        {
            "rater": "ann",
            "rubric": None,
            "state": "final",
            "blind": None,
            "shown": "swapped",
            "note": "=1",
            "choices": {"clarity": {"first": "A", "final": "A", "note": "", "reason": "other"}},
        }
    ],
}
RATERS = ExportedRaters(aspects=["clarity"], people=["ann"], judges=[], gold=[])


def row(given: dict[str, Any]) -> ExportedRow:
    others = {"cluster": "c", "category": "talk", "context": None, "reference": "@ref", "metadata": {"a": [1, None]}}
    return {**others, "candidate_a": "alpha", "candidate_b": "beta", **given, **LABELS}  # type: ignore[typeddict-item]


def jsonl_lines(rows: list[Any], raters: object) -> list[bytes]:
    return list(map(encode_line, rows))


@pytest.mark.parametrize("write", [jsonl_lines, csv_export_lines])
def test_an_exported_file_is_read_as_the_comparisons_it_was_written_from(write: Any) -> None:
    file = io.BytesIO(b"".join(write([row(given) for given in MATERIAL], RATERS)))
    with SeenIndex() as seen:
        entries = list(read_file_rows(file, "export", ReadOptions(), seen).entries)
    assert len(entries) == len(MATERIAL)
    for entry, given in zip(entries, MATERIAL, strict=True):
        assert isinstance(entry, FileEntry)
        (read,) = entry.rows
        assert isinstance(read, ComparisonRow)
        assert read.query.key == given["query_id"]
        assert read.query.messages == (given["messages"] or [{"role": "user", "content": given["query"]}])
        assert (read.query.cluster, read.query.category) == ("c", "talk")
        assert (read.query.context, read.query.reference) == (None, "@ref")
        for found, response in ((read.response_a, given["response_a"]), (read.response_b, given["response_b"])):
            assert found == ([{"role": "assistant", "content": response}] if isinstance(response, str) else response)
        assert read.metadata == {"a": [1, None]}


def test_a_file_that_was_exported_before_people_settled_anything_is_read_too() -> None:
    since = ("adjudications", "comments", "skipped")
    earlier = {name: value for name, value in row(MATERIAL[0]).items() if name not in since}
    assert set(read_exported_material(earlier)) == set(exported_rows.MATERIAL)
    assert read_exported_material({"comments": "mine", "skipped": "2"}) == {"comments": "mine", "skipped": "2"}
