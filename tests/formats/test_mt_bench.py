"""MT-bench: questions, answers, what a judge said of pairs in both orders, and its scores."""

from typing import Any

import pytest

from evaluations.domain.choices import ShownOrder
from evaluations.domain.files import QueryRow, ResponseRow, ScoreRow, VerdictRow
from evaluations.domain.roles import RaterKind
from tests.formats.imported_rows import import_rows, refusal_reason, rows_of_kind

PAIR: dict[str, Any] = {
    "question_id": 81,
    "model_1": "alpaca-13b",
    "model_2": "vicuna-13b",
    "g1_winner": "model_2",
    "g2_winner": "tie",
    "judge": ["gpt-4", "pair-v2"],
    "g1_user_prompt": "[User Question] …",
    "g1_judgment": "B is better. [[B]]",
    "g2_judgment": "[[C]]",
    "turn": 1,
    "tstamp": 1687222552.5,
}
SINGLE: dict[str, Any] = {
    "question_id": 81,
    "model": "alpaca-13b",
    "judge": ["gpt-4", "single-v1-multi-turn"],
    "judgment": "Rating: [[7]]",
    "score": 7,
    "turn": 2,
}
QUESTION: dict[str, Any] = {
    "question_id": 111,
    "category": "math",
    "turns": ["Area of the triangle?", "And of the circle?"],
    "reference": ["3", "18π"],
}
ANSWER: dict[str, Any] = {
    "question_id": 111,
    "answer_id": "x",
    "model_id": "alpaca-13b",
    "choices": [{"index": 0, "turns": ["It is 3.", "Eighteen."]}, {"index": 1, "turns": ["Four.", "Five."]}],
    "tstamp": 1686,
}


def test_a_question_of_two_turns_is_two_queries_of_one_cluster() -> None:
    first, second = (row.query for row in rows_of_kind(QueryRow, import_rows(QUESTION)))
    assert (first.key, first.cluster, first.category, first.reference) == ("111", "111", "math", "3")
    assert (second.key, second.cluster, second.reference) == ("111-2", "111", "3\n\n18π")
    # Both are asked by the first question; to the second query a response holds the second one too.
    assert first.messages == second.messages == [{"role": "user", "content": "Area of the triangle?"}]
    assert second.metadata == {"follow_ups": ["And of the circle?"]}


def test_an_answer_is_a_response_to_each_turn_and_leaves_room_for_the_questions() -> None:
    first, second = rows_of_kind(ResponseRow, import_rows(ANSWER))
    assert (first.candidate, first.response, first.lacks_questions) == (
        "alpaca-13b",
        [{"role": "assistant", "content": "It is 3."}],
        False,
    )
    assert [turn["content"] for turn in second.response] == ["It is 3.", "", "Eighteen."]
    assert (second.query.key, second.query.is_stand_in, second.lacks_questions) == ("111-2", True, True)


def test_a_judgment_is_two_verdicts_one_of_each_order() -> None:
    first, second = rows_of_kind(VerdictRow, import_rows(PAIR, id_prefix="mt-"))
    assert (first.query_key, first.candidate_a, first.candidate_b) == ("mt-81", "alpaca-13b", "vicuna-13b")
    assert (first.choice, first.shown, first.rationale) == ("B", ShownOrder.AS_STORED, "B is better. [[B]]")
    assert (second.choice, second.shown) == ("tie", ShownOrder.SWAPPED)
    assert (first.rater, first.rater_kind) == ("gpt-4", RaterKind.JUDGE)
    assert first.created_at == "2023-06-20T00:55:52.500000+00:00"


def test_an_error_is_a_failure_and_no_verdict() -> None:
    failed = {**PAIR, "g1_winner": "error", "g2_winner": "error", "g2_judgment": "$ERROR$", "turn": 2}
    assert [(row.query_key, row.choice, row.rationale) for row in rows_of_kind(VerdictRow, import_rows(failed))] == [
        ("81-2", "unreadable", "B is better. [[B]]"),
        ("81-2", "failed", ""),
    ]


def test_a_score_is_of_one_turn_of_one_answer() -> None:
    (score,) = rows_of_kind(ScoreRow, import_rows(SINGLE))
    assert (score.query_key, score.candidate, score.value, score.aspect) == ("81-2", "alpaca-13b", 7.0, "overall")
    assert (score.rater, score.rationale) == ("gpt-4", "Rating: [[7]]")


@pytest.mark.parametrize(
    ("judgment", "failure", "rationale"),
    [("I will not rate this.", "unreadable", "I will not rate this."), ("$ERROR$", "failed", "")],
)
def test_a_score_of_minus_1_is_a_failure_and_no_score(judgment: str, failure: str, rationale: str) -> None:
    (score,) = rows_of_kind(ScoreRow, import_rows({**SINGLE, "score": -1, "judgment": judgment}))
    assert (score.value, score.failure, score.rationale) == (None, failure, rationale)


@pytest.mark.parametrize(
    ("record", "because"),
    [
        ({**PAIR, "g2_winner": "A"}, "g2_winner is “A”; expected model_1, model_2, tie or error"),
        ({**PAIR, "judge": None}, "the judge’s name is missing or too long. Set one for the whole file"),
        ({**QUESTION, "turns": []}, "turns must be a list with a text for each turn"),
        ({**ANSWER, "choices": []}, "choices must be a list of objects"),
    ],
)
def test_a_bad_judgment_says_why(record: dict[str, Any], because: str) -> None:
    assert refusal_reason(record) == because
