"""Hostile markup in every text that anybody brings: no page has an element or attribute of it."""

from collections.abc import Iterator
from html.parser import HTMLParser
from typing import Final
from urllib.parse import urlsplit

import pytest
from django.http.response import HttpResponseBase
from django.test import Client

from tests.factories.full_evaluation import make_full_evaluation
from tests.helpers.api_client import token_for
from tests.security.hostile_rows import MARK, PAYLOADS, plant_everywhere
from tests.web import test_access as web

pytestmark = [pytest.mark.django_db, pytest.mark.any_database]

FORBIDDEN_TAGS: Final = {"iframe", "object", "embed", "base", "applet", "frame", "frameset"}
ADDRESS_ATTRIBUTES: Final = {"href", "src", "action", "formaction", "xlink:href", "poster", "data", "hx-get", "hx-post"}
HARMLESS_SCHEMES: Final = {"", "http", "https", "mailto"}
OURS: Final = {"", "testserver"}


# Payloads that act in plain HTML; the others need Markdown, formulas, templates or a browser's own repairs.
ACTING_ALONE: Final = (
    "<script",
    "</",
    '">',
    "--",
    "<a",
    "<base",
    "<meta",
    "<form",
    "<iframe",
    "<object",
    "<div",
    "<but",
)


class MarkupScanner(HTMLParser):
    """Collects what planted markup would leave behind if a page let it through."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.faults: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.faults += find_faults(tag, {name: value or "" for name, value in attrs})


def find_faults(tag: str, attributes: dict[str, str]) -> Iterator[str]:
    if tag in FORBIDDEN_TAGS or (tag == "script" and not attributes.get("src", "").startswith("/static/")):
        yield f"<{tag}> {attributes}"
    if tag == "meta" and "http-equiv" in attributes:
        yield f"<meta> {attributes}"
    if MARK in attributes.get("class", ""):
        yield f"<{tag}> came from a text: {attributes}"
    for name, value in attributes.items():
        if name.startswith(("on", "hx-on", "data-hx-on")) or name in ("srcdoc", "style"):
            yield f"<{tag} {name}={value!r}>"
        if name in ADDRESS_ATTRIBUTES:
            yield from find_address_faults(tag, name, value)


def find_address_faults(tag: str, name: str, value: str) -> Iterator[str]:
    address = urlsplit(value.strip())
    is_link = tag == "a" and name == "href"
    if address.scheme not in HARMLESS_SCHEMES or (address.netloc not in OURS and not is_link):
        yield f"<{tag} {name}={value!r}>"


def scan(answer: HttpResponseBase) -> list[str]:
    if not answer.headers.get("Content-Type", "").startswith("text/html") or not hasattr(answer, "getvalue"):
        return []
    scanner = MarkupScanner()
    scanner.feed(answer.getvalue().decode())
    return scanner.faults


def test_the_scanner_finds_every_payload_that_is_let_through() -> None:
    """Else the walk below would be satisfied by a scanner that sees nothing."""
    for payload in (payload for payload in PAYLOADS if payload.startswith(ACTING_ALONE)):
        scanner = MarkupScanner()
        scanner.feed(f"<p>{payload}</p>")
        assert scanner.faults, payload


def test_no_page_lets_markup_of_a_text_through(client: Client) -> None:
    marked = make_full_evaluation(web.NUMBER)
    assert plant_everywhere(web.NUMBER) > 60
    marked.owner.is_superuser = True
    marked.owner.save()
    client.force_login(marked.owner)
    faults, shown = {}, 0
    for door in web.DOORS:
        for method, way in [("get", way) for way in web.WAYS_TO_ASK] + [("post", {})]:
            if method == "post" and door.name in ("sign_out", "account_disable", "evaluation_archive", "member_remove"):
                continue
            answer = web.ask(client, method, door.address(marked.evaluation.slug), query_params=way)
            if found := scan(answer):
                faults[method, door.name] = found[:3]
            if answer.status_code >= 500 and door.name != "work":  # that one says 503 without a worker
                faults[method, door.name] = [f"status {answer.status_code}"]
            shown += MARK in web.body(answer)
    assert faults == {}
    assert shown > 60, "the planted texts are shown nowhere"


def test_no_answer_of_the_api_is_a_page(client: Client) -> None:
    from tests.api import test_access as api

    marked = make_full_evaluation(web.NUMBER)
    plant_everywhere(web.NUMBER)
    token, wrong = token_for(marked.owner), []
    for door in api.READING:
        answer = api.ask(door, token, marked.evaluation.slug)
        kind = answer.headers.get("Content-Type", "")
        is_named_file = "attachment" in answer.headers.get("Content-Disposition", "")
        if not (kind.startswith(("application/json", "application/problem+json")) or is_named_file):
            wrong.append((door.name, kind))
        if answer.headers.get("X-Content-Type-Options") != "nosniff":
            wrong.append((door.name, "may be sniffed"))
    assert wrong == []
