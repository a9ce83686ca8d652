"""Labels in the words and signs of people and tools."""

import pytest

from evaluations.formats.annotation_fields import aspect_from_question
from evaluations.formats.label_parser import note_with_strength, parse_label


@pytest.mark.parametrize(
    ("text", "choice", "strength"),
    [
        ("A", "A", ""),
        ("left", "A", ""),
        ("Response A is slightly better", "A", "slightly"),
        ("Option 1", "A", ""),
        ("the second", "B", ""),
        ("The second one", "B", ""),
        ("model_b", "B", ""),
        ("modelB", "B", ""),
        ("Response 2 is much better", "B", "much"),
        ("Response #2", "B", ""),
        ("B is better than A", "B", ""),
        ("Strongly prefer A", "A", "strongly"),
        ("Slightly prefer B", "B", "slightly"),
        ("prefer B over A", "B", ""),
        ("Strong preference for B", "B", "strong"),
        ("B (significantly better)", "B", "significantly"),
        ("A - slightly better", "A", "slightly"),
        ("Slightly A", "A", "slightly"),
        ("Winner: B", "B", ""),
        ("A > B", "A", ""),
        ("[[A>>B]]", "A", ">>"),
        ("[[B>>A]]", "B", ">>"),
        ("A<<B", "B", ">>"),
        ("B<A", "A", ""),
        ("A≫B", "A", ">>"),
        ("Ａ＞Ｂ", "A", ""),
        ("A &gt; B", "A", ""),
        ("Response A > Response B", "A", ""),
        ("left > right", "A", ""),
        ("A++", "A", "++"),
        ("B+", "B", "+"),
        ("A is slightly worse", "B", "slightly"),
        ("B is much worse than A", "A", "much"),
        ("**B**", "B", ""),
        ("(A).", "A", ""),
        ("Tie", "tie", ""),
        ("A=B", "tie", ""),
        ("[[A=B]]", "tie", ""),
        ("B≈A", "tie", ""),
        ("A~B", "tie", ""),
        ("Both are equally good", "tie", ""),
        ("Both responses are good", "tie", ""),
        ("No clear winner", "tie", ""),
        ("About the same", "tie", ""),
        ("neither is better", "tie", ""),
        ("A tie", "tie", ""),
        ("tie (bothbad)", "both_bad", ""),
        ("Tie (both bad)", "both_bad", ""),
        ("Both bad", "both_bad", ""),
        ("Neither", "both_bad", ""),
        ("Neither response is good", "both_bad", ""),
    ],
)
def test_a_known_label_chooses_a_side_and_keeps_how_strongly(text: str, choice: str, strength: str) -> None:
    found = parse_label(text)
    assert found is not None
    assert (found.choice, found.strength) == (choice, strength)


@pytest.mark.parametrize(
    "text",
    [
        *("", "absolutely", "Because", "bad", "unsure", "A/B", "A, B", "AB", "A B", "A1", "A's"),
        # Other scripts, signs and negations beside the name of a side.
        *("A更差", "B更差", "不选A", "A不好", "A 👎", "👎A", "A 👍"),
        *("A не лучше", "не A", "ليس A", "A ไม่ดี", "Aではない"),
        *("nicht A", "A no es mejor", "pas A", "not A", "A is not better", "A isn’t better", "don't prefer A", "non-A"),
        # Letters of other scripts that look the same, and letters that are struck out.
        *("А", "В", "A\u0336", "A\u20e0", "~~A~~", "¬A", "!A", "-A"),
        *("A-", "A--", "A?", "A≠B", "A≯B", "A≥B", "A>=B", "A=>B", "A->B", "A<>B", "A>A", "A=A", "A is better than A"),
        # What a number means is said by the format alone.
        *("0", "1", "2", "-1", "one", "two"),
        # An option's own letter before what it says.
        *("(B) Response A is better", "A: B is better", "1. A"),
        *("A little better", "A lot better", "A slight preference"),
        # Ranks, and what is correct.
        *("second best", "First choice", "the right answer", "The right choice"),
    ],
)
def test_a_label_with_anything_unknown_in_it_is_not_understood(text: str) -> None:
    assert parse_label(text) is None


@pytest.mark.parametrize(
    ("text", "names_a", "names_b", "choice"),
    [
        ("gpt-35-turbo", ["gpt-3.5-turbo"], ["gpt-35-turbo"], "B"),
        ("gpt-3.5-turbo", ["gpt-3.5-turbo"], ["gpt-35-turbo"], "A"),
        ("GPT-3.5-Turbo ", ["gpt-3.5-turbo"], ["gpt-35-turbo"], "A"),
        ("gpt 3.5 turbo", ["gpt-3.5-turbo"], ["gpt-35-turbo"], None),
        ("gpt4", ["gpt-4"], ["claude"], None),
        ("gpt", ["GPT"], ["gpt"], "B"),
        ("Gpt", ["GPT"], ["gpt"], None),
        ("通义千问", ["文心一言"], ["通义千问"], "B"),
        ("نموذج ب", ["نموذج أ"], ["نموذج ب"], "B"),
        ("โมเดล", ["โมเดล"], ["โมเดล 2"], "A"),
        ("🦙", ["🦙"], ["🐍"], "A"),
        ("🐍🐍", ["🦙"], ["🐍"], None),
        ("Caf\u0065\u0301", ["Café"], ["b"], "A"),
        ("my model (v2)", ["my model (v1)"], ["my model (v2)"], "B"),
        ("A+", ["A"], ["A+"], None),  # a name, or that A is better
        ("m", ["m"], ["m"], None),
        # Names that are words for a side.
        ("A", ["A"], ["B"], "A"),
        ("B", ["b"], ["a"], None),
        ("model_b", ["model_b"], ["other"], None),
        ("model_b", ["other"], ["model_b"], "B"),
        ("tie", ["tie"], ["other"], None),
        ("other", ["tie"], ["other"], "B"),
        # Such a name in a longer label.
        ("B is better", ["B"], ["C"], None),
        ("A > B", ["B"], ["A"], None),
        ("It is a tie", ["tie"], ["other"], None),
        ("Model 2 is better", ["model 2"], ["model 3"], None),
        ("A", ["model 2"], ["model 3"], "A"),
        ("A", ["System B"], ["System A"], None),
        ("first", ["Second model"], ["First model"], None),
        ("Model A", ["Model B (new)"], ["Model A (old)"], None),
        ("Version 2", ["Llama version 2"], ["Llama version 3"], None),
        ("B is better", ["Model A (new)"], ["Model B (old)"], "B"),
        ("Model 1", ["Model 1.5 of B"], ["other"], "A"),
        ("left", ["B"], ["A"], "A"),
        ("A is better", ["A"], ["B"], "A"),
    ],
)
def test_an_exact_name_counts_first_and_what_may_mean_two_things_means_none(
    text: str, names_a: list[str], names_b: list[str], choice: str | None
) -> None:
    found = parse_label(text, names_a, names_b)
    assert (found.choice if found else None) == choice


def test_a_label_by_place_is_known_as_one() -> None:
    told = {text: found.by_place for text in ("left", "Right is better", "A", "first") if (found := parse_label(text))}
    named = parse_label("left", ["left"], ["right"])
    assert named
    assert named.by_place
    assert told == {"left": True, "Right is better": True, "A": False, "first": False}


def test_the_strength_joins_the_note_that_is_there() -> None:
    assert [note_with_strength("", ""), note_with_strength("", "++"), note_with_strength("Short.", "much")] == [
        "",
        "strength: ++",
        "Short.; strength: much",
    ]


def test_a_question_about_the_pair_as_a_whole_is_the_aspect_overall() -> None:
    assert [aspect_from_question(name) for name in ("pw", "Preference", "Which", "Is it clear?", "")] == [
        "overall",
        "overall",
        "overall",
        "is_it_clear",
        "overall",
    ]


def test_two_questions_have_two_aspects_in_any_script_and_of_any_length() -> None:
    questions = ["质量", "风格", "Quality", "Qualität", "Стиль", "style 质量", "x" * 80, "x" * 80 + "y"]
    keys = [aspect_from_question(question) for question in questions]
    assert len(set(keys)) == len(questions)
    assert all(len(key) <= 60 and key.isascii() for key in keys)
    assert "overall" not in keys
