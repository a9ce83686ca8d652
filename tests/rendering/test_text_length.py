"""How long a text is."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluations.rendering.text_length import TextLength, measure_text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", 0),
        ("One two, three!", 3),
        ("don’t can't", 2),
        ("3.14 and 1,000", 3),
        ("東京は", 3),
        ("GPT-4は強い", 5),  # GPT, 4, は, 強, い
        ("안녕하세요 세계", 2),
        ("नमस्ते दुनिया", 2),
        ("مرحبا بالعالم", 2),
        ("- — …", 0),
    ],
)
def test_words_are_counted_in_any_writing(text: str, words: int) -> None:
    assert measure_text(text).words == words


def test_tokens_are_a_quarter_of_ascii_and_one_for_every_other_character() -> None:
    assert measure_text("abcdefgh東京都") == TextLength(characters=11, words=4, tokens=5)  # 8 / 4 + 3


@given(st.text())
def test_no_text_has_more_words_than_characters(text: str) -> None:
    assert measure_text(text).words <= measure_text(text).characters == len(text)
