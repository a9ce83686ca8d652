"""Which format a file is: by its columns, or nobody knows."""

import io
import json
from typing import Any

import pytest

from evaluations.domain.errors import ColumnsUnknown, InputRefused
from evaluations.domain.files import BadRow, ComparisonRow, FileEntry, ReadOptions
from evaluations.formats.file_reader import FileContents, read_file_rows
from evaluations.formats.record_streams import FIRST_RECORDS
from evaluations.formats.seen_index import SeenIndex
from tests.factories.imports import COMPARISON
from tests.formats.imported_rows import import_rows, read_contents, rows_of_kind
from tests.helpers.packed_files import as_json, as_parquet, as_separated


def test_a_file_that_may_be_two_things_is_refused_with_the_names_of_both() -> None:
    record = {"prompt": "Why?", "chosen": "Because.", "rejected": "?", "data": {}, "annotations": []}
    with pytest.raises(InputRefused) as refused:
        read_contents([record])
    assert str(refused.value) == ("rows.jsonl may be preferences or label-studio. Choose the format.")
    assert read_contents([record], format="preferences").format.name == "preferences"


def test_what_only_looks_like_a_file_of_others_is_left_to_the_mapping() -> None:
    with pytest.raises(ColumnsUnknown, match="no column “generator”, required by the format alpaca-eval"):
        read_contents([{"instruction": "Add.", "output": "2", "model": "gpt4"}])


def test_columns_that_many_files_have_are_not_said_to_be_near_a_format() -> None:
    with pytest.raises(ColumnsUnknown) as refused:
        read_contents([{"prompt": "Why?", "response 1": "x", "response 2": "y", "label": 0}])
    assert "(prompt, response 1, response 2, label) match none" in str(refused.value)


def test_material_and_verdicts_of_one_file_come_by_either_door() -> None:
    record = {"prompt": "Why?", "chosen": "Because.", "rejected": "?"}
    assert {read_contents([record], brings=what).format.name for what in ("comparisons", "verdicts", "")} == {
        "preferences"
    }
    with pytest.raises(InputRefused, match="has comparisons, not scores"):
        read_contents([record], brings="scores")


UNKNOWN = ""  # a person is asked what its columns mean
PREFERENCE: dict[str, Any] = {"prompt": "Why?", "chosen": "Because.", "rejected": "?"}
BATTLE = {
    "model_a": "m1",
    "model_b": "m2",
    "prompt": "Why?",
    "response_a": "x",
    "response_b": "y",
    "winner_model_a": 1,
    "winner_model_b": 0,
    "winner_tie": 0,
}
ALPACA: dict[str, Any] = {"instruction": "Why?", "output_1": "x", "output_2": "y", "preference": 1}
SHAPES: dict[str, tuple[dict[str, Any], str]] = {
    "AutoArena": ({"prompt": "Why?", "response": "x"}, "auto-arena"),
    "AutoArena with models": ({"prompt": "Why?", "response": "x", "model": "m"}, "auto-arena"),
    "our comparisons without ids": (
        {"query": "Why?", "candidate_a": "m", "response_a": "x", "candidate_b": "n", "response_b": "y"},
        "comparisons",
    ),
    "our responses without ids": ({"query": "Why?", "response": "x", "category": "c"}, "responses"),
    "responses with ids": ({"id": "q", "category": "c", "prompt": "Why?", "response": "x"}, UNKNOWN),
    "responses to messages": ({"id": "q", "messages": [], "response": "x"}, UNKNOWN),
    "responses with a score": ({"prompt": "Why?", "response": "x", "score": 4}, UNKNOWN),
    "responses with other ids": ({"uid": "q", "category": "c", "prompt": "Why?", "response": "x"}, UNKNOWN),
    "AutoArena's head-to-heads": (
        {"prompt": "Why?", "response_a": "x", "response_b": "y", "history": [{"judge_name": "j", "winner": "A"}]},
        "auto-arena",
    ),
    "two answers after a chat": (
        {"prompt": "Why?", "response_a": "x", "response_b": "y", "history": [["Hi", "Hello"]]},
        UNKNOWN,
    ),
    "preferences": (PREFERENCE, "preferences"),
    "Alpaca's preferences": ({"instruction": "Why?", "input": "", "chosen": "x", "rejected": "y"}, "preferences"),
    "Axolotl's preferences": ({"instruction": "Why?", "chosen_response": "x", "rejected_response": "y"}, "preferences"),
    "a page of the hub's viewer": ({"row_idx": 0, "row": PREFERENCE, "truncated_cells": []}, "preferences"),
    "ShareGPT's preferences": (
        {
            "conversations": [{"from": "human", "value": "Why?"}],
            "chosen": {"from": "gpt", "value": "x"},
            "rejected": {"from": "gpt", "value": "y"},
        },
        "preferences",
    ),
    "OpenAI's preferences": (
        {
            "input": {"messages": [{"role": "user", "content": "Why?"}]},
            "preferred_output": [{"role": "assistant", "content": "x"}],
            "non_preferred_output": [{"role": "assistant", "content": "y"}],
        },
        "preferences",
    ),
    "numbers of the chosen": ({"prompt": "Why?", "responses": ["x", "y"], "chosen": 0, "rejected": 1}, UNKNOWN),
    "KTO": ({"prompt": "Why?", "completion": "x", "label": True}, "kto"),
    "KTO with numbers": ({"prompt": "Why?", "completion": "x", "label": 1}, UNKNOWN),
    "tags of KTO": ({"instruction": "Why?", "input": "", "output": "x", "kto_tag": False}, "kto"),
    "prompts and completions": ({"prompt": "Why?", "completion": "x"}, UNKNOWN),
    "Arena's table": (BATTLE, "arena"),
    "a table without a tie": ({key: value for key, value in BATTLE.items() if key != "winner_tie"}, UNKNOWN),
    "a table with a winner": ({**{key: BATTLE[key] for key in list(BATTLE)[:5]}, "winner": "model_a"}, "arena"),
    "AlpacaEval's annotations": (ALPACA, "alpaca-eval"),
    "AlpacaEval's tie": ({**ALPACA, "preference": 0, "annotator_index": 1}, "alpaca-eval"),
    "preferences of 0": ({**ALPACA, "preference": 0}, UNKNOWN),
    "preferences in words": ({**ALPACA, "preference": "A"}, UNKNOWN),
    "PandaLM's results": ({"idx": 1, "gpt_result": "Tie"}, "pandalm"),
    "results of something else": ({"idx": 1, "exam_result": "pass"}, UNKNOWN),
    "LLMBar": ({"input": "Why?", "output_1": "x", "output_2": "y", "label": 2}, "llmbar"),
    "labels from 0": ({"input": "Why?", "output_1": "x", "output_2": "y", "label": 0}, UNKNOWN),
    "Arena-Hard": ({"question_id": "u", "model": "m", "judge": "j", "games": []}, "arena-hard"),
    "games of something else": ({"question_id": "u", "player": "m", "games": []}, UNKNOWN),
    "MT-bench's scores": ({"question_id": 81, "model": "m", "judge": ["j"], "score": 3, "judgment": ""}, "mt-bench"),
    "JudgeBench": (
        {"pair_id": "p", "question": "Why?", "response_A": "x", "response_B": "y", "label": "A>B"},
        "judgebench",
    ),
    "Label Studio": ({"data": {"prompt": "Why?"}, "annotations": []}, "label-studio"),
    "Argilla": ({"fields": {"prompt": "Why?"}, "responses": []}, "argilla"),
}


@pytest.mark.parametrize("name", list(SHAPES))
def test_each_shape_of_file_is_what_it_is_and_its_near_misses_are_asked_about(name: str) -> None:
    record, form = SHAPES[name]
    if form:
        assert read_contents([record]).format.name == form
    else:
        with pytest.raises(ColumnsUnknown):
            read_contents([record])


@pytest.mark.parametrize(
    ("record", "what"),
    [
        ({"resourceSpans": [{"scopeSpans": []}]}, "OpenTelemetry traces"),
        ({"traceId": "a", "spanId": "b", "name": "chat", "attributes": []}, "OpenTelemetry traces"),
        (
            {"id": "i", "datasetId": "d", "input": {}, "expectedOutput": "x", "status": "ACTIVE"},
            "Langfuse dataset items without model responses",
        ),
        ({"item": {"input": "Hi"}, "sample": {"output_text": "Hello"}}, "OpenAI Evals results"),
        ({"run_type": "llm", "inputs": {}, "outputs": {}}, "LangSmith runs"),
        ({"id": "b", "custom_id": "c", "response": {}, "error": None}, "OpenAI Batch API replies"),
    ],
)
def test_files_of_other_tools_that_cannot_be_imported_are_refused_by_name(record: dict[str, Any], what: str) -> None:
    with pytest.raises(InputRefused) as refused:
        read_contents([record])
    assert not isinstance(refused.value, ColumnsUnknown)
    assert str(refused.value) == (
        f"rows.jsonl has {what}. This format is not supported. "
        "Convert it to rows with query_id, query, candidate and response, or map its columns."
    )


def test_columns_that_a_person_maps_are_read_whatever_tool_wrote_them() -> None:
    record = {"id": "q", "datasetId": "d", "input": "Hi", "expectedOutput": "Hello"}
    mapping = {"input": "query", "expectedOutput": "response", "id": "query_id"}
    assert read_contents([record], mapping=mapping, constants={"candidate": "m"}).format.name == "responses"


# ---- columns from all over the file ------------------------------------------------------------------

FIRST: dict[str, Any] = {"prompt": "Why?", "chosen": "Because."}


def test_a_column_that_the_first_row_lacks_is_a_column() -> None:
    entries = list(read_contents([FIRST, PREFERENCE, PREFERENCE]).entries)
    assert isinstance(entries[0], BadRow)
    assert (entries[0].line, entries[0].reason) == (1, "rejected is missing")
    assert all(isinstance(entry, FileEntry) for entry in entries[1:])


def read(content: bytes, name: str = "rows", **reading: Any) -> FileContents:
    return read_file_rows(io.BytesIO(content), name, ReadOptions(**reading), SeenIndex())


def test_a_column_of_late_rows_alone_is_found_in_a_long_file() -> None:
    records = [FIRST] * 60_000 + [PREFERENCE] * 30_000
    lines = "".join(f"{json.dumps(record)}\n" for record in records).encode()
    assert len(records) > FIRST_RECORDS
    found = read(lines)
    assert found.format.name == "preferences"
    entries = list(found.entries)
    assert [entry.line for entry in entries[-2:]] == [89_999, 90_000]  # looking ahead has lost no row
    assert sum(isinstance(entry, FileEntry) for entry in entries) == 30_000


def test_rows_of_the_hubs_viewer_are_read_and_those_it_cut_off_are_bad() -> None:
    whole = {"row_idx": 0, "row": PREFERENCE, "truncated_cells": []}
    good, bad = read_contents([whole, {**whole, "truncated_cells": ["chosen"]}]).entries
    assert isinstance(good, FileEntry)
    assert bad == BadRow(2, "the dataset viewer cut off “chosen”. Download the dataset’s own files")


def test_a_table_that_pandas_wrote_by_columns_is_read_by_rows() -> None:
    table = {"prompt": {"0": "Why?", "1": "How?"}, "chosen": {"0": "x", "1": "x"}, "rejected": {"0": "y", "1": "y"}}
    found = rows_of_kind(ComparisonRow, import_rows(table))
    assert [row.query.messages[0]["content"] for row in found] == ["Why?", "How?"]


def test_an_array_and_nested_fields_are_looked_at_beyond_their_first_object() -> None:
    assert read(as_json([FIRST, PREFERENCE])).format.name == "preferences"
    tasks = [{"data": {"frage": "Why?"}, "annotations": []}, {"data": {"antwort": "x"}, "annotations": []}]
    assert read_contents(tasks, mapping={"antwort": "response_a"}).format.name == "label-studio"


def test_a_file_that_breaks_off_gives_its_rows_and_then_says_where() -> None:
    text = json.dumps([PREFERENCE, PREFERENCE], indent=1)[:-40]
    entries = read(text.encode()).entries
    assert isinstance(next(entries), FileEntry)
    with pytest.raises(InputRefused, match="broken at line"):
        list(entries)


# ---- a text that is JSON stays the text that it is -----------------------------------------------------

TEXTS = ['{"a": 1}', '["red"]', '"red"', "17", "null", "true", "[]", '[{"role": "user", "content": "x"}]', "{}"]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("written", [as_separated(","), as_json, as_parquet], ids=["csv", "json", "parquet"])
def test_an_answer_that_is_json_is_kept_as_it_is(text: str, written: Any) -> None:
    for record in (
        {**{key: str(value) for key, value in BATTLE.items()}, "response_a": text},
        {**PREFERENCE, "chosen": text},
        {**COMPARISON, "response_a": text},
        {"prompt": "Why?", "response_a": text, "response_b": "y", "history": '[{"judge_name": "j", "winner": "A"}]'},
        {"instruction": "Why?", "output_1": text, "output_2": "y", "generator_1": "a", "generator_2": "b"}
        | {"annotator": "j", "preference": "1"},
    ):
        (entry,) = read(written([record])).entries
        assert isinstance(entry, FileEntry), entry
        (found,) = rows_of_kind(ComparisonRow, list(entry.rows))
        assert text in (found.response_a[0]["content"], found.response_b[0]["content"])
        assert len(found.response_a) == len(found.response_b) == 1


def test_lists_of_turns_in_the_cells_of_a_table_are_turns_where_every_row_has_them() -> None:
    turns = {column: json.dumps(["one", "two"]) for column in ("prompt", "response_a", "response_b")}
    found = rows_of_kind(ComparisonRow, import_rows(*[{**BATTLE, **turns, "id": number} for number in range(20)]))
    assert [len(row.response_a) for row in found] == [3] * 20
    late = [{**BATTLE, **turns, "id": number} for number in range(20)] + [{**BATTLE, "id": 20}]
    (*_, bad) = read_contents(late).entries
    assert bad == BadRow(21, "prompt is not valid JSON")


def test_one_list_among_texts_is_a_text() -> None:
    turns = dict.fromkeys(("prompt", "response_a", "response_b"), '["red"]')
    found = rows_of_kind(ComparisonRow, import_rows({**BATTLE, **turns, "id": 1}, {**BATTLE, "id": 2}))
    assert [row.response_a[0]["content"] for row in found] == ['["red"]', "x"]


def test_chat_messages_in_the_cells_of_a_table_are_messages_where_every_row_has_them() -> None:
    def said(text: str) -> str:
        return json.dumps([{"role": "user", "content": "Why?"}, {"role": "assistant", "content": text}])

    (row,) = rows_of_kind(ComparisonRow, import_rows({"chosen": said("x"), "rejected": said("y")}))
    assert row.query.messages == [{"role": "user", "content": "Why?"}]
