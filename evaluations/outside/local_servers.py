"""A server of models on this machine, looked for where it usually answers."""

import http.client
import json
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

OLLAMA: Final = "ollama"
OTHER: Final = "OpenAI-compatible"

# Whoever answers does so from the same machine; a listener that says nothing is no server of models.
PATIENCE_SECONDS: Final = 2.0
MOST_BYTES: Final = 1_000_000
LONGEST_NAME: Final = 200


@dataclass(frozen=True)
class Found:
    """``base_url`` is that of its OpenAI-compatible API."""

    base_url: str
    kind: str
    model_names: tuple[str, ...]


def look_at(address: str) -> Found | None:
    """What answers at this address (scheme, host and port), asked for its models; None where nobody of use does."""
    for path, kind, names_in in WAYS:
        told = json_from(address, path)
        names = names_in(told) if isinstance(told, dict) else None
        if names is not None:
            return Found(f"{address}/v1", kind, tuple(dict.fromkeys(name[:LONGEST_NAME] for name in names)))
    return None


def names_of_tags(told: Mapping[str, Any]) -> list[str] | None:
    """Ollama's own list: ``{"models": [{"name": …}]}``."""
    return names_under(told.get("models"), "name")


def names_of_models(told: Mapping[str, Any]) -> list[str] | None:
    """The list of the OpenAI protocol: ``{"data": [{"id": …}]}``."""
    return names_under(told.get("data"), "id")


def names_under(listed: object, key: str) -> list[str] | None:
    if not isinstance(listed, list):
        return None
    names = [one.get(key) for one in listed if isinstance(one, dict)]
    return [name for name in names if isinstance(name, str) and name]


WAYS: Final[tuple[tuple[str, str, Callable[[Mapping[str, Any]], list[str] | None]], ...]] = (
    ("/api/tags", OLLAMA, names_of_tags),
    ("/v1/models", OTHER, names_of_models),
)


def json_from(address: str, path: str) -> object:
    """What is there as JSON, without a proxy or a redirect; None where nobody listens or says something else."""
    parts = urlsplit(address)
    secure = parts.scheme == "https"
    connect = http.client.HTTPSConnection if secure else http.client.HTTPConnection
    try:
        with closing(connect(parts.hostname or "", parts.port, timeout=PATIENCE_SECONDS)) as connection:
            connection.request("GET", path, headers={"Accept": "application/json"})
            answer = connection.getresponse()
            return json.loads(answer.read(MOST_BYTES)) if answer.status == http.client.OK else None
    except (OSError, http.client.HTTPException, ValueError, RecursionError):
        return None
