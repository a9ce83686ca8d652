"""Preference data: chosen and rejected."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluations.domain.errors import InputRefused
from evaluations.domain.files import ComparisonRow, VerdictRow
from evaluations.domain.roles import RaterKind
from tests.formats.imported_rows import import_rows, read_contents, refusal_reason, rows_of_kind

PLAIN: dict[str, Any] = {"prompt": "Add 1 and 1.", "chosen": "2", "rejected": "3"}
USER = {"role": "user", "content": "Add 1 and 1."}


def says(text: str) -> dict[str, str]:
    return {"role": "assistant", "content": text}


def pair(record: dict[str, Any], **reading: Any) -> tuple[ComparisonRow, VerdictRow, dict[str, str]]:
    found = import_rows(record, **reading)
    (comparison,), (verdict,) = rows_of_kind(ComparisonRow, found), rows_of_kind(VerdictRow, found)
    text = {
        comparison.candidate_a: comparison.response_a[-1]["content"],
        comparison.candidate_b: comparison.response_b[-1]["content"],
    }
    return comparison, verdict, text


def preferred(verdict: VerdictRow) -> tuple[str, str]:
    """The candidate that was chosen, and the other one."""
    names = verdict.candidate_a or "", verdict.candidate_b or ""
    return names if verdict.choice == "A" else (names[1], names[0])


@pytest.mark.parametrize(
    "record",
    [
        PLAIN,
        {"prompt": [USER], "chosen": [says("2")], "rejected": [says("3")]},
        {"chosen": [USER, says("2")], "rejected": [USER, says("3")]},
        {"prompt": "Add 1 and 1.", "chosen": [USER, says("2")], "rejected": [USER, says("3")]},
        {
            "chosen": "\n\nHuman: Add 1 and 1.\n\nAssistant: 2",
            "rejected": "\n\nHuman: Add 1 and 1.\n\nAssistant: 3",
        },
        {"prompt": "\n\nHuman: Add 1 and 1.\n\nAssistant:", "chosen": "2", "rejected": "3"},
        {"instruction": "Add 1 and 1.", "input": "", "chosen": "2", "rejected": "3"},
        {
            "conversations": [{"from": "human", "value": "Add 1 and 1."}],
            "chosen": {"from": "gpt", "value": "2"},
            "rejected": {"from": "gpt", "value": "3"},
        },
        {"messages": [USER], "chosen": says("2"), "rejected": says("3")},
        {"input": {"messages": [USER]}, "preferred_output": [says("2")], "non_preferred_output": [says("3")]},
        {"input": [USER], "preferred_output": says("2"), "non_preferred_output": says("3")},
        {"chosen": "Add 1 and 1. 2", "rejected": "Add 1 and 1. 3"},
    ],
)
def test_every_layout_is_the_same_comparison_with_the_chosen_one_as_gold(record: dict[str, Any]) -> None:
    comparison, verdict, text = pair(record)
    assert text_without_blanks(comparison) == text_without_blanks(pair(PLAIN)[0])
    assert comparison.query.messages == [USER]
    assert comparison.metadata == {}
    assert (verdict.rater_kind, verdict.rater) == (RaterKind.GOLD, "gold")
    assert [text[name].strip() for name in preferred(verdict)] == ["2", "3"]


def text_without_blanks(row: ComparisonRow) -> set[str]:
    """Where the prompt is what both texts begin with, the blank space after it is the responses'."""
    return {response[0]["content"].strip() for response in (row.response_a, row.response_b)}


@given(st.text(st.characters(codec="utf-8", exclude_characters="\x00"), min_size=1), st.text("ab"), st.text("ab"))
def test_without_names_nothing_about_the_comparison_tells_which_was_chosen(prompt: str, one: str, other: str) -> None:
    if not prompt.strip() or "Human:" in prompt or prompt.startswith("[{"):
        return
    straight, told, texts = pair({"prompt": prompt, "chosen": one, "rejected": other})
    turned, told_turned, _ = pair({"prompt": prompt, "chosen": other, "rejected": one})
    assert straight == turned
    assert texts[preferred(told)[0]] == one
    if one != other:
        assert preferred(told) == preferred(told_turned)[::-1]


def test_models_that_are_named_are_the_candidates() -> None:
    named = {**PLAIN, "id": 30, "subset": "math-prm", "chosen_model": "human", "rejected_model": "GPT4-generated"}
    comparison, verdict, _ = pair(
        {**named, "score_chosen": 9, "margin": 3, "source": "prm"}, rater="ann", rater_kind="human"
    )
    assert (comparison.query.key, comparison.query.category) == ("30", "math-prm")
    assert (comparison.candidate_a, comparison.candidate_b) == ("GPT4-generated", "human")
    assert (preferred(verdict)[0], verdict.rater, verdict.rater_kind) == ("human", "ann", "human")
    assert comparison.metadata == {"source": "prm"}  # a score of the chosen one would tell


def test_sides_come_in_the_order_of_names_so_that_no_row_is_turned_round() -> None:
    for record in (
        PLAIN,
        {**PLAIN, "chosen": "3", "rejected": "2"},
        {**PLAIN, "chosen_model": "z", "rejected_model": "a"},
    ):
        comparison, verdict, _ = pair(record)
        assert comparison.candidate_a < comparison.candidate_b
        assert (verdict.candidate_a, verdict.candidate_b) == (comparison.candidate_a, comparison.candidate_b)


def test_the_split_of_a_data_set_is_metadata_and_that_of_an_export_is_not() -> None:
    assert pair({**PLAIN, "split": "test"})[0].metadata == {"split": "test"}
    assert pair({**PLAIN, "split": "test", "label_source": "people"})[0].metadata == {}


def test_many_pairs_of_one_prompt_are_queries_of_one_cluster() -> None:
    first, second = rows_of_kind(ComparisonRow, import_rows(PLAIN, {**PLAIN, "rejected": "4"}))
    assert first.query.key != second.query.key
    assert first.query.cluster == second.query.cluster


def test_of_several_chosen_and_rejected_texts_every_two_are_a_pair() -> None:
    found = import_rows({**PLAIN, "id": "7", "chosen": ["2", "two"], "rejected": ["3", "4", "5"]})
    comparisons = rows_of_kind(ComparisonRow, found)
    assert len({one.query.key for one in comparisons}) == len(rows_of_kind(VerdictRow, found)) == 6
    assert len({one.query.cluster for one in comparisons}) == 1


def test_a_system_turn_and_earlier_turns_belong_to_the_prompt() -> None:
    before = [{"role": "system", "content": "Be brief."}, USER, says("2"), {"role": "user", "content": "Sure?"}]
    comparison, _, text = pair({"chosen": [*before, says("Yes.")], "rejected": [*before, says("No.")]})
    assert comparison.query.messages == before
    assert set(text.values()) == {"Yes.", "No."}


def test_it_is_said_what_candidates_without_names_are_called() -> None:
    assert "response 1 and response 2 by their texts" in read_contents([PLAIN]).format.note


@pytest.mark.parametrize(
    ("record", "because"),
    [
        (
            {"chosen": "2", "rejected": "3"},
            "has no prompt, and chosen and rejected begin with different questions. "
            "Map the prompt column, as COLUMN=prompt",
        ),
        ({**PLAIN, "rejected": None}, "rejected is missing"),
        ({**PLAIN, "prompt": [USER, says("2")]}, "prompt must end with a user turn"),
        ({**PLAIN, "chosen": ["2", "two"]}, "chosen, turn 1 must have a role and a content"),
    ],
)
def test_a_bad_preference_says_why(record: dict[str, Any], because: str) -> None:
    assert refusal_reason(record) == because


# ---- what LLaMA-Factory, OpenAI and TRL have beside -----------------------------------------------------


def test_the_input_of_an_instruction_its_history_and_the_systems_words_are_part_of_the_query() -> None:
    record = {"instruction": "Add.", "input": "1 and 1", "chosen": "2", "rejected": "3", "system": "Be brief."}
    comparison, _, _ = pair({**record, "history": [["Hi", "Hello"]]})
    assert [turn["content"] for turn in comparison.query.messages] == ["Be brief.", "Hi", "Hello", "Add.\n1 and 1"]
    assert comparison.metadata == {}


def test_what_stands_beside_another_prompt_is_metadata() -> None:
    comparison, _, _ = pair({**PLAIN, "input": "x", "instruction": "y", "history": "long"})
    assert comparison.metadata == {"input": "x", "instruction": "y", "history": "long"}


def test_the_systems_words_are_kept_where_both_responses_repeat_the_question() -> None:
    both = {"chosen": [USER, says("2")], "rejected": [USER, says("3")]}
    system = {"role": "system", "content": "Be brief."}
    for record in ({**both, "system": "Be brief."}, {**both, "prompt": [system, USER]}):
        assert pair(record)[0].query.messages == [system, USER]


def test_a_later_turn_of_a_conversation_is_the_one_that_was_answered() -> None:
    earlier = [
        {"from": "system", "value": "Be brief."},
        {"from": "human", "value": "Hi"},
        {"from": "gpt", "value": "Hi!"},
    ]
    record = {
        "conversations": [*earlier, {"from": "human", "value": "1 + 1?"}],
        "chosen": says("2"),
        "rejected": says("3"),
    }
    assert [turn["role"] for turn in pair(record)[0].query.messages] == ["system", "user", "assistant", "user"]


def test_tools_of_a_request_make_a_bad_row() -> None:
    record = {
        "input": {"messages": [USER], "tools": [{"type": "function"}]},
        "preferred_output": [],
        "non_preferred_output": [],
    }
    assert refusal_reason(record) == "tools holds tools: only text can be imported so far"
    assert (
        refusal_reason({"input": "1 + 1?", "preferred_output": [], "non_preferred_output": []})
        == "input must hold messages"
    )


@pytest.mark.parametrize(
    ("chosen", "rejected", "prompt", "answers"),
    [
        ("The sky is blue.", "The sky is green.", "The sky is", {" blue.", " green."}),
        ("Q: 1 + 1?\nA: 2", "Q: 1 + 1?\nA: 3", "Q: 1 + 1?\nA:", {" 2", " 3"}),
        ("Translate: chat -> cat", "Translate: chat -> dog", "Translate: chat ->", {" cat", " dog"}),
    ],
)
def test_a_prompt_that_two_texts_begin_with_ends_where_trl_ends_it(
    chosen: str, rejected: str, prompt: str, answers: set[str]
) -> None:
    comparison, verdict, text = pair({"chosen": chosen, "rejected": rejected, "source": "trl"})
    assert comparison.query.messages == [{"role": "user", "content": prompt}]
    assert set(text.values()) == answers
    assert prompt + text[preferred(verdict)[0]] == chosen


@pytest.mark.parametrize(
    ("record", "because"),
    [
        ({"chosen": "The sky", "rejected": "The sky is blue"}, "has no prompt, and one text starts with all of"),
        ({"chosen": "same", "rejected": "same"}, "has no prompt, and one text starts with all of the other"),
        (
            {"chosen": "I say yes", "rejected": "I say no", "frage": "Is it so?"},
            "has no prompt, and chosen and rejected",
        ),
        *(
            ({"chosen": "The cat", "rejected": "The dog", **column}, "has no prompt, and chosen and rejected")
            for column in ({"text": "Why?"}, {"frage": "Warum?"}, {"问题": "为什么天空是蓝的？"}, {"text": "Pets"})
        ),
    ],
)
def test_where_the_prompt_is_not_clear_nothing_is_guessed(record: dict[str, Any], because: str) -> None:
    assert refusal_reason(record).startswith(because)


@pytest.mark.parametrize("column", ["input", "query"])
def test_a_prompt_is_read_under_every_name_that_trainers_give_it(column: str) -> None:
    comparison, _, text = pair({column: "Pets?", "chosen": "The cat", "rejected": "The dog"})
    assert comparison.query.messages == [{"role": "user", "content": "Pets?"}]
    assert set(text.values()) == {"The cat", "The dog"}


def test_columns_that_repeat_one_response_or_name_the_chosen_one_are_no_metadata() -> None:
    record = {"prompt": "Pets?", "chosen": "A cat.", "rejected": "A dog.", "response": " A cat.", "both": "A pet."}
    telling = {"order": ["rejected", "chosen"], "better": "chosen", "kept": ["A dog.", "A cat."]}
    (entry,) = read_contents([{**record, **telling}]).entries
    comparison = rows_of_kind(ComparisonRow, entry.rows)[0]  # type: ignore[union-attr]
    assert comparison.metadata == {"both": "A pet.", "kept": ["A dog.", "A cat."]}
    assert [one.what for one in entry.notices] == ["response", "order", "better"]  # type: ignore[union-attr]


def test_one_turn_may_be_json_in_the_cells_of_a_table() -> None:
    told = {
        "conversations": json.dumps([{"from": "human", "value": "Pets?"}]),
        "chosen": json.dumps({"from": "gpt", "value": "A cat."}),
        "rejected": json.dumps({"from": "gpt", "value": "A dog."}),
    }
    comparison, _, text = pair(told)
    assert comparison.query.messages == [{"role": "user", "content": "Pets?"}]
    assert set(text.values()) == {"A cat.", "A dog."}


@pytest.mark.parametrize("between", [", ", " ", "\n "])
def test_chat_messages_as_python_prints_them_are_refused_by_column(between: str) -> None:
    printed = between.join(["[{'role': 'user', 'content': 'Q'}", "{'role': 'assistant', 'content': 'x'}]"])
    with pytest.raises(InputRefused, match=r"The column “chosen” of rows\.jsonl has chat messages printed by Python"):
        read_contents([{"prompt": "Q", "chosen": printed, "rejected": printed}])


def test_a_dialogue_that_was_asked_for_is_a_text() -> None:
    dialogue = "Human: Hi\n\nAssistant: Hello"
    _, verdict, text = pair({"prompt": "Write a dialogue.", "chosen": dialogue, "rejected": "No."})
    assert text[preferred(verdict)[0]] == dialogue
