"""Columns under other names, values for whole files, and words for choices."""

import io
import json
from typing import Any

import pytest

from evaluations.domain.errors import ColumnsUnknown
from evaluations.domain.files import BadRow, ComparisonRow, FileEntry, ReadOptions, ResponseRow, ScoreRow, VerdictRow
from evaluations.formats.file_reader import read_file_rows
from evaluations.formats.seen_index import SeenIndex

ROW = {"prompt": "Why?", "left": "Because.", "right": "No idea.", "winner": "model_b", "context": "kept aside"}
READING: dict[str, Any] = {
    "format": "comparisons",
    "mapping": {"prompt": "query", "left": "response_a", "right": "response_b", "winner": "choice"},
    "constants": {"query_id": "#row", "candidate_a": "m1", "candidate_b": "m2", "rater": "ann", "rater_kind": "human"},
    "choices": {"model_b": "B"},
}


def entries(*rows: dict[str, Any], **reading: Any) -> list[FileEntry | BadRow]:
    content = "".join(f"{json.dumps(row)}\n" for row in rows).encode()
    with SeenIndex() as counted:
        return list(
            read_file_rows(io.BytesIO(content), "rows.jsonl", ReadOptions(**{**READING, **reading}), counted).entries
        )


def rows_of(entry: FileEntry | BadRow) -> tuple[Any, ...]:
    assert isinstance(entry, FileEntry), entry
    return entry.rows


def test_a_row_brings_its_comparison_and_the_choice_beside_it() -> None:
    comparison, verdict = rows_of(entries(ROW)[0])
    assert isinstance(comparison, ComparisonRow)
    assert isinstance(verdict, VerdictRow)
    assert (comparison.query.key, comparison.candidate_a, comparison.candidate_b) == ("0", "m1", "m2")
    assert (verdict.choice, verdict.rater) == ("B", "ann")
    assert comparison.metadata == {}


def test_a_word_for_no_choice_leaves_the_comparison_alone() -> None:
    assert len(rows_of(entries(ROW, choices={"model_b": ""})[0])) == 1


def test_the_name_of_a_candidate_is_a_choice_of_it() -> None:
    _, verdict = rows_of(entries({**ROW, "winner": "m1"})[0])
    assert verdict.choice == "A"


def test_an_id_made_of_the_query_is_the_same_in_every_row_of_it() -> None:
    constants = {**READING["constants"], "query_id": "#text"}
    first, second, third = (
        rows_of(one)[0].query.key for one in entries(ROW, ROW, {**ROW, "prompt": "Who?"}, constants=constants)
    )
    assert first == second != third


def test_one_column_may_be_two_fields() -> None:
    mapping = {**READING["mapping"], "prompt": "query, query_id"}
    constants = {name: value for name, value in READING["constants"].items() if name != "query_id"}
    comparison = rows_of(entries(ROW, mapping=mapping, constants=constants)[0])[0]
    assert comparison.query.key == "Why?"
    assert comparison.query.messages[0]["content"] == "Why?"


def test_a_column_called_like_a_field_that_is_another_becomes_metadata() -> None:
    comparison = rows_of(entries({**ROW, "query": "not this"})[0])[0]
    assert comparison.query.messages[0]["content"] == "Why?"
    assert comparison.metadata == {"query of the file": "not this"}


def test_a_response_brings_the_score_beside_it() -> None:
    row = {"q": "1", "prompt": "Why?", "text": "Because.", "stars": 4}
    (entry,) = entries(
        row,
        format="responses",
        mapping={"q": "query_id", "prompt": "query", "text": "response", "stars": "value"},
        constants={"candidate": "m1", "rater": "ann", "rater_kind": "human", "aspect": "style"},
        choices={},
    )
    response, score = rows_of(entry)
    assert isinstance(response, ResponseRow)
    assert isinstance(score, ScoreRow)
    assert (score.value, score.aspect, score.candidate) == (4.0, "style", "m1")


def test_a_failure_of_a_judge_stands_where_a_response_has_no_score() -> None:
    told = {"q": "1", "prompt": "Why?", "text": "Because.", "stars": None, "error": "unreadable"}
    (entry,) = entries(
        told,
        format="responses",
        mapping={"q": "query_id", "prompt": "query", "text": "response", "stars": "value", "error": "failure"},
        constants={"candidate": "m1", "rater": "gpt", "rater_kind": "judge"},
        choices={},
    )
    _, score = rows_of(entry)
    assert isinstance(score, ScoreRow)
    assert (score.value, score.failure) == (None, "unreadable")


def test_columns_that_fit_nothing_are_said_to_be_unknown() -> None:
    with pytest.raises(ColumnsUnknown):
        entries({"a": 1, "b": 2}, format="auto", mapping={}, constants={}, choices={})


def test_several_columns_of_choices_are_verdicts_on_an_aspect_each() -> None:
    row = {"q": "Why?", "x": "a", "y": "b", "style": "GPT-4", "facts": "llama", "harm": "", "who": "ann"}
    (entry,) = entries(
        row,
        format="comparisons",
        mapping={
            "q": "query",
            "x": "response_a",
            "y": "response_b",
            "who": "rater",
            **{name: f"choice:{name}" for name in ("style", "facts", "harm")},
        },
        constants={"query_id": "#text", "candidate_a": "gpt-4", "candidate_b": "Llama", "rater_kind": "human"},
        choices={},
    )
    comparison, *verdicts = rows_of(entry)
    assert comparison.metadata == {}
    assert [(verdict.aspect, verdict.choice) for verdict in verdicts] == [("facts", "B"), ("style", "A")]
