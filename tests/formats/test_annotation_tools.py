"""LLM Comparator, AutoArena, Label Studio and Argilla."""

import io
import json
from typing import Any

import pytest

from evaluations.domain.choices import ShownOrder
from evaluations.domain.files import (
    BadRow,
    ComparisonRow,
    FileEntry,
    FileRow,
    ReadOptions,
    ResponseRow,
    ScoreRow,
    VerdictRow,
)
from evaluations.domain.roles import RaterKind
from evaluations.formats.file_reader import read_file_rows
from evaluations.formats.seen_index import SeenIndex
from tests.formats.imported_rows import import_rows, read_contents, refusal_reason, rows_of_kind

# ---- LLM Comparator --------------------------------------------------------------------------------

EXAMPLE: dict[str, Any] = {
    "input_text": "Hello?",
    "tags": ["greeting", "short"],
    "output_text_a": "Hi.",
    "output_text_b": "",
    "score": 0.5,
    "individual_rater_scores": [],
    "custom_fields": {"language": ["English", "English"]},
}
RATINGS = [
    {"score": 1.5, "is_flipped": False, "rationale": "More."},
    {"score": -0.5, "is_flipped": True, "rationale": "Less."},
    {"score": 0, "rationale": "Same."},
]


def document(*examples: dict[str, Any]) -> list[FileRow]:
    whole = {"metadata": {}, "models": [{"name": "v2"}, {"name": "v1"}], "examples": examples}
    with SeenIndex() as seen:
        found = read_file_rows(io.BytesIO(json.dumps(whole, indent=2).encode()), "d.json", ReadOptions(), seen)
        assert found.format.name == "llm-comparator"
        entries = list(found.entries)
    assert not [entry for entry in entries if isinstance(entry, BadRow)], entries
    return [row for entry in entries if isinstance(entry, FileEntry) for row in entry.rows]


def test_an_example_is_a_comparison_of_the_two_models_with_each_raters_verdict() -> None:
    found = document({**EXAMPLE, "individual_rater_scores": RATINGS})
    (comparison,) = rows_of_kind(ComparisonRow, found)
    assert (comparison.candidate_a, comparison.candidate_b) == ("v2", "v1")
    assert (comparison.query.category, comparison.response_b[0]["content"]) == ("greeting", "")
    assert [(row.choice, row.shown, row.rationale) for row in rows_of_kind(VerdictRow, found)] == [
        ("A", ShownOrder.AS_STORED, "More."),
        ("B", ShownOrder.SWAPPED, "Less."),
        ("tie", ShownOrder.UNKNOWN, "Same."),
    ]


def test_without_raters_the_score_is_a_verdict_from_both_orders_and_no_score_is_none() -> None:
    (verdict,) = rows_of_kind(VerdictRow, document(EXAMPLE))
    assert (verdict.choice, verdict.shown, verdict.rater) == ("A", ShownOrder.FOLDED, "llm-comparator")
    assert not rows_of_kind(VerdictRow, document({**EXAMPLE, "score": None}))


def test_labels_of_an_export_from_here_are_not_read_as_metadata() -> None:
    ours = {"query_id": "q9", "candidate": ["new", "old"], "label_source": "people", "label: safety": "B"}
    (comparison,) = rows_of_kind(ComparisonRow, document({**EXAMPLE, "custom_fields": {**ours, "language": "English"}}))
    assert (comparison.query.key, comparison.candidate_a, comparison.metadata) == ("q9", "new", {"language": "English"})
    theirs = {"label: safety": "B", "query_id": "q9"}
    (comparison,) = rows_of_kind(ComparisonRow, document({**EXAMPLE, "custom_fields": theirs}))
    assert comparison.metadata == theirs


# ---- AutoArena --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "given", "candidate"),
    [("gpt-3.5.csv", "", "gpt-3.5"), ("uploads/llama.csv.gz", "", "llama"), ("a.csv", "mine", "mine")],
)
def test_a_table_of_prompts_and_responses_is_of_the_model_that_its_file_is_called_by(
    name: str, given: str, candidate: str
) -> None:
    with SeenIndex() as seen:
        found = read_file_rows(
            io.BytesIO(b"prompt,response\nWhy?,Because.\n"), name, ReadOptions(candidate=given), seen
        )
        (entry,) = found.entries
    assert isinstance(entry, FileEntry)
    (row,) = entry.rows
    assert isinstance(row, ResponseRow)
    assert (found.format.name, found.format.needs_pairing, row.candidate) == ("auto-arena", True, candidate)


def test_a_head_to_head_has_a_verdict_of_each_judge() -> None:
    history = [
        {"judge_id": 1, "judge_name": "gpt-4o", "winner": "-"},
        {"judge_id": 2, "judge_name": "Human", "winner": "B"},
    ]
    record = {"prompt": "Why?", "response_a": "Because.", "response_b": "?", "response_a_id": 1, "history": history}
    found = import_rows(record)
    assert [(row.rater, row.rater_kind, row.choice) for row in rows_of_kind(VerdictRow, found)] == [
        ("gpt-4o", RaterKind.JUDGE, "tie"),
        ("Human", RaterKind.HUMAN, "B"),
    ]
    assert refusal_reason({**record, "history": [{"winner": "C"}]}) == "winner is “C”; expected A, B or -"


# ---- Label Studio -----------------------------------------------------------------------------------


def said(selected: str, question: str = "pw") -> dict[str, Any]:
    return {"from_name": question, "to_name": "text1,text2", "type": "pairwise", "value": {"selected": selected}}


def chose(choice: str, question: str) -> dict[str, Any]:
    return {"from_name": question, "to_name": "text1", "type": "choices", "value": {"choices": [choice]}}


TASK: dict[str, Any] = {
    "id": 12,
    "data": {"prompt": "Why?", "answer1": "Because.", "answer2": "?"},
    "annotations": [
        {
            "id": 1,
            "completed_by": 3,
            "result": [said("left")],
            "was_cancelled": False,
            "created_at": "2024-05-01T10:00:00Z",
        },
        {"id": 2, "completed_by": {"id": 4, "email": "bo@x.org"}, "result": [chose("Response B is better", "Clarity")]},
        {"id": 3, "completed_by": 5, "result": [said("right")], "was_cancelled": True},
        {"id": 4, "completed_by": 5, "result": [said("answer2")], "ground_truth": True},
    ],
    "predictions": [{"model_version": "gpt-4o", "result": [chose("Both bad", "pw")]}, 17],
}


def test_a_task_is_a_comparison_with_what_people_gold_and_predictions_say() -> None:
    found = import_rows(TASK)
    (comparison,) = rows_of_kind(ComparisonRow, found)
    assert (comparison.query.key, comparison.query.messages[0]["content"]) == ("12", "Why?")
    assert (comparison.candidate_a, comparison.candidate_b) == ("answer1", "answer2")
    assert [(row.rater, row.rater_kind, row.aspect, row.choice) for row in rows_of_kind(VerdictRow, found)] == [
        ("annotator 3", "human", "overall", "A"),
        ("bo@x.org", "human", "clarity", "B"),
        ("gold", "gold", "overall", "B"),
        ("gpt-4o", "judge", "overall", "both_bad"),
    ]
    assert rows_of_kind(VerdictRow, found)[0].created_at == "2024-05-01T10:00:00Z"


@pytest.mark.parametrize(
    ("to_name", "selected", "choice", "shown"),
    [
        ("answer1,answer2", "left", "A", ShownOrder.AS_STORED),
        ("answer2,answer1", "left", "B", ShownOrder.SWAPPED),
        ("text2, text1", "right", "A", ShownOrder.SWAPPED),
        ("answer2,answer1", "answer2", "B", ShownOrder.SWAPPED),
        ("chat", "left", "A", ShownOrder.AS_STORED),
    ],
)
def test_left_is_the_text_that_the_project_names_first(
    to_name: str, selected: str, choice: str, shown: ShownOrder
) -> None:
    result = {**said(selected), "to_name": to_name}
    (verdict,) = rows_of_kind(
        VerdictRow, import_rows({**TASK, "annotations": [{"completed_by": 3, "result": [result]}], "predictions": []})
    )
    assert (verdict.candidate_a, verdict.choice, verdict.shown) == ("answer1", choice, shown)


def test_stars_under_a_text_are_a_score_of_it() -> None:
    stars = {"from_name": "quality", "to_name": "answer2", "type": "rating", "value": {"rating": 4}}
    (score,) = rows_of_kind(ScoreRow, import_rows({**TASK, "annotations": [{"completed_by": 3, "result": [stars]}]}))
    assert (score.candidate, score.aspect, score.value, score.rater) == (
        "answer2",
        "quality_rating",
        4.0,
        "annotator 3",
    )


def test_json_min_has_an_annotation_a_row() -> None:
    record = {
        "prompt": "Why?",
        "model_a": "m1",
        "model_b": "m2",
        "response_a": "Because.",
        "response_b": "?",
        "id": 12,
        "pw": [{"selected": "right"}],
        "clarity": "tie",
        "topic": "physics",
        "annotator": 3,
        "annotation_id": 7,
        "created_at": "2024-05-01T10:00:00Z",
        "updated_at": "2024-05-01T10:00:00Z",
        "lead_time": 4.2,
    }
    found = import_rows(record, {**record, "annotator": 4, "annotation_id": 8, "pw": [{"selected": "left"}]})
    assert [(row.candidate_a, row.candidate_b) for row in rows_of_kind(ComparisonRow, found)] == [("m1", "m2")] * 2
    assert import_rows({**record, "pw": '[{"selected": "right"}]'}) == found[:3]  # as it stands in a cell
    assert [(row.rater, row.aspect, row.choice) for row in rows_of_kind(VerdictRow, found)] == [
        ("annotator 3", "overall", "B"),
        ("annotator 3", "clarity", "tie"),
        ("annotator 4", "overall", "A"),
        ("annotator 4", "clarity", "tie"),
    ]


def test_fields_of_a_task_that_have_other_names_can_be_mapped() -> None:
    task = {**TASK, "data": {"ask": "Why?", "eins": "Because.", "zwei": "?"}, "annotations": []}
    assert refusal_reason(task) == (
        "no two of its fields (ask, eins, zwei) are the responses. Map them, "
        "such as --map FIELD=response_a OTHER=response_b"
    )
    mapping = {"ask": "query", "eins": "response_a", "zwei": "response_b"}
    (comparison,) = rows_of_kind(ComparisonRow, import_rows(task, mapping=mapping))
    assert (comparison.candidate_a, comparison.response_b[0]["content"]) == ("response_a", "?")
    assert read_contents([task], mapping=mapping).format.name == "label-studio"


# ---- Argilla ----------------------------------------------------------------------------------------

FIELDS = {"instruction": "Why?", "response-1": "Because.", "response-2": "?"}
RANKS = [{"value": "response-1", "rank": 2}, {"value": "response-2", "rank": 1}]
FIRST_VERSION: dict[str, Any] = {
    "id": "r1",
    "fields": FIELDS,
    "metadata": {},
    "responses": [
        {
            "user_id": "u1",
            "status": "submitted",
            "values": {"preference": {"value": RANKS}, "why": {"value": "Short."}},
        },
        {"user_id": "u2", "status": "draft", "values": {"preference": {"value": RANKS}}},
        {"user_id": "u3", "status": "discarded", "values": None},
    ],
    "suggestions": [{"question_name": "better-one", "type": "model", "value": "response-1", "agent": "gpt-4"}],
}
SECOND_VERSION: dict[str, Any] = {
    "id": "r1",
    "status": "completed",
    "fields": FIELDS,
    "responses": {"preference": [{"value": ["response-2", "response-1"], "user_id": "u1"}]},
    "suggestions": {"better-one": {"value": "response-1", "agent": "gpt-4", "score": 0.9}},
}


FLAT: dict[str, Any] = {
    "id": "r1",
    "status": "completed",
    **FIELDS,
    "preference.responses": [["response-2", "response-1"], ["response-1", "response-2"]],
    "preference.responses.users": ["u1", "u2"],
    "preference.responses.status": ["submitted", "discarded"],
    "better-one.suggestion": "response-1",
    "better-one.suggestion.agent": "gpt-4",
    "better-one.suggestion.score": 0.9,
}


ABOUT = {"type": "model", "score": None, "agent": "gpt-4"}
NOBODY = {"type": None, "score": None, "agent": None}
FIRST_FLAT: dict[str, Any] = {
    **FIELDS,
    "preference": [
        {"user_id": "u1", "value": {"rank": [2, 1], "value": ["response-1", "response-2"]}, "status": "submitted"},
        {"user_id": "u2", "value": {"rank": [1, 2], "value": ["response-1", "response-2"]}, "status": "discarded"},
    ],
    "preference-suggestion": None,
    "preference-suggestion-metadata": NOBODY,
    "better-one": [],
    "better-one-suggestion": "response-1",
    "better-one-suggestion-metadata": ABOUT,
    "external_id": "r1",
    "metadata": "{}",
}
FIRST_TABLE: dict[str, Any] = {
    **FIRST_FLAT,
    "preference": {"user_id": ["u1"], "value": [RANKS], "status": ["submitted"]},
    "better-one": None,
    "better-one-suggestion-metadata": json.dumps(ABOUT),
}
CHAT: dict[str, Any] = {
    **SECOND_VERSION,
    "fields": {"chat": [{"role": "user", "content": "Why?"}], "response-1": "Because.", "response-2": "?"},
}


@pytest.mark.parametrize("record", [FIRST_VERSION, SECOND_VERSION, FLAT, FIRST_FLAT, FIRST_TABLE, CHAT])
def test_a_record_is_a_comparison_with_submitted_responses_and_suggestions(record: dict[str, Any]) -> None:
    found = import_rows(record)
    (comparison,) = rows_of_kind(ComparisonRow, found)
    assert (comparison.query.key, comparison.candidate_a, comparison.candidate_b) == ("r1", "response-1", "response-2")
    assert [(row.rater, row.rater_kind, row.aspect, row.choice) for row in rows_of_kind(VerdictRow, found)] == [
        ("u1", "human", "overall", "B"),
        ("gpt-4", "judge", "better_one", "A"),
    ]


def test_equal_ranks_are_a_tie() -> None:
    ranks = [{"value": "response-1", "rank": 1}, {"value": "response-2", "rank": 1}]
    record = {**SECOND_VERSION, "responses": {"preference": [{"value": ranks, "user_id": "u1"}]}, "suggestions": {}}
    assert [row.choice for row in rows_of_kind(VerdictRow, import_rows(record))] == ["tie"]
