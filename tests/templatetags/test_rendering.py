"""Texts on a page, through the template filter and the fragment that every page shares."""

from django.template import Context, Template
from django.template.loader import render_to_string


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
    assert "nothing was written" in html
