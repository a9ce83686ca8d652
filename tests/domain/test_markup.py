"""Which Markdown a text holds: by hand, against a parser, and on texts made to take long."""

from time import process_time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from evaluations.domain.texts import Markup, detect_markup

NONE = Markup(0)
LIST, HEADING, EMPHASIS, TABLE, CODE = Markup.LIST, Markup.HEADING, Markup.EMPHASIS, Markup.TABLE, Markup.CODE


@pytest.mark.parametrize(
    ("text", "kinds"),
    [
        ("", NONE),
        ("One line of prose - with a dash, 2 * 3 = 6 and 1. a number.", NONE),
        ("- one", LIST),
        ("Two:\n  * one\n  * two", LIST),
        ("Steps:\r\n1) one\r\n2) two", LIST),
        ("12. twelve", LIST),
        ("• one\n• two", LIST),
        ("-\nno item", NONE),
        ("1990. That was the year", NONE),
        ("- - -\nbelow a rule", NONE),
        ("* * *", NONE),
        ("---", NONE),
        ("# Title", HEADING),
        ("text\n   ###### Six", HEADING),
        ("####### Seven", NONE),
        ("#hashtag", NONE),
        ("a **bold** word", EMPHASIS),
        ("an _italic_ word", EMPHASIS),
        ("***both***", EMPHASIS),
        ("这是**重点**内容", EMPHASIS),
        ("2**3**4 and snake_case_name", NONE),
        ("2 * 3 * 4 ** 5", NONE),
        ("* not closed", LIST),
        ("\\*not emphasis\\*", NONE),
        ("a *word\nover* lines", NONE),
        ("| a | b |\n|---|:-:|\n| 1 | 2 |", TABLE),
        ("a | b\n--|--\n1 | 2", TABLE),
        ("|---|---|", NONE),
        ("a | b\n---\nc", NONE),
        ("call `f(x)` now", CODE),
        ("a ` alone", NONE),
        ("```py\nx = 1\n```", CODE),
        ("~~~\n- no item\n~~~", CODE),
    ],
)
def test_each_kind_is_seen_where_it_is_and_nowhere_else(text: str, kinds: Markup) -> None:
    assert detect_markup(text) == kinds


@pytest.mark.parametrize(
    "fenced",
    [
        "```\n# no heading\n- no item\n**no**\n|a|b|\n|-|-|\n```",
        "~~~~ text\n# no heading\n~~~\n- no item\n~~~~",
        "```\nnever closed\n- no item",
        "````\n```\n- no item\n```\n````",
        "`**no**` and `_no_`",
    ],
)
def test_what_stands_in_code_is_code_and_nothing_else(fenced: str) -> None:
    assert detect_markup(fenced) == CODE
    assert detect_markup(f"- item\n\n{fenced}") == LIST | CODE


def test_what_follows_a_closed_fence_counts_again() -> None:
    assert detect_markup("```\ncode\n```\n# Title\n~~~\ncode\n~~~\n- item") == CODE | HEADING | LIST


def test_the_stored_bits_never_change_their_meaning() -> None:
    assert {kind.name: kind.value for kind in Markup} == {
        "LIST": 1,
        "HEADING": 2,
        "EMPHASIS": 4,
        "TABLE": 8,
        "CODE": 16,
    }


PARSER = MarkdownIt("commonmark").enable("table")
BLOCKS = {
    "bullet_list_open": LIST,
    "ordered_list_open": LIST,
    "heading_open": HEADING,
    "table_open": TABLE,
    "fence": CODE,
}
INLINE = {"strong_open": EMPHASIS, "em_open": EMPHASIS, "code_inline": CODE}


def by_the_parser(text: str) -> Markup:
    found = NONE
    for token in PARSER.parse(text):
        found |= BLOCKS.get(token.type, NONE)
        for inner in token.children or []:
            found |= INLINE.get(inner.type, NONE)
    return found


words = st.sampled_from(["plain", "2 * 3", "a_b_c", "**bold**", "*it*", "_it_", "`f(x)`", "1.5", "C#", "a - b", "x|y"])
lines = st.lists(words, min_size=1, max_size=4).map(" ".join)
blocks = st.one_of(
    lines.map(lambda line: f"So {line}"),
    lines.map(lambda line: f"## So {line}"),
    st.lists(lines, min_size=1, max_size=3).map(lambda items: "\n".join(f"- So {item}" for item in items)),
    st.lists(lines, min_size=1, max_size=3).map(lambda items: "\n".join(f"{n}. So" for n, _ in enumerate(items, 1))),
    lines.map(lambda line: f"```\n# {line}\n- {line}\n```"),
    st.just("| a | b |\n| --- | --- |\n| 1 | 2 |"),
    st.just("* * *"),
)


@given(st.lists(blocks, max_size=5).map("\n\n".join))
def test_well_formed_texts_hold_what_a_parser_finds(text: str) -> None:
    assert detect_markup(text) == by_the_parser(text)


@given(st.text(alphabet="ab \n\r\t*_`~#|-:1.)\\", max_size=60))
def test_every_text_has_an_answer(text: str) -> None:
    assert detect_markup(text) in range(32)


HOSTILE = ["*", "**a ", "_", "*a _b ", "`", "`a", "\n```", "\n~~~a", " ", "\n-", "- ", "* * ", "\n|-", "\n|-|-x", "\r"]


@pytest.mark.parametrize("piece", HOSTILE)
def test_no_text_takes_more_than_linear_time(piece: str) -> None:
    # Half a million characters take 0.06 s at most; anything quadratic takes hours.
    text = piece * (500_000 // len(piece))
    started = process_time()
    detect_markup(text)
    assert process_time() - started < 2
