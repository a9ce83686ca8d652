"""The longest common subsequence, against the textbook's table."""

from unittest import mock

from hypothesis import given
from hypothesis import strategies as st

from evaluations.rendering import word_diff
from evaluations.rendering.word_diff import MatchingRun, align_words

WORDS = st.lists(st.sampled_from("abcd"), max_size=30)


def longest(a: list[str], b: list[str]) -> int:
    """Word by word, as textbooks have it."""
    row = [0] * (len(b) + 1)
    for here in a:
        above, row = row, [0]
        for place, there in enumerate(b):
            row.append(max(row[-1], above[place + 1], above[place] + (here == there)))
    return row[-1]


def test_runs_are_as_long_as_they_can_be() -> None:
    assert align_words(["x", "the", "cat", "sat"], ["the", "cat", "sat", "down"]) == [MatchingRun(1, 0, 3)]


def test_equal_beginnings_and_ends_are_found() -> None:
    assert align_words(list("abXcd"), list("abYYcd")) == [MatchingRun(0, 0, 2), MatchingRun(3, 4, 2)]


def test_texts_without_a_common_word_have_no_run() -> None:
    assert align_words(["a"], ["b"]) == align_words([], ["b"]) == align_words([], []) == []


@given(WORDS, WORDS, st.sampled_from([0, 1 << 26]))
def test_as_many_words_as_possible_are_common_and_in_order_halved_or_not(a: list[str], b: list[str], kept: int) -> None:
    with mock.patch.object(word_diff, "MAX_TABLE_BITS", kept):
        runs = align_words(a, b)
    assert all(a[run.a : run.a + run.length] == b[run.b : run.b + run.length] for run in runs)
    ends = [0, 0]
    for run in runs:
        assert run.a >= ends[0]
        assert run.b >= ends[1]
        ends = [run.a + run.length, run.b + run.length]
    assert sum(run.length for run in runs) == longest(a, b)


@given(st.lists(st.sampled_from("ab"), min_size=20, max_size=60), WORDS)
def test_words_that_come_often_are_found_like_the_others(a: list[str], b: list[str]) -> None:
    assert sum(run.length for run in align_words(b, a)) == longest(b, a)
