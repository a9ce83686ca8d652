"""What columns probably mean, by their names and by what stands in them."""

import pytest

from evaluations.imports.columns.column_guess import (
    candidate_in_column_name,
    guess_choice_meanings,
    guess_columns,
    guess_row_kind,
)
from evaluations.imports.source_files import Sheet, list_distinct_words


def sheet(*columns: str, **few: tuple[str, ...]) -> Sheet:
    return Sheet(columns, (), few)


def test_an_arena_file_is_recognised_by_its_names() -> None:
    arena = sheet("question_id", "prompt", "model_a", "model_b", "response_a", "response_b", "winner", "judge")
    assert guess_row_kind(arena) == "comparisons"
    assert dict(guess_columns(arena, "comparisons").columns) == {
        "query_id": "question_id",
        "query": "prompt",
        "candidate_a": "model_a",
        "candidate_b": "model_b",
        "response_a": "response_a",
        "response_b": "response_b",
        "choice": "winner",
        "rater": "judge",
    }


def test_sides_are_told_by_whatever_differs() -> None:
    for first, second in (("output_1", "output_2"), ("answer1", "answer2"), ("left_response", "right_response")):
        found = guess_columns(sheet("instruction", first, second), "comparisons")
        assert (found.columns["response_a"], found.columns["response_b"]) == (first, second)
        assert found.constants["query_id"] == "#text"
        assert (found.constants["candidate_a"], found.constants["candidate_b"]) == (
            candidate_in_column_name(first),
            candidate_in_column_name(second),
        )


def test_two_responses_called_after_their_candidates_name_them() -> None:
    found = guess_columns(sheet("prompt", "gpt-4_answer", "llama_answer"), "comparisons")
    assert (found.constants["candidate_a"], found.constants["candidate_b"]) == ("gpt-4", "llama")
    assert guess_row_kind(sheet("prompt", "gpt4_answer", "llama_answer", "winner")) == "comparisons"
    assert guess_row_kind(sheet("Prompt text", "GPT answer", "Claude answer", "winner")) == "comparisons"


def test_which_response_was_chosen_is_never_a_candidates_name() -> None:
    for columns in (
        ("prompt", "responses", "chosen", "rejected"),
        ("prompt", "best_answer", "worse_answer", "winner_output"),
    ):
        found = guess_columns(sheet(*columns), "comparisons")
        assert "response_a" not in found.columns
        assert "candidate_a" not in found.constants


@pytest.mark.parametrize(
    ("query", "response", "choice"),
    [
        ("Frage", "Antwort ", "Bewertung"),
        ("问题", "回答", "偏好"),
        ("質問", "回答_", "勝者"),
        ("Pregunta", "Respuesta ", "Ganador"),
    ],
)
def test_names_in_other_languages_are_known(query: str, response: str, choice: str) -> None:
    found = guess_columns(sheet(query, f"{response}A", f"{response}B", choice), "comparisons").columns
    assert found == {"query": query, "response_a": f"{response}A", "response_b": f"{response}B", "choice": choice}


def test_a_column_of_words_for_choices_is_one_whatever_it_is_called() -> None:
    found = guess_columns(sheet("prompt", "output_a", "output_b", "col7", col7=("a", "b", "tie")), "comparisons")
    assert found.columns["choice"] == "col7"


def test_a_column_of_words_that_is_called_after_nothing_known_names_the_aspect() -> None:
    columns = ("prompt", "output_a", "output_b", "Style", "who")
    found = guess_columns(sheet(*columns, Style=("A", "B", "tie")), "comparisons")
    assert (found.columns["choice"], found.constants["aspect"]) == ("Style", "style")


def test_candidates_that_a_column_of_choices_names_are_columns_of_responses() -> None:
    table = sheet("Question", "GPT-4", "Claude", "Better", Better=("Claude", "GPT-4", "tie"))
    found = guess_columns(table, guess_row_kind(table))
    assert (found.columns["response_a"], found.columns["response_b"]) == ("GPT-4", "Claude")
    assert (found.columns["choice"], found.constants["candidate_a"]) == ("Better", "GPT-4")


def test_one_response_a_row_is_a_file_of_responses_and_a_number_a_score() -> None:
    assert guess_row_kind(sheet("id", "prompt", "model", "completion")) == "responses"
    assert guess_row_kind(sheet("question_id", "model", "rating")) == "scores"
    assert guess_row_kind(sheet("question_id", "model_a", "model_b", "winner")) == "verdicts"


@pytest.mark.parametrize(
    ("found", "meant"),
    [
        (("model_a", "model_b", "tie (bothbad)"), ["A", "B", "both_bad"]),
        (("0", "1", "2"), ["", "", ""]),  # which of them is a tie, and which side is first, no number says
        (("1", "2"), ["", ""]),
        (("0", "1"), ["", ""]),
        (("-1", "0", "1"), ["", "", ""]),
        (("1", "2", "3"), ["", "", ""]),
        (("1.0", "2.0"), ["", ""]),
        (("Left is better", "what"), ["A", ""]),
    ],
)
def test_words_are_translated_where_they_can_be(found: tuple[str, ...], meant: list[str]) -> None:
    assert list(guess_choice_meanings(found).values()) == meant


def test_long_texts_and_many_values_are_no_words() -> None:
    assert list_distinct_words([{"a": str(number)} for number in range(13)], "a") == ()
    assert list_distinct_words([{"a": "x" * 81}], "a") == ()
    assert list_distinct_words([{"a": True}, {"a": None}], "a") == ("", "true")
