"""Whether an OpenAI-compatible server can be reached, asked for its models: no tokens, no cost."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2

from evaluations.outside.dialects import adapter_of
from evaluations.outside.llm import LLMError, Server, base_url_of, headers_of, key_of, query_of, trusted
from evaluations.outside.recognition import Get, Page, Post
from evaluations.outside.wording import json_in

PATIENCE_SECONDS: Final = 5.0


def trouble_with(server: Server) -> str:
    """Why calls to it would fail, as far as its list of models tells; "" where nothing speaks against it."""
    try:
        answer = answer_at(server, "GET", f"{base_url_of(server)}/models")
    except LLMError as error:
        return str(error)
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        return f"It does not answer ({' '.join(str(error).split()) or type(error).__name__})."
    if answer.status_code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return f"It refuses {f'the key in {server.key_variable}' if server.key_variable else 'whoever has no key'}."
    if answer.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return f"It answers, but with the error {answer.status_code}."
    return ""


def getter_of(server: Server) -> Get:
    """A function that asks the server for a path on its host; without a redirect."""
    return lambda path: page_at(server, "GET", path)


def poster_of(server: Server) -> Post:
    return lambda path, body: page_at(server, "POST", path, body)


def page_at(server: Server, method: str, path: str, body: Mapping[str, Any] | None = None) -> Page | None:
    parts = urlsplit(server.base_url)
    try:
        answer = answer_at(server, method, f"{parts.scheme}://{parts.netloc}{path}", body)
    except (LLMError, httpx2.HTTPError, httpx2.InvalidURL, OSError):
        return None
    return answer.status_code, dict(answer.headers), json_in(answer.text)


def answer_at(server: Server, method: str, address: str, body: Mapping[str, Any] | None = None) -> httpx2.Response:
    """What the server answers at this address, asked with the key and the extras of a judge's requests."""
    headers = headers_of(server, key_of(server))
    if not server.key_variable:
        headers = {name: value for name, value in headers.items() if name not in adapter_of(server).key_headers("")}
    sent: dict[str, Any] = {"headers": headers, "params": query_of(server) or None, "json": body}
    return httpx2.request(method, address, **sent, timeout=PATIENCE_SECONDS, verify=trusted())
