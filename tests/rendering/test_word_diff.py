"""Two texts word by word."""

import re
from html import unescape
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluations.domain.errors import InputRefused
from evaluations.rendering import word_diff
from evaluations.rendering.word_diff import diff_words

HEARD = re.compile(r'<span class="visually-hidden" dir="ltr">[^<]*</span>')
MARK = re.compile(r"<(del|ins) class=\"only\">(.*?)</\1>", re.DOTALL)


def without_marks(html: str) -> str:
    """The text as it was, if marks are all that was added."""
    return unescape(re.sub(r'<(?:del|ins) class="only">|</(?:del|ins)>', "", HEARD.sub("", html)))


def only(html: str) -> list[str]:
    """The words that are marked."""
    return [unescape(mark) for _, mark in MARK.findall(HEARD.sub("", html))]


def test_only_what_differs_is_marked() -> None:
    a, b = diff_words("The cat sat on the mat.", "The dog sat on the mat!")
    assert only(a) == ["cat", "."]
    assert only(b) == ["dog", "!"]


def test_each_mark_says_in_words_which_side_alone_has_it() -> None:
    a, b = diff_words("one red end", "one blue end")
    assert a == 'one <del class="only"><span class="visually-hidden" dir="ltr">only in A: </span>red</del> end'
    assert b == 'one <ins class="only"><span class="visually-hidden" dir="ltr">only in B: </span>blue</ins> end'


def test_equal_texts_have_no_mark() -> None:
    assert diff_words("a <b>\n  c", "a <b>\n  c") == ("a &lt;b&gt;\n  c", "a &lt;b&gt;\n  c")


def test_white_space_alone_makes_no_difference_and_is_kept() -> None:
    assert diff_words("a  b\n", "a b") == ("a  b\n", "a b")


def test_neighbouring_words_share_a_mark() -> None:
    assert only(diff_words("so very much indeed", "so indeed")[0]) == ["very much"]


def test_writing_without_spaces_is_compared_by_the_character() -> None:
    a, b = diff_words("東京は日本の首都です", "京都は日本の首都でした")
    assert only(a) == ["東京", "す"]
    assert only(b) == ["京都", "した"]


def test_words_of_other_alphabets_are_whole_with_their_vowel_signs() -> None:
    assert only(diff_words("नमस्ते दुनिया", "नमस्कार दुनिया")[0]) == ["नमस्ते"]
    assert only(diff_words("مُحَمَّد هنا", "أحمد هنا")[0]) == ["مُحَمَّد"]


def test_words_that_are_common_by_chance_do_not_break_a_mark() -> None:
    a, _ = diff_words("Photosynthesis converts sunlight of plants", "Mitochondria produce energy of cells here")
    assert only(a) == ["Photosynthesis converts sunlight of plants"]


def test_markup_in_a_text_is_text() -> None:
    a, b = diff_words("<script>alert(1)</script>", "<img src=x onerror=alert(1)>")
    assert not re.search(r"<(?!/?(?:del|ins|span)\b)", a + b)


@pytest.mark.parametrize(("a", "b"), [("", ""), ("", "x"), ("x", ""), (" ", "\n")])
def test_an_empty_text_is_compared_like_any_other(a: str, b: str) -> None:
    assert tuple(map(without_marks, diff_words(a, b))) == (a, b)


ANY = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
ALIKE = st.lists(
    st.sampled_from(["the", " ", "\n", "\n\n", "cat", "<b>", "&amp;", "東", "京", "é", "."]), max_size=60
).map("".join)


@given(st.one_of(st.tuples(ANY, ANY), st.tuples(ALIKE, ALIKE)), st.sampled_from([word_diff.MAX_COMPARED, 900]))
def test_without_its_marks_each_text_is_exactly_as_it_was(texts: tuple[str, str], most: int) -> None:
    with mock.patch.object(word_diff, "MAX_COMPARED", most):
        try:
            compared = diff_words(*texts)
        except InputRefused:
            return
    assert tuple(map(without_marks, compared)) == texts


@given(ALIKE, ALIKE)
def test_what_is_not_marked_is_the_same_on_both_sides(a: str, b: str) -> None:
    left, right = (unescape(MARK.sub("", HEARD.sub("", html))).split() for html in diff_words(a, b))
    assert "".join(left) == "".join(right)


def test_long_texts_are_compared_line_by_line_first() -> None:
    same = "".join(f"line {number}\n" for number in range(50))
    with mock.patch.object(word_diff, "MAX_COMPARED", 1000):
        a, b = diff_words(f"{same}so red an evening\n{same}", f"{same}so blue an evening\nand more\n{same}")
    assert only(a) == ["red"]
    assert only(b) == ["blue", "and more"]


def test_texts_that_are_too_long_and_too_different_are_refused_in_a_sentence() -> None:
    with mock.patch.object(word_diff, "MAX_COMPARED", 1000), pytest.raises(InputRefused, match="side by side"):
        diff_words("a b c d " * 10, "w x y z " * 10)


def test_half_a_character_becomes_a_question_mark() -> None:
    assert diff_words("a\ud800", "a\ud800") == ("a?", "a?")
