"""What every template keeps to, so that the strict content security policy breaks nothing."""

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.template import engines
from django.test import Client

ROOT = Path(settings.BASE_DIR) / "templates"
TEMPLATES = sorted(ROOT.rglob("*.html"))
LONGEST_LINE = 160
FORBIDDEN = {
    "a style attribute": r"<[^>]*\sstyle\s*=",
    "a style element": r"<style\b",
    "a script in the page": r"<script\b(?![^>]*\ssrc=)",
    "an event handler": r"<[^>]*\son[a-z]+\s*=",
    "a handler of htmx": r"\shx-on\b",
    "an expression for htmx": r"\shx-(?:vals|vars|headers)\s*=\s*['\"]?\s*(?:js|javascript):",
    "a script as an address": r"(?:href|src|action)\s*=\s*['\"]?\s*(?:javascript|data):",
    "an address of another site": r"<(?:script|link|img)\b[^>]*(?:src|href)\s*=\s*['\"]?(?:https?:)?//",
    "text taken for safe": r"\|\s*safe\b|\{%\s*autoescape off",
}


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_template_holds_nothing_that_the_policy_forbids(path: Path) -> None:
    text = path.read_text()
    assert [what for what, pattern in FORBIDDEN.items() if re.search(pattern, text, re.IGNORECASE)] == []


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_template_can_be_read(path: Path) -> None:
    engines["django"].get_template(str(path.relative_to(ROOT)))


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_template_can_be_read_without_scrolling_sideways(path: Path) -> None:
    assert [line for line in path.read_text().splitlines() if len(line) > LONGEST_LINE] == []


def test_each_forbidden_thing_would_be_found() -> None:
    samples = [
        '<p style="color: red">',
        "<style>",
        "<script>",
        '<a onclick="go()">',
        '<p hx-on:click="go()">',
        "<p hx-vals='js:{}'>",
        '<a href="javascript:go()">',
        '<script src="https://cdn.example/x.js">',
        "{{ text|safe }}",
    ]
    for sample, pattern in zip(samples, FORBIDDEN.values(), strict=True):
        assert re.search(pattern, sample, re.IGNORECASE), sample


def test_every_answer_carries_the_policy(client: Client) -> None:
    policy = client.get("/no-such-page")["Content-Security-Policy"]
    assert "script-src 'self'" in policy
    assert "style-src 'self'" in policy
    assert "unsafe" not in policy
