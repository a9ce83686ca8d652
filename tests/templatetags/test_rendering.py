"""Texts on a page, through the template filter and the fragment that every page shares."""

import pytest
from django.template import Context, Template
from django.template.loader import render_to_string
from django.utils.safestring import mark_safe


def test_the_filter_gives_safe_html_that_is_not_escaped_again() -> None:
    page = Template("{% load rendering %}{{ text|rendered }}").render(Context({"text": "**a** <i>"}))
    assert page == '<p dir="auto"><strong>a</strong> &lt;i&gt;</p>\n'


def test_a_text_that_was_not_supplied_is_nothing() -> None:
    assert Template("{% load rendering %}{{ text|rendered }}").render(Context({"text": None})) == ""


def test_a_single_turn_stands_alone() -> None:
    html = render_to_string("_conversation.html", {"turns": [{"role": "user", "content": "Why?"}]})
    assert "Why?" in html
    assert "User" not in html


def test_in_a_conversation_each_turn_says_who_speaks() -> None:
    turns = [{"role": "user", "content": "Why?"}, {"role": "assistant", "content": "Because."}]
    html = render_to_string("_conversation.html", {"turns": turns})
    assert html.index("User") < html.index("Why?") < html.index("Assistant") < html.index("Because.")


def test_an_empty_response_says_that_it_is_empty() -> None:
    html = render_to_string("_conversation.html", {"turns": [{"role": "assistant", "content": " "}]})
    assert "Empty response" in html


def test_html_that_was_made_before_is_used_as_it_is() -> None:
    page = Template("{% load rendering %}{{ html|of:text }}").render(
        Context({"html": {"*a*": mark_safe("<i>made</i>")}, "text": "*a*"})
    )
    assert page == "<i>made</i>"


@pytest.mark.parametrize("html", [{}, {"html": {"another": "<i>made</i>"}}])
def test_a_text_that_nobody_made_html_of_is_rendered_on_the_spot(html: dict[str, dict[str, str]]) -> None:
    page = Template("{% load rendering %}{{ html|of:text }}").render(Context({"text": "*a*", **html}))
    assert page == '<p dir="auto"><em>a</em></p>\n'


def test_a_conversation_uses_the_html_that_its_page_had_made() -> None:
    turns = [{"role": "user", "content": "Why?"}]
    assert "<b>made</b>" in render_to_string(
        "_conversation.html", {"turns": turns, "html": {"Why?": mark_safe("<b>made</b>")}}
    )


def test_of_a_very_long_turn_only_what_is_near_is_laid_out() -> None:
    short, long = ({"role": "assistant", "content": "word " * count} for count in (10, 5_000))
    assert 'class="rendered"' in render_to_string("_conversation.html", {"turns": [short]})
    assert 'class="rendered long"' in render_to_string("_conversation.html", {"turns": [long]})
