"""Cells that a spreadsheet would execute are made harmless, and read back as they were."""

import csv
import io
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluations.formats.csv_export import csv_export_lines, csv_line
from evaluations.formats.exported_rows import MATERIAL, ExportedRaters, ExportedRow, read_exported_material
from evaluations.formats.jsonl_export import encode_line

RATERS = ExportedRaters(aspects=["clarity"], people=["ann"], judges=[], gold=[])


def row(**given: Any) -> ExportedRow:
    plain: dict[str, Any] = dict.fromkeys(("messages", "context", "reference"))
    plain |= dict.fromkeys(("query_id", "cluster", "category", "query", "candidate_a", "candidate_b"), "x")
    plain |= {"response_a": "a", "response_b": "b", "metadata": {}}
    said: dict[str, Any] = {
        "labels": {},
        "adjudications": {},
        "comments": [],
        "skipped": [],
        "gold": [],
        "judges": [],
        "people": [],
    }
    return {**plain, **said, **given}  # type: ignore[typeddict-item]


def written(one: ExportedRow) -> dict[str, str]:
    text = b"".join(csv_export_lines([one], RATERS)).decode()
    (cells,) = csv.DictReader(io.StringIO(text, newline=""))
    return cells


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠"])
def test_a_cell_that_begins_like_a_formula_gets_an_apostrophe(start: str) -> None:
    cells = written(row(response_a=f'{start}HYPERLINK("http://example.org")', query="2 + 2 = ?"))
    assert cells["response_a"] == f'\'{start}HYPERLINK("http://example.org")'
    assert cells["query"] == "2 + 2 = ?"
    assert cells["neutralised"] == "response_a"


def test_what_people_and_judges_wrote_is_made_harmless_too() -> None:
    said = {"first": "A", "final": "A", "note": "=1+1", "reason": None}
    person = {
        "rater": "ann",
        "state": "final",
        "blind": True,
        "shown": "swapped",
        "note": "@x",
        "choices": {"clarity": said},
    }
    cells = written(row(people=[person]))
    assert cells["person:ann (note)"] == "'@x"
    assert cells["person:ann:clarity:note"] == "'=1+1"
    assert cells["neutralised"].split("\n") == ["person:ann (note)", "person:ann:clarity:note"]


def test_reading_takes_off_only_the_apostrophes_that_were_put_on() -> None:
    cells = written(row(response_a="-5", response_b="'-'.join(words)", query="'=' or '=='?"))
    read = read_exported_material(cells)
    assert (read["response_a"], read["response_b"], read["query"]) == ("-5", "'-'.join(words)", "'=' or '=='?")


def test_a_row_of_another_file_is_left_alone() -> None:
    foreign = {"query_id": "1", "query": "'=1", "response_a": "'-x", "labels": "mine", "label:x": "A"}
    assert read_exported_material(foreign) == foreign


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\x00"))
MESSAGES = st.lists(st.fixed_dictionaries({"role": st.just("assistant"), "content": TEXT}), min_size=1, max_size=3)
TRICKY = st.sampled_from(
    ['[{"content": "x", "role": "assistant"}]', '[{"content": ', "'=1", "=1", '"a,b"\r\n', "\ttab"]
)


@given(query=TEXT, response_a=TEXT | TRICKY | MESSAGES, response_b=TEXT | TRICKY | MESSAGES, note=TEXT)
def test_every_text_comes_back_from_csv_as_it_was(query: str, response_a: Any, response_b: Any, note: str) -> None:
    cells = read_exported_material(
        written(row(query=query, response_a=response_a, response_b=response_b, metadata={"note": note}))
    )
    assert set(cells) == set(MATERIAL)
    assert cells["query"] == query
    assert json.loads(cells["metadata"]) == {"note": note}
    for name, response in (("response_a", response_a), ("response_b", response_b)):
        alone = [{"role": "assistant", "content": response}]
        assert cells[name] == response or cells[name] == alone


@given(response=TEXT | MESSAGES)
def test_every_text_comes_back_from_jsonl_as_it_was(response: Any) -> None:
    (line,) = map(encode_line, [row(response_a=response)])
    assert line.count(b"\n") == 1
    read = read_exported_material(json.loads(line))
    assert set(read) == set(MATERIAL)
    assert read["response_a"] == response


@given(st.lists(st.text(alphabet=st.sampled_from("a ,\"\r\n\t'é;\\\0"), max_size=6), min_size=2, max_size=5))
def test_a_line_is_what_the_standard_library_writes(cells: list[str]) -> None:
    buffer = io.StringIO()
    csv.writer(buffer).writerow(cells)
    assert csv_line(cells) == buffer.getvalue().encode()
