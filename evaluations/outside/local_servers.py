"""A server of models on this machine, looked for where it usually answers."""

import http.client
import json
from contextlib import closing
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from evaluations.domain import Dialect
from evaluations.outside.recognition import Get, Page, recognized

OTHER: Final = "OpenAI-compatible"
# What a page calls it.
KINDS: Final = {
    Dialect.OLLAMA: "ollama",
    Dialect.LLAMA_CPP: "llama.cpp",
    Dialect.LM_STUDIO: "LM Studio",
    Dialect.VLLM: "vLLM",
    Dialect.LITELLM: "LiteLLM",
}

# Whoever answers does so from the same machine; a listener that says nothing is no server of models.
PATIENCE_SECONDS: Final = 2.0
MOST_BYTES: Final = 1_000_000


@dataclass(frozen=True)
class Found:
    """``base_url`` is that of its OpenAI-compatible API."""

    base_url: str
    kind: str
    model_names: tuple[str, ...]


def look_at(address: str) -> Found | None:
    """What answers at this address (scheme, host and port), asked for its models; None where nobody of use does."""
    found = recognized(address, getter(address))
    if found is None or found.model_names is None:
        return None
    return Found(found.base_url, KINDS.get(found.dialect, OTHER), found.model_names)


def dialect_of(kind: str) -> Dialect | None:
    """The dialect of a server that was found under this name; None where only the protocol is known."""
    return next((dialect for dialect, name in KINDS.items() if name == kind), None)


def getter(address: str) -> Get:
    return lambda path: page_at(address, path)


def page_at(address: str, path: str) -> Page | None:
    """What is there, without a proxy or a redirect; None where nobody listens or keeps to HTTP."""
    parts = urlsplit(address)
    secure = parts.scheme == "https"
    connect = http.client.HTTPSConnection if secure else http.client.HTTPConnection
    try:
        with closing(connect(parts.hostname or "", parts.port, timeout=PATIENCE_SECONDS)) as connection:
            connection.request("GET", path, headers={"Accept": "application/json"})
            answer = connection.getresponse()
            text = answer.read(MOST_BYTES)
            return answer.status, dict(answer.getheaders()), json_in(text)
    except (OSError, http.client.HTTPException):
        return None


def json_in(text: bytes) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None
