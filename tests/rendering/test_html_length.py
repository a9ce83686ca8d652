"""The HTML of a text is bounded by the length of the text, and long addresses are shortened in the middle."""

import tracemalloc
from html import unescape

import pytest

from evaluations.rendering.markdown import (
    MAX_ADDED_CHARACTERS,
    MAX_GROWTH,
    MAX_PARSED_CHARACTERS,
    MAX_SHOWN_ADDRESS,
    render_markdown,
    show_as_written,
)
from evaluations.rendering.plain_text import text_content

LONG = "x" * 5_000


def sparse_table(columns: int, rows: int, alignment: str = ":-:") -> str:
    """A table whose rows have one cell, of which the parser makes as many as there are columns."""
    return "|a" * columns + "\n" + f"|{alignment}" * columns + "\n" + "a\n" * rows + "\n"


REPEATING = {
    "a web address": f"[a]: http://b/{LONG}\n\n" + "[a] " * 2_000,
    "a host": f"[a]: http://{LONG}\n\n" + "[a] " * 2_000,
    "a shorter web address": "[a]: http://b/" + "x" * 300 + "\n\n" + "[a] " * 10_000,
    "a web address in other letters": "[a]: http://b/" + "漢" * 2_000 + "\n\n" + "[a] " * 2_000,
    "a relative address": f"[a]: {LONG}\n\n" + "[a] " * 2_000,
    "a mail address": f"[a]: mailto:{LONG}\n\n" + "[a] " * 2_000,
    "an address that is escaped": "[a]: http://b/" + "&" * 5_000 + "\n\n" + "[a] " * 2_000,
    "an address with words of its own": f"[a]: http://b/{LONG}\n\n" + "[c][a] " * 2_000,
    "the address of an image": f"[a]: http://b/{LONG}\n\n" + "![a] " * 2_000,
    "a title": f"[a]: b '{LONG}'\n\n" + "[a] " * 2_000,
    "a long label": f"[{'a' * 998}]: b\n" + f"[{'a' * 998}] " * 140,
    "short addresses": "[a]: http://b.example/\n\n" + "[a]" * 5_000,
    "cells": sparse_table(150, 150),
    "cells of many tables": sparse_table(40, 40, "-") * 20,
    "cells of a wide table": sparse_table(9_000, 20, "-"),
}
LINEAR = {
    "tasks": "- [ ] a\n",
    "images": "![](b) ",
    "links": "[a](http://b) ",
    "bare addresses": "www.a.b ",
    "quotes": "> a\n\n",
    "nested quotes": "> " * 90 + "a\n\n",
    "nested items": "- " * 40 + "a\n",
    "headings": "# a\n",
    "fences": "~~~a\na\n~~~\n",
    "code": "`a` ",
    "colored code": "```python\n" + "1 + " * 200 + "1\n```\n\n",
    "formulas": "$a$ ",
    "arrays": r"\begin{array}{c|c}" + r"a&b\\" * 200 + r"\end{array}" + "\n\n",
    "white space in a formula": "$$" + r"\," * 900 + "$$\n\n",
    "ampersands": "&",
    "spaces that do not break": "\u00a0a",
    "sparse tables": sparse_table(20, 20, "-"),
}


def is_bounded(text: str) -> bool:
    return len(render_markdown(text)) <= MAX_GROWTH * len(text) + MAX_ADDED_CHARACTERS


@pytest.mark.parametrize("name", REPEATING)
def test_what_a_text_repeats_does_not_multiply(name: str) -> None:
    assert is_bounded(REPEATING[name])


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("characters", [1_000, 20_000, MAX_PARSED_CHARACTERS])
def test_markup_takes_in_proportion_to_the_text(name: str, characters: int) -> None:
    unit = LINEAR[name]
    assert is_bounded(unit * (characters // len(unit)))


@pytest.mark.parametrize("name", ["a web address", "the address of an image", "cells"])
def test_a_text_that_would_multiply_is_shown_as_written(name: str) -> None:
    text = REPEATING[name]
    assert render_markdown(text) == show_as_written(text)


@pytest.mark.parametrize(
    "text",
    [
        f"[a]: http://b/{'x' * 30_000}\n\n" + "[a] " * 10_000,
        f"[a]: http://b/{'x' * 30_000}\n\n" + "![a] " * 10_000,
        sparse_table(200, 330) * 20,
    ],
    ids=["links", "images", "tables"],
)
def test_finding_out_takes_little_memory(text: str) -> None:
    tracemalloc.start()
    try:
        render_markdown(text)
        assert tracemalloc.get_traced_memory()[1] < 64 << 20
    finally:
        tracemalloc.stop()


def test_references_of_an_ordinary_text_are_links() -> None:
    address = "https://example.org/" + "a" * 80
    html = render_markdown("Some words as evidence of this claim [1].\n\n" * 200 + f"\n[1]: {address}\n")
    assert html.count(f'data-address="{address}"') == html.count(f"({address})") == 200


def test_a_very_long_address_is_shown_without_its_middle() -> None:
    address = "https://example.org/" + "a" * 1_000 + "/end"
    html = render_markdown(f"[here]({address}) ![cat]({address})")
    shown = [part.partition(")")[0] for part in text_content(html).split("(")[1:]]
    assert len(shown) == 2
    assert all(part.startswith("https://example.org/aaa") and part.endswith("aaa/end") for part in shown)
    assert all(part.count("…") == 1 and len(part) == MAX_SHOWN_ADDRESS + 1 for part in shown)
    assert f'data-address="{address}"' in html  # what is opened is whole


def test_a_long_address_is_shown_with_its_whole_host() -> None:
    host = "bank.example" + "%20" * 300 + "@evil.example"
    assert f"(https://{host}…" in unescape(text_content(render_markdown(f"[bank](https://{host}/{'a' * 1_000})")))


def test_an_address_of_usual_length_is_shown_whole() -> None:
    address = "https://example.org/" + "a" * (MAX_SHOWN_ADDRESS - 20)
    assert f"({address})" in render_markdown(f"[here]({address})")
    assert "…" not in render_markdown(f"[here]({address})")


def test_an_address_written_out_is_whole_however_long_it_is() -> None:
    address = "https://example.org/" + "a" * 1_000
    assert text_content(render_markdown(f"<{address}>")).strip() == address
