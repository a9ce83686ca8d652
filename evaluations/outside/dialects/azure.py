"""Azure OpenAI: https://learn.microsoft.com/azure/foundry/openai/api-version-lifecycle

Three kinds of address lead to a deployment, which the judge's model names:

- the resource, such as https://NAME.openai.azure.com, or the same with /openai/v1: the API without versions;
- …/openai/deployments/NAME: the older API, whose version is the query parameter api-version. The endpoint's extra query
  parameters may name one; without it `API_VERSION` is asked for.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit

from evaluations.domain import Dialect
from evaluations.outside.dialects.adapter import Adapter, Headers, Words
from evaluations.outside.dialects.chat import WORDS, chat_body, read_chat
from evaluations.outside.dialects.openai import LIMIT_NAME
from evaluations.outside.errors import LLMError, StopRun
from evaluations.outside.exchange import Request, Server
from evaluations.outside.wording import SETTING_NAMES, Said

API_VERSION: Final = "2025-04-01-preview"  # the last of the older API: it knows structured output and reasoning
NO_DEPLOYMENT: Final = ("deploymentnotfound", "deployment for this resource does not exist")
VERSION: Final = ("api version", "api-version", "unsupportedapiversion")
NOT_FOR_CHAT: Final = ("operation does not work with the specified model", "operationnotsupported")


def base_url(given: str) -> str:
    given = given.removesuffix("/chat/completions")
    path = urlsplit(given).path
    if not path:
        return f"{given}/openai/v1"
    return f"{given}/v1" if path == "/openai" else given


def query(given: str) -> Mapping[str, str]:
    return {"api-version": API_VERSION} if "/openai/deployments/" in urlsplit(given).path else {}


def is_of_a_part(said: Said) -> bool:
    """Whether the version is only too old for a part of the request, which can be written another way."""
    return said.states(WORDS.format) or said.refused_setting(SETTING_NAMES) is not None


def meaning(said: Said, server: Server, request: Request, headers: Headers) -> LLMError | None:
    known: dict[str, Any] = {"http_status": said.status, "body": said.body}
    if said.states(NO_DEPLOYMENT):
        return StopRun(
            f"{server.base_url} has no deployment “{request.model}”: name the judge's model as the deployment is named "
            f"in Azure, not as the model behind it. It says: {said.message}",
            **known,
        )
    if said.status in (400, 404) and said.states(VERSION) and not is_of_a_part(said):
        return StopRun(
            "Azure refuses the API version: set another api-version among the endpoint's extra query parameters, or "
            f"use an address that ends in /openai/v1, without one. It says: {said.message}",
            **known,
        )
    if said.status in (400, 404) and said.states(NOT_FOR_CHAT):
        return StopRun(
            "This deployment is not served by Chat Completions: use an address that ends in /openai/v1, and set the "
            f"endpoint's provider to OpenAI (Responses). It says: {said.message}",
            **known,
        )
    if said.status == 404 and "model" not in said.message.lower():
        return StopRun(
            f"There is no chat API at {server.base_url}: the base URL is the resource's address, such as "
            f"https://NAME.openai.azure.com. It says: {said.message}",
            **known,
        )
    return None


ADAPTER: Final = Adapter(
    dialect=Dialect.AZURE,
    hosts=("openai.azure.com", "services.ai.azure.com", "cognitiveservices.azure.com"),
    body=partial(chat_body, limit_name=lambda request: LIMIT_NAME),
    read=read_chat,
    base_url=base_url,
    query=query,
    key_headers=lambda key: {"api-key": key},
    words=WORDS.plus(Words(key=("invalid subscription key",))),
    meaning=meaning,
)
