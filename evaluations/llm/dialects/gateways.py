"""OpenRouter and LiteLLM: gateways that pass on answers and errors of other providers."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

from evaluations.domain.json_values import JsonDict
from evaluations.domain.judges import Dialect, ReplyShape
from evaluations.llm.dialects.adapter import Adapter, ErrorWords, Headers
from evaluations.llm.dialects.chat import CHAT_ERROR_WORDS, OLD_LIMIT_NAME, build_chat_body, parse_chat_answer
from evaluations.llm.error_body import ErrorBody, parse_embedded_object, parse_json_object
from evaluations.llm.exchange import LLMError, Request, Server, SettingRefused
from evaluations.llm.token_usage import object_member, parse_nano_usd

# Settings to omit if no provider serves the model with all of them, the least important first.
DROPPABLE_SETTINGS: Final = ("logprobs", "seed", "reasoning_effort", "temperature")
DAILY_LIMIT_WAIT_SECONDS: Final = 3600.0  # a key's daily limit ends at midnight: checked every hour


def build_openrouter_body(request: Request) -> JsonDict:
    """The effort is nested in an object; the limit has one name for all models."""
    body = build_chat_body(request, limit_name=OLD_LIMIT_NAME)
    if effort := body.pop("reasoning_effort", None):
        body = {"reasoning": {"effort": effort}, **body}
    return body


def openrouter_cost(usage: Mapping[str, object], headers: Headers) -> int | None:
    """The amount charged; with one's own key, the provider's bill plus OpenRouter's fee."""
    fee = parse_nano_usd(usage.get("cost"))
    if not usage.get("is_byok"):
        return fee
    upstream = parse_nano_usd(object_member(usage, "cost_details").get("upstream_inference_cost"))
    return None if upstream is None else upstream + (fee or 0)


def openrouter_inner_error(error: ErrorBody) -> ErrorBody:
    """The provider's error, with the status that the provider gave it."""
    raw = openrouter_metadata(error).get("raw")
    inner = parse_embedded_object(raw) if isinstance(raw, str) else raw
    codes = [str(part.get(name)) for part in openrouter_error_objects(inner) for name in ("code", "status")]
    statuses = [int(code) for code in codes if code.isdecimal() and 400 <= int(code) < 500]
    if statuses and error.status != 429:
        return replace(error, status=statuses[-1], is_known_status=True)
    return as_refused_request(error) if raw else error


def as_refused_request(error: ErrorBody) -> ErrorBody:
    """Turn a 5xx into a 400 if the provider refused this prompt, which gateways pass on as a fault of their own."""
    is_refusal = error.states((*CHAT_ERROR_WORDS.filter, *CHAT_ERROR_WORDS.context, *CHAT_ERROR_WORDS.too_long))
    return replace(error, status=400, is_known_status=True) if error.status >= 500 and is_refusal else error


def openrouter_metadata(error: ErrorBody) -> Mapping[str, object]:
    """The metadata that OpenRouter adds to an error, at any depth."""
    parts = openrouter_error_objects(parse_json_object(error.body))
    metadata = [found for part in parts if (found := object_member(part, "metadata"))]
    return metadata[-1] if metadata else {}


def openrouter_error_objects(body: object) -> Iterator[Mapping[str, object]]:
    """An answer, its error, and the error of its first choice."""
    if isinstance(body, list) and body:
        body = body[0]
    if not isinstance(body, Mapping):
        return
    yield body
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    for part in (body.get("error"), first):
        yield from openrouter_error_objects(part)


def classify_openrouter_error(error: ErrorBody, server: Server, request: Request, headers: Headers) -> LLMError | None:
    metadata = openrouter_metadata(error)
    provider = metadata.get("provider_name")
    if error.status == 403 and ("flagged_input" in metadata or metadata.get("reasons")):
        return error.filtered_prompt()
    if error.status == 403 and error.states(("key limit exceeded (daily",)):
        return error.exhausted_quota(DAILY_LIMIT_WAIT_SECONDS)
    if error.status == 402 and headers.get("retry-after", "").strip().isdecimal():
        return error.retry(after=float(headers["retry-after"]), busy=True)
    if error.status == 401 and isinstance(provider, str) and provider:
        return error.stop(
            f"{provider} refused the key that OpenRouter has for it: replace it in OpenRouter's provider keys (BYOK) "
            "and resume the run."
        )
    if error.states(("requested parameters",)) and request.shape == ReplyShape.TEXT:
        return classify_no_provider(error, request)
    return None


def classify_no_provider(error: ErrorBody, request: Request) -> LLMError | None:
    """No provider serves the model with all these settings; the error does not say which one is too much."""
    setting = next((name for name in DROPPABLE_SETTINGS if request.sends(name)), None)
    if setting is None:
        return None
    return SettingRefused(
        setting, f"Nobody serves the model with this judge's {setting}: {error.message}", **error.kept
    )


OPENROUTER_ADAPTER: Final = Adapter(
    dialect=Dialect.OPENROUTER,
    hosts=("openrouter.ai",),
    body=build_openrouter_body,
    read=partial(parse_chat_answer, cost=openrouter_cost),
    cost=openrouter_cost,
    inner=openrouter_inner_error,
    meaning=classify_openrouter_error,
    words=ErrorWords(
        filter=("requires moderation",),
        credit=("can only afford", "prompt tokens limit exceeded"),
        model=("is not a valid model id",),
    ),
)

# An error of the provider behind the proxy, and not of the proxy.
UPSTREAM_EXCEPTION: Final = re.compile(r"\b(\w+)Exception - ")
NO_ACCESS_WORDS: Final = (
    *("not allowed to access model", "model_access_denied", "can only access models", "not allowed to call"),
)


def litellm_cost(usage: Mapping[str, object], headers: Headers) -> int | None:
    """The proxy's cost; 0 also means an unknown price, unless the answer was cached."""
    cost = parse_nano_usd(headers.get("x-litellm-response-cost"))
    return cost if cost or headers.get("x-litellm-cache-key") else None


def litellm_inner_error(error: ErrorBody) -> ErrorBody:
    """The proxy answers 500 for provider errors that it does not know."""
    return as_refused_request(error) if UPSTREAM_EXCEPTION.search(error.body) else error


def classify_litellm_error(error: ErrorBody, server: Server, request: Request, headers: Headers) -> LLMError | None:
    if error.status in (400, 401, 403) and error.states(NO_ACCESS_WORDS):
        return error.stop(
            f"The key may not use the model “{request.model}” at {server.base_url}: have it allowed there, or make a "
            "judge with another model."
        )
    upstream = UPSTREAM_EXCEPTION.search(error.body)
    if error.status == 401 and upstream and not error.states(("proxy server token",)):
        return error.stop(
            f"{upstream[1]} refused the key that the gateway {server.base_url} has for it: have it replaced there and "
            "resume the run."
        )
    return None


LITELLM_ADAPTER: Final = Adapter(
    dialect=Dialect.LITELLM,
    ports=(4000,),
    body=build_chat_body,
    read=partial(parse_chat_answer, cost=litellm_cost),
    cost=litellm_cost,
    inner=litellm_inner_error,
    meaning=classify_litellm_error,
    words=ErrorWords(
        context=("contextwindowexceeded",),
        filter=("contentpolicyviolation", "violated guardrail", "violated content safety"),
        model=("invalid model name passed",),
    ),
)
