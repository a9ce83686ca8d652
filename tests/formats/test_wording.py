"""Choices in words."""

import pytest

from evaluations.formats.wording import aspect_of, choice_said


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ("A", "A"),
        ("left", "A"),
        ("Response A is slightly better", "A"),
        ("Option 1", "A"),
        ("the second", "B"),
        ("model_b", "B"),
        ("Response 2 is much better", "B"),
        ("Tie", "tie"),
        ("Both are equally good", "tie"),
        ("tie (bothbad)", "both_bad"),
        ("Neither", "both_bad"),
        ("absolutely", None),
        ("", None),
        ("Because", None),
        ("bad", None),
    ],
)
def test_words_choose_one_of_two_or_nothing(text: str, choice: str | None) -> None:
    assert choice_said(text) == choice


def test_names_of_the_sides_come_before_words() -> None:
    assert choice_said("B", first=["b"], second=["a"]) == "A"


def test_a_question_about_the_pair_as_a_whole_is_the_aspect_overall() -> None:
    assert [aspect_of(name) for name in ("pw", "Preference", "Which", "Is it clear?", "")] == [
        "overall",
        "overall",
        "overall",
        "is_it_clear",
        "overall",
    ]
