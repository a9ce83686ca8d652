"""Code in colour."""

import re
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluations.rendering.code_highlighter import LANGUAGES, MAX_HIGHLIGHTED_CHARACTERS, find_lexer, highlight_code


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_every_language_on_the_list_is_known(language: str) -> None:
    assert find_lexer(language) is not None


def test_a_language_that_is_not_on_the_list_is_shown_without_colour() -> None:
    assert highlight_code("x < 1", "brainfuck") == "x &lt; 1"


def test_very_long_code_is_shown_without_colour() -> None:
    assert "<span" not in highlight_code("x = 1\n" * (MAX_HIGHLIGHTED_CHARACTERS // 6 + 1), "python")


def test_a_name_in_capitals_is_the_same_language() -> None:
    assert highlight_code("1", "Python") == '<span class="m">1</span>'


def test_neighbours_of_one_kind_share_a_span() -> None:
    assert highlight_code('"a\\n"', "python") == '<span class="s">&quot;a\\n&quot;</span>'


@given(st.sampled_from(sorted(LANGUAGES)), st.text(alphabet="ab1 \n\t\"'`$#/*<>{}[]()=:;\\-é漢", max_size=200))
def test_no_character_of_the_code_is_lost(language: str, code: str) -> None:
    assert unescape(re.sub("<[^>]*>", "", highlight_code(code, language))) == code


def test_code_that_its_grammar_cannot_read_whole_is_shown_without_colour() -> None:
    assert highlight_code("<output>", "console") == "&lt;output&gt;"
