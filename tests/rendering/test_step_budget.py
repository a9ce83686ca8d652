"""No text takes more than its steps, counted and not timed, and what is too intricate is shown as written."""

import sys
from collections.abc import Callable
from types import FrameType

import pytest

from evaluations.domain.errors import InputRefused
from evaluations.rendering import word_diff
from evaluations.rendering.markdown import (
    MAX_CELLS,
    MAX_MARKS,
    MAX_PARSED_CHARACTERS,
    MAX_STEPS,
    render_markdown,
    show_as_written,
)
from evaluations.rendering.plain_text import text_content
from evaluations.rendering.step_budget import StepBudget
from evaluations.rendering.word_diff import diff_turns

# Each of these took more than linear time, or much of it for each character.
UNITS = {
    "images begun": "![",
    "links begun": "[",
    "empty links": "[](",
    "declarations begun": "<![CDATA[",
    "addresses": "http://a.b ",
    "protocols": "<http:",
    "protocols in a word": "xmpp:",
    "web addresses in a label": "*www.a.b",
    "mail addresses": "a@",
    "closing brackets": ")",
    "entities": "&#",
    "quotes": "> ",
    "quoted lines": "> a\n",
    "items": "- a\n",
    "nested items": "- ",
    "headings": "# a\n",
    "underlined headings": "a\n=\n",
    "rows": "a|b\n",
    "emphasis": "*a ",
    "strong": "a**",
    "backticks": "`a``",
    "formulas": "$a_1$ ",
    "formulas begun": "$$\n\n",
    "brackets begun": "\\[\na\n\n",
    "definitions": "[a]: b\n",
    "definitions begun": "[\n",
    "sparse tables": "|a" * 60 + "\n" + "|-" * 60 + "\n" + "a\n" * 60 + "\n",
}
PREFIXES = {"web addresses in a label": "[", "closing brackets": "http://a.b/", "rows": "a|b\n-|-\n"}


def text_of(name: str, characters: int) -> str:
    unit = UNITS[name]
    return (PREFIXES.get(name, "") + unit * (characters // len(unit)))[:characters]


def count_calls(action: Callable[[], object]) -> int:
    """The calls of Python functions that an action makes."""
    calls = 0

    def count(frame: FrameType, event: str, argument: object) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        action()
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("name", UNITS)
def test_a_longer_text_takes_in_proportion_or_is_given_up(name: str) -> None:
    """Twice the text takes no more than two and a half times the calls, or its budget runs out soon."""
    budgets = [StepBudget(60_000), StepBudget(60_000)]
    short, long = (
        count_calls(lambda n=n, budget=budget: render_markdown(text_of(name, n), budget))  # type: ignore[misc]
        for n, budget in zip((1_500, 3_000), budgets, strict=True)
    )
    assert long < (240_000 if budgets[1].has_run_out else 2.5 * short + 2_000)


@pytest.mark.parametrize("name", ["images begun", "items", "addresses"])
def test_the_longest_text_takes_no_more_than_its_budget(name: str) -> None:
    budget = StepBudget(60_000)
    assert count_calls(lambda: render_markdown(text_of(name, MAX_PARSED_CHARACTERS), budget)) < 240_000
    assert budget.has_run_out


def test_a_text_that_is_too_intricate_is_shown_as_written_without_losing_a_character() -> None:
    text = "![" * 3_000
    assert render_markdown(text) == show_as_written(text)
    assert text_content(render_markdown(text)) == text
    assert 'class="as-written"' in render_markdown(text)


@pytest.mark.parametrize(
    "text", ["|a|b|\n" * (MAX_CELLS // 3 + 1), "*" * (MAX_MARKS + 1), "a" * (MAX_PARSED_CHARACTERS + 1)]
)
def test_cells_marks_and_characters_have_limits(text: str) -> None:
    assert render_markdown(text) == show_as_written(text)


def test_a_long_text_of_usual_markup_is_formatted() -> None:
    part = "## Title\n\nSome **prose** with `code`, [a link](http://a.b):\n\n- one\n- two\n\n| a |\n|-|\n| 1 |\n\n"
    budget = StepBudget(MAX_STEPS)
    assert "as-written" not in render_markdown(part * (60_000 // len(part)), budget)
    assert not budget.has_run_out


def test_formulas_and_code_are_shown_as_written_once_the_steps_are_spent() -> None:
    budget = StepBudget(2_000)
    html = render_markdown("$x^2$\n\n```python\ndef f(): pass\n```\n\n" + "$y^2$ " * 5, budget)
    assert budget.has_run_out
    assert "<math" in html
    assert '<code class="formula" dir="ltr">$y^2$</code>' in html


def test_an_address_longer_than_any_is_text() -> None:
    assert 'class="link"' in render_markdown("http://a.b/" + "c" * 1_000)
    assert 'class="link"' not in render_markdown("http://a.b/" + "c" * 3_000)


def test_all_turns_together_are_compared_or_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_diff, "MAX_COMPARED", 100)
    assert len(diff_turns([("a b", "a c")] * 25)) == 25
    with pytest.raises(InputRefused, match="side by side"):
        diff_turns([("a b", "a c")] * 26)


def test_texts_of_too_many_lines_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word_diff, "MAX_COMPARED", 100)
    monkeypatch.setattr(word_diff, "MAX_LINES_COMPARED", 100)
    with pytest.raises(InputRefused, match="side by side"):
        diff_turns([("a\n" * 11, "b\n" * 11)])
