"""Whether an OpenAI-compatible server can be reached, asked for its models: no tokens, no cost."""

from http import HTTPStatus
from typing import Final

import httpx2

from evaluations.outside.llm import LLMError, Server, key_of

PATIENCE_SECONDS: Final = 5.0


def trouble_with(server: Server) -> str:
    """Why calls to it would fail, as far as can be told without one; "" where nothing speaks against it."""
    try:
        key = key_of(server)
    except LLMError as error:
        return str(error)
    headers = {"authorization": f"Bearer {key}"} if server.key_variable else {}
    try:
        answer = httpx2.get(f"{server.base_url}/models", headers=headers, timeout=PATIENCE_SECONDS)
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        return f"It does not answer ({' '.join(str(error).split()) or type(error).__name__})."
    if answer.status_code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return f"It refuses {f'the key in {server.key_variable}' if server.key_variable else 'whoever has no key'}."
    if answer.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return f"It answers, but with the error {answer.status_code}."
    return ""
