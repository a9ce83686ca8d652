"""Whether an OpenAI-compatible server can be reached, asked for its models: no tokens, no cost."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2

from evaluations.outside.dialects import adapter_of
from evaluations.outside.llm import LLMError, Server, from_environment, key_of, trusted
from evaluations.outside.recognition import Get, Page, Post
from evaluations.outside.wording import json_in

PATIENCE_SECONDS: Final = 5.0


def trouble_with(server: Server) -> str:
    """Why calls to it would fail, as far as can be told without one; "" where nothing speaks against it."""
    try:
        key = key_of(server)
    except LLMError as error:
        return str(error)
    headers = {"authorization": f"Bearer {key}"} if server.key_variable else {}
    try:
        answer = httpx2.get(f"{server.base_url}/models", headers=headers, timeout=PATIENCE_SECONDS, verify=trusted())
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        return f"It does not answer ({' '.join(str(error).split()) or type(error).__name__})."
    if answer.status_code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return f"It refuses {f'the key in {server.key_variable}' if server.key_variable else 'whoever has no key'}."
    if answer.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return f"It answers, but with the error {answer.status_code}."
    return ""


def getter_of(server: Server) -> Get:
    """A function that asks the server for a path on its host; without a redirect."""
    return lambda path: asked(server, "GET", path)


def poster_of(server: Server) -> Post:
    return lambda path, body: asked(server, "POST", path, body)


def asked(server: Server, method: str, path: str, body: Mapping[str, Any] | None = None) -> Page | None:
    parts = urlsplit(server.base_url)
    try:
        key = key_of(server)
        own = from_environment(server.headers)
    except LLMError:
        return None
    keys = adapter_of(server).key_headers(key) if server.key_variable else {}
    headers = {name: value for name, value in {**keys, **own}.items() if isinstance(value, str)}
    address = f"{parts.scheme}://{parts.netloc}{path}"
    try:
        answer = httpx2.request(method, address, headers=headers, json=body, timeout=PATIENCE_SECONDS, verify=trusted())
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError):
        return None
    return answer.status_code, dict(answer.headers), json_in(answer.text)
