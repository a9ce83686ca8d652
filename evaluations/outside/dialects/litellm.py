"""LiteLLM's proxy, a gateway that words its errors as ``litellm.BadRequestError: OpenAIException - {…}``.

https://docs.litellm.ai/docs/proxy/error_reference, https://docs.litellm.ai/docs/exception_mapping,
https://docs.litellm.ai/docs/proxy/response_headers.
"""

import re
from collections.abc import Mapping
from typing import Any, Final

from evaluations.domain import Dialect
from evaluations.outside.dialects.adapter import Adapter, Headers, Words
from evaluations.outside.dialects.chat import WORDS, chat_body, chat_reader
from evaluations.outside.dialects.openrouter import as_request
from evaluations.outside.errors import LLMError, StopRun
from evaluations.outside.exchange import Request, Server
from evaluations.outside.usage import nano_usd_in
from evaluations.outside.wording import Said

# An error of the provider behind the proxy, and not of the proxy.
UPSTREAM: Final = re.compile(r"\b(\w+)Exception - ")
NO_ACCESS: Final = (
    "not allowed to access model",
    "model_access_denied",
    "can only access models",
    "not allowed to call",
)


def cost(usage: Mapping[str, Any], headers: Headers) -> int | None:
    """What the proxy reckons; nothing is also said for a model whose price it does not know, unless it was cached."""
    told = nano_usd_in(headers.get("x-litellm-response-cost"))
    return told if told or headers.get("x-litellm-cache-key") else None


def inner(said: Said) -> Said:
    """The proxy answers 500 for an error of a provider that it does not know."""
    return as_request(said) if UPSTREAM.search(said.body) else said


def meaning(said: Said, server: Server, request: Request, headers: Headers) -> LLMError | None:
    known: dict[str, Any] = {"http_status": said.status, "body": said.body}
    if said.status in (400, 401, 403) and said.states(NO_ACCESS):
        return StopRun(
            f"The key may not use the model “{request.model}” at {server.base_url}: have it allowed there, or make a "
            f"judge with another model. It says: {said.message}",
            **known,
        )
    upstream = UPSTREAM.search(said.body)
    if said.status == 401 and upstream and not said.states(("proxy server token",)):
        return StopRun(
            f"{upstream[1]} refused the key that the gateway {server.base_url} has for it: have it replaced there and "
            f"resume the run. It says: {said.message}",
            **known,
        )
    return None


ADAPTER: Final = Adapter(
    dialect=Dialect.LITELLM,
    ports=(4000,),
    body=chat_body,
    read=chat_reader(cost),
    cost=cost,
    inner=inner,
    meaning=meaning,
    words=WORDS.plus(
        Words(
            context=("contextwindowexceeded",),
            filter=("contentpolicyviolation", "violated guardrail", "violated content safety"),
            model=("invalid model name passed",),
        )
    ),
)
