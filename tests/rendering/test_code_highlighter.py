"""Code in colour."""

import re
from html import unescape

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluations.rendering.code_highlighter import (
    LANGUAGES,
    MAX_HIGHLIGHTED_CHARACTERS,
    find_lexer,
    highlight_code,
    is_highlighted,
)


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_every_language_on_the_list_is_known(language: str) -> None:
    assert find_lexer(language) is not None


def test_a_language_that_is_not_on_the_list_is_shown_without_colour() -> None:
    assert highlight_code("x < 1", "brainfuck") == "x &lt; 1"


def test_very_long_code_is_shown_without_colour() -> None:
    assert "<span" not in highlight_code("x = 1\n" * (MAX_HIGHLIGHTED_CHARACTERS // 6 + 1), "python")


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("makefile", "a" * 8_000),
        ("ts", "a." * 4_000),
        ("java", "\n" * 8_000),
        ("markdown", "\n" * 8_000),
        ("csharp", "a\n" * 4_000),
        ("cs", "@a\n" * 4_000),
        ("java", "a " * 200 + "\n" + "a\n" * 200),
    ],
)
def test_code_for_which_a_grammar_takes_many_seconds_is_shown_without_colour(language: str, code: str) -> None:
    """The time of each grew with the square of its length: 10,000 lines of one letter took C# 49 seconds."""
    assert not is_highlighted(code, language)
    assert not is_highlighted(f"x = 1;\n{code}\nx = 1;", language)


@pytest.mark.parametrize("language", ["csharp", "java", "cpp", "ts"])
def test_code_as_people_write_it_has_colour(language: str) -> None:
    method = "    public static int add(int first, int second)\n    {\n        return first + second;\n    }\n\n\n"
    assert highlight_code(f"class Calculator\n{{\n{method * 100}}}\n", language).count('class="k"') > 200


def test_code_within_markdown_chooses_no_grammar() -> None:
    assert 'class="k"' not in highlight_code("```python\ndef f(): pass\n```\n", "markdown")


def test_a_name_in_capitals_is_the_same_language() -> None:
    assert highlight_code("1", "Python") == '<span class="m">1</span>'


def test_neighbours_of_one_kind_share_a_span() -> None:
    assert highlight_code('"a\\n"', "python") == '<span class="s">&quot;a\\n&quot;</span>'


@given(st.sampled_from(sorted(LANGUAGES)), st.text(alphabet="ab1 \n\t\"'`$#/*<>{}[]()=:;\\-é漢", max_size=200))
def test_no_character_of_the_code_is_lost(language: str, code: str) -> None:
    assert unescape(re.sub("<[^>]*>", "", highlight_code(code, language))) == code


def test_code_that_its_grammar_cannot_read_whole_is_shown_without_colour() -> None:
    assert highlight_code("<output>", "console") == "&lt;output&gt;"
