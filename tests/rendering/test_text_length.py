"""How long a text is, and what its words are."""

import pytest

from evaluations.rendering.text_length import WORD, TextLength, measure_text


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
def test_words_are_found_in_any_writing(text: str, words: int) -> None:
    assert len(WORD.findall(text)) == words


def test_tokens_are_a_quarter_of_ascii_and_one_for_every_other_character() -> None:
    assert measure_text("abcdefgh東京都") == TextLength(characters=11, tokens=5)  # 8 / 4 + 3
