"""Judgments of Arena-Hard and JudgeBench: verdicts in both orders, in terms of the stored sides."""

from typing import Any

import pytest

from evaluations.domain.choices import ShownOrder
from evaluations.domain.files import ComparisonRow, QueryRow, ResponseRow, VerdictRow
from evaluations.domain.roles import RaterKind
from tests.formats.imported_rows import import_rows, read_contents, refusal_reason, rows_of_kind

# ---- Arena-Hard ------------------------------------------------------------------------------------


def game(score: str | None, judgment: Any = "Both are fine.") -> dict[str, Any]:
    return {"user_prompt": "…", "judgment": judgment, "score": score}


JUDGMENT: dict[str, Any] = {
    "question_id": "u1",
    "model": "mine",
    "judge": "gpt-x",
    "games": [game("A>B"), game("B>>A")],
}
SECOND: dict[str, Any] = {
    "uid": "u1",
    "category": "hard_prompt",
    "judge": "gpt-x",
    "model": "mine",
    "baseline": "o3-mini",
    "games": [
        {"score": "B>A", "judgment": {"answer": "B is better.", "thought": "…"}, "prompt": []},
        {"score": "A=B", "judgment": {"answer": "Even."}, "prompt": []},
    ],
}


def told(record: dict[str, Any]) -> list[tuple[str, str, str]]:
    return [(row.choice, row.shown, row.note) for row in rows_of_kind(VerdictRow, import_rows(record))]


def test_the_baseline_stands_first_in_game_1_and_second_in_game_2() -> None:
    first = rows_of_kind(VerdictRow, import_rows(JUDGMENT))[0]
    assert (first.candidate_a, first.candidate_b) == (None, "mine")
    assert (first.rater, first.rater_kind, first.query_key) == ("gpt-x", RaterKind.JUDGE, "u1")
    # Both games are won by the baseline, which is A: in game 2 it was shown as B.
    assert told(JUDGMENT) == [("A", ShownOrder.AS_STORED, ""), ("A", ShownOrder.SWAPPED, "strength: >>")]


def test_the_second_version_names_the_baseline_and_keeps_the_judges_answer() -> None:
    first, second = rows_of_kind(VerdictRow, import_rows(SECOND))
    assert (first.candidate_a, first.candidate_b) == ("o3-mini", "mine")
    assert (first.choice, second.choice, first.rationale) == ("B", "tie", "B is better.")
    assert read_contents([SECOND]).format.name == "arena-hard"


def test_a_baseline_may_be_named_for_the_whole_file() -> None:
    first, _ = rows_of_kind(VerdictRow, import_rows(JUDGMENT, constants={"baseline": "gpt-4-0314"}))
    assert first.candidate_a == "gpt-4-0314"


@pytest.mark.parametrize(
    ("games", "choices"),
    [
        ([game("B>>A"), game("A>B")], ["B", "B"]),
        ([game("A=B"), game(None)], ["tie", "unreadable"]),
        ([game("A>B>C"), None], ["unreadable", "failed"]),
        ([game("B>A")], ["B"]),
    ],
)
def test_a_game_without_a_readable_score_is_a_failure(games: list[Any], choices: list[str]) -> None:
    assert [choice for choice, *_ in told({**JUDGMENT, "games": games})] == choices


def test_judgments_without_games_are_bad() -> None:
    assert refusal_reason({**JUDGMENT, "games": []}) == "games must be a list of one game or two"


def test_questions_and_answers_of_both_versions_are_read() -> None:
    first = {"question_id": "ab12", "category": "arena-hard", "cluster": "Sums", "turns": [{"content": "1 + 1?"}]}
    answer = {
        "question_id": "ab12",
        "answer_id": "x",
        "model_id": "mine",
        "choices": [{"index": 0, "turns": [{"content": "2", "token_len": 1}]}],
    }
    question, response = import_rows(first, rater="")[0], import_rows(answer)[0]
    assert isinstance(question, QueryRow)
    assert isinstance(response, ResponseRow)
    assert (question.query.key, question.query.messages[0]["content"]) == ("ab12", "1 + 1?")
    assert (response.query.key, response.candidate, response.response[0]["content"]) == ("ab12", "mine", "2")
    (asked,) = import_rows({"uid": "u1", "category": "hard_prompt", "subcategory": "coding", "prompt": "1 + 1?"})
    messages = [
        {"role": "user", "content": "1 + 1?"},
        {"role": "assistant", "content": {"answer": "2", "thought": "…"}},
    ]
    (answered,) = import_rows({"uid": "u1", "ans_id": "x", "model": "mine", "messages": messages, "tstamp": 1.0})
    assert isinstance(asked, QueryRow)
    assert isinstance(answered, ResponseRow)
    assert (asked.query.key, asked.query.category) == ("u1", "coding")
    assert (answered.query.messages, answered.response[0]["content"]) == (asked.query.messages, "2")


# ---- JudgeBench --------------------------------------------------------------------------------------


def decision(word: str | None, response: str = "B wins.") -> dict[str, Any]:
    return {"judgment": {"judge_model": "gpt-x", "prompt": "…", "response": response}, "decision": word}


PAIR: dict[str, Any] = {
    "pair_id": "p1",
    "original_id": 66,
    "source": "mmlu-pro-law",
    "question": "Which?",
    "response_model": "gpt-4o",
    "response_A": "The first.",
    "response_B": "The second.",
    "label": "B>A",
}


def test_a_pair_is_a_comparison_with_its_gold_label() -> None:
    comparison, gold = import_rows(PAIR)
    assert isinstance(comparison, ComparisonRow)
    assert isinstance(gold, VerdictRow)
    assert (comparison.query.key, comparison.query.cluster) == ("p1", "mmlu-pro-law 66")
    assert (comparison.candidate_a, comparison.response_a[0]["content"]) == ("response_A", "The first.")
    assert (gold.rater, gold.rater_kind, gold.choice) == ("gold", RaterKind.GOLD, "B")
    assert comparison.metadata == {"response_model": "gpt-4o"}


def test_decisions_are_the_judges_in_both_orders() -> None:
    judged = {**PAIR, "judge_name": "arena_hard", "judgments": [decision("B>A"), decision("B>A", "Now B.")]}
    _, gold, first, second = import_rows(judged, rater_kind=RaterKind.JUDGE)
    assert isinstance(gold, VerdictRow)
    assert isinstance(first, VerdictRow)
    assert isinstance(second, VerdictRow)
    assert (gold.rater_kind, first.rater, first.rater_kind) == (RaterKind.GOLD, "gpt-x (arena_hard)", RaterKind.JUDGE)
    # In the second order “B” is the response that is stored as A.
    assert [(one.choice, one.shown) for one in (first, second)] == [
        ("B", ShownOrder.AS_STORED),
        ("A", ShownOrder.SWAPPED),
    ]
    assert second.rationale == "Now B."


@pytest.mark.parametrize(
    ("judgments", "choices"),
    [
        ([decision("A=B"), decision(None)], ["tie", "unreadable"]),
        ([None, decision("A>B")], ["failed", "B"]),
        ([decision("A>B")], ["A"]),
    ],
)
def test_a_decision_that_is_missing_is_a_failure(judgments: list[Any], choices: list[str]) -> None:
    found = rows_of_kind(VerdictRow, import_rows({**PAIR, "judge_name": "vanilla", "judgments": judgments}))
    assert [one.choice for one in found[1:]] == choices


def test_a_pair_without_a_known_label_or_a_judge_without_a_name_is_bad() -> None:
    assert refusal_reason({**PAIR, "label": "C"}) == "label is “C”; expected A>B, B>A or A=B"
    nameless = [{"judgment": {"response": "x"}, "decision": "A>B"}]
    assert refusal_reason({**PAIR, "judgments": nameless}).startswith("the judge’s name is missing")
