"""Chatbot Arena, and what has its layout."""

from typing import Any

import pytest

from evaluations.domain.choices import ShownOrder
from evaluations.domain.files import ComparisonRow, VerdictRow
from evaluations.domain.roles import RaterKind
from tests.formats.imported_rows import import_rows, refusal_reason, rows_of_kind


def talk(*texts: str) -> list[dict[str, str]]:
    return [{"role": "assistant" if place % 2 else "user", "content": text} for place, text in enumerate(texts)]


BATTLE: dict[str, Any] = {
    "question_id": "9f0a",
    "model_a": "vicuna-13b",
    "model_b": "alpaca-13b",
    "winner": "model_a",
    "judge": "arena_user_17",
    "conversation_a": talk("Why?", "Because.", "Really?", "Yes."),
    "conversation_b": talk("Why?", "Who knows.", "Really?", "No."),
    "turn": 2,
    "language": "English",
    "tstamp": 1682351591.5,
    "openai_moderation": {"flagged": False},
}
TABLE: dict[str, Any] = {
    "id": 30192,
    "model_a": "gpt-4",
    "model_b": "koala",
    "prompt": '["Why?", "Really?"]',
    "response_a": '["Because.", "Yes."]',
    "response_b": '["Who knows.", null]',
    "winner_model_a": 0,
    "winner_model_b": 0,
    "winner_tie": 1,
}
VOTE = {**BATTLE, "question_id": 81, "judge": "expert_3", "tstamp": None}


def test_a_battle_is_a_comparison_of_what_followed_the_first_question_and_a_persons_vote() -> None:
    comparison, vote = import_rows(BATTLE)
    assert isinstance(comparison, ComparisonRow)
    assert isinstance(vote, VerdictRow)
    assert comparison.query.messages == talk("Why?")
    assert comparison.response_a == [
        {"role": "assistant", "content": "Because."},
        {"role": "user", "content": "Really?"},
        {"role": "assistant", "content": "Yes."},
    ]
    assert (comparison.query.key, comparison.metadata) == ("9f0a", {"language": "English"})
    assert (vote.rater, vote.rater_kind, vote.choice, vote.shown) == (
        "arena_user_17",
        "human",
        "A",
        ShownOrder.AS_STORED,
    )
    assert vote.created_at == "2023-04-24T15:53:11.500000+00:00"


@pytest.mark.parametrize(
    ("winner", "choice"),
    [("model_b", "B"), ("tie", "tie"), ("tie (bothbad)", "both_bad"), ("both_bad", "both_bad")],
)
def test_two_bad_responses_are_not_a_tie(winner: str, choice: str) -> None:
    (vote,) = rows_of_kind(VerdictRow, import_rows({**BATTLE, "winner": winner}))
    assert vote.choice == choice


def test_votes_on_mt_bench_are_on_its_first_turn_or_on_both_and_share_the_cluster() -> None:
    found = import_rows({**VOTE, "turn": 1}, VOTE)
    first, both = rows_of_kind(ComparisonRow, found)
    assert (first.query.key, both.query.key) == ("81", "81-2")
    assert (first.query.cluster, both.query.cluster) == ("81", "81")
    assert [len(first.response_a), len(both.response_a)] == [1, 3]
    # Which side model_a stood on was not published.
    assert {vote.shown for vote in rows_of_kind(VerdictRow, found)} == {ShownOrder.UNKNOWN}


def test_a_judges_votes_come_from_both_orders_and_may_be_inconsistent() -> None:
    (vote,) = rows_of_kind(VerdictRow, import_rows({**VOTE, "judge": "gpt4_pair", "winner": "tie (inconsistent)"}))
    assert (vote.rater, vote.rater_kind, vote.choice) == ("gpt4_pair", RaterKind.JUDGE, "inconsistent")
    assert vote.shown == ShownOrder.FOLDED
    assert "only a judge can" in refusal_reason({**VOTE, "winner": "tie (inconsistent)"})


def test_a_table_of_battles_holds_lists_in_its_cells() -> None:
    comparison, vote = import_rows(TABLE)
    assert isinstance(comparison, ComparisonRow)
    assert isinstance(vote, VerdictRow)
    assert comparison.query.messages == talk("Why?")
    assert [turn["content"] for turn in comparison.response_b] == ["Who knows.", "Really?", ""]
    assert (comparison.query.key, vote.choice, vote.rater) == ("30192", "tie", "arena voter")


def test_parts_of_text_are_joined_and_an_image_is_refused() -> None:
    def said(kind: str) -> dict[str, Any]:
        asked = {"role": "user", "content": [{"type": kind, "text": "Why?", "image": None}]}
        both = [asked, {"role": "assistant", "content": [{"type": "output_text", "text": ""}]}]
        return {**BATTLE, "conversation_a": both, "conversation_b": both, "turn": 1}

    (comparison,) = rows_of_kind(ComparisonRow, import_rows(said("text")))
    assert comparison.query.messages == talk("Why?")
    assert comparison.response_a == [{"role": "assistant", "content": ""}]
    assert refusal_reason(said("image")) == "conversation_a, turn 1 holds an image: only text can be imported so far"


@pytest.mark.parametrize(
    ("change", "because"),
    [
        (
            {"winner": "nobody"},
            "winner is “nobody”; expected model_a, model_b, tie or tie (bothbad)",
        ),
        ({"model_b": "vicuna-13b"}, "both models are “vicuna-13b”, so there is nothing to compare"),
        ({"conversation_b": talk("When?", "Now.")}, "the two conversations begin with different questions"),
        ({"conversation_b": "Why?"}, "conversation_b is not valid JSON"),
        ({"conversation_b": [{"role": "poet", "content": "O"}]}, "conversation_b, turn 1 has the unknown role “poet”"),
    ],
)
def test_a_bad_battle_says_why(change: dict[str, Any], because: str) -> None:
    assert refusal_reason({**BATTLE, **change}) == because


def test_exactly_one_of_the_three_winners_is_told() -> None:
    because = "one of winner_model_a, winner_model_b and winner_tie must be 1"
    assert refusal_reason({**TABLE, "winner_model_a": 1}) == because
    assert refusal_reason({**TABLE, "winner_tie": 0}) == because
