"""OpenRouter, LiteLLM: gateways that pass on the answers, the errors of other providers."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from evaluations.domain.json_values import JsonDict, JsonMapping
from evaluations.domain.judges import CallState, Dialect, ReplyShape
from evaluations.llm.dialects.adapter import Adapter, ErrorWords, Headers
from evaluations.llm.dialects.chat import CHAT_ERROR_WORDS, build_chat_body, chat_parser_with_cost
from evaluations.llm.error_body import ErrorBody, parse_embedded_object, parse_json_object
from evaluations.llm.exchange import (
    ErrorFacts,
    LLMError,
    QuotaExhausted,
    RecordOnCall,
    Request,
    Retry,
    Server,
    SettingRefused,
    StopRun,
)
from evaluations.llm.token_usage import object_member, parse_nano_usd

# What may be left out where nobody serves the model with all that was asked for, what matters least first.
DROPPABLE_SETTINGS: Final = ("logprobs", "seed", "reasoning_effort", "temperature")

DAILY_LIMIT_WAIT_SECONDS: Final = 3600.0  # a daily limit of a key ends at midnight: looked at again every hour


def build_openrouter_body(request: Request) -> JsonDict:
    """The effort is a part of an object of its own; the limit has one name for all models."""
    given = build_chat_body(request, limit_name=lambda request: "max_tokens")
    if effort := given.pop("reasoning_effort", None):
        given = {"reasoning": {"effort": effort}, **given}
    return given


def openrouter_cost(usage: Mapping[str, object], headers: Headers) -> int | None:
    """What was charged; with a key of one's own the provider's bill comes beside OpenRouter's fee."""
    fee = parse_nano_usd(usage.get("cost"))
    if not usage.get("is_byok"):
        return fee
    upstream = parse_nano_usd(object_member(usage, "cost_details").get("upstream_inference_cost"))
    return None if upstream is None else upstream + (fee or 0)


def openrouter_inner_error(said: ErrorBody) -> ErrorBody:
    """The provider's error, with the status that the provider gave it."""
    raw = openrouter_metadata(said).get("raw")
    given = parse_embedded_object(raw) if isinstance(raw, str) else raw
    codes = [one.get(name) for one in openrouter_error_objects(given) for name in ("code", "status")]
    statuses = [int(str(code)) for code in codes if str(code).isdecimal() and 400 <= int(str(code)) < 500]
    if statuses and said.status != 429:
        return replace(said, status=statuses[-1], is_known_status=True)
    return as_refused_request(said) if raw else said


def as_refused_request(said: ErrorBody) -> ErrorBody:
    """A provider's no to this prompt, which a gateway passes on as a fault of its own."""
    is_no = said.states((*CHAT_ERROR_WORDS.filter, *CHAT_ERROR_WORDS.context, *CHAT_ERROR_WORDS.too_long))
    return replace(said, status=400, is_known_status=True) if said.status >= 500 and is_no else said


def openrouter_metadata(said: ErrorBody) -> Mapping[str, object]:
    """What OpenRouter adds to an error, wherever the error stands."""
    given = parse_json_object(said.body)
    found = [
        object_member(one, "metadata") for one in openrouter_error_objects(given) if object_member(one, "metadata")
    ]
    return found[-1] if found else {}


def openrouter_error_objects(given: object) -> Iterator[Mapping[str, object]]:
    """An answer, its error, and the error of its first choice."""
    if isinstance(given, list) and given:
        given = given[0]
    if not isinstance(given, Mapping):
        return
    yield given
    choices = given.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    for one in (given.get("error"), first):
        yield from openrouter_error_objects(one)


def classify_openrouter_error(said: ErrorBody, server: Server, request: Request, headers: Headers) -> LLMError | None:
    metadata = openrouter_metadata(said)
    known: ErrorFacts = {"http_status": said.status, "body": said.body}
    provider = metadata.get("provider_name")
    if said.status == 403 and ("flagged_input" in metadata or metadata.get("reasons")):
        return RecordOnCall(CallState.REFUSED, f"The server's filter refused the prompt: {said.message}", **known)
    if said.status == 403 and said.states(("key limit exceeded (daily",)):
        return QuotaExhausted(
            f"The endpoint's quota is used up. It says: {said.message}", after=DAILY_LIMIT_WAIT_SECONDS, **known
        )
    if said.status == 402 and headers.get("retry-after", "").strip().isdecimal():
        after = float(headers["retry-after"])
        return Retry(f"The server answered 402: {said.message}", after=after, busy=True, **known)
    if said.status == 401 and isinstance(provider, str) and provider:
        return StopRun(
            f"{provider} refused the key that OpenRouter has for it: replace it in OpenRouter's provider keys (BYOK) "
            f"and resume the run. It says: {said.message}",
            **known,
        )
    if said.states(("requested parameters",)) and request.shape == ReplyShape.TEXT:
        return classify_no_provider(said, request, known)
    return None


def classify_no_provider(said: ErrorBody, request: Request, known: JsonMapping) -> LLMError | None:
    """Nobody serves the model with all these settings, and which of them is too much is not said."""
    setting = next((name for name in DROPPABLE_SETTINGS if request.sends(name)), None)
    if setting is None:
        return None
    return SettingRefused(setting, f"Nobody serves the model with this judge's {setting}: {said.message}", **known)


OPENROUTER_ADAPTER: Final = Adapter(
    dialect=Dialect.OPENROUTER,
    hosts=("openrouter.ai",),
    body=build_openrouter_body,
    read=chat_parser_with_cost(openrouter_cost),
    cost=openrouter_cost,
    inner=openrouter_inner_error,
    meaning=classify_openrouter_error,
    words=CHAT_ERROR_WORDS.plus(
        ErrorWords(
            filter=("requires moderation",),
            credit=("can only afford", "prompt tokens limit exceeded"),
            model=("is not a valid model id",),
        )
    ),
)

# An error of the provider behind the proxy, and not of the proxy.
UPSTREAM_EXCEPTION: Final = re.compile(r"\b(\w+)Exception - ")

NO_ACCESS_WORDS: Final = (
    "not allowed to access model",
    "model_access_denied",
    "can only access models",
    "not allowed to call",
)


def litellm_cost(usage: Mapping[str, object], headers: Headers) -> int | None:
    """What the proxy reckons; nothing is also said for a model whose price it does not know, unless it was cached."""
    told = parse_nano_usd(headers.get("x-litellm-response-cost"))
    return told if told or headers.get("x-litellm-cache-key") else None


def litellm_inner_error(said: ErrorBody) -> ErrorBody:
    """The proxy answers 500 for an error of a provider that it does not know."""
    return as_refused_request(said) if UPSTREAM_EXCEPTION.search(said.body) else said


def classify_litellm_error(said: ErrorBody, server: Server, request: Request, headers: Headers) -> LLMError | None:
    known: ErrorFacts = {"http_status": said.status, "body": said.body}
    if said.status in (400, 401, 403) and said.states(NO_ACCESS_WORDS):
        return StopRun(
            f"The key may not use the model “{request.model}” at {server.base_url}: have it allowed there, or make a "
            f"judge with another model. It says: {said.message}",
            **known,
        )
    upstream = UPSTREAM_EXCEPTION.search(said.body)
    if said.status == 401 and upstream and not said.states(("proxy server token",)):
        return StopRun(
            f"{upstream[1]} refused the key that the gateway {server.base_url} has for it: have it replaced there and "
            f"resume the run. It says: {said.message}",
            **known,
        )
    return None


LITELLM_ADAPTER: Final = Adapter(
    dialect=Dialect.LITELLM,
    ports=(4000,),
    body=build_chat_body,
    read=chat_parser_with_cost(litellm_cost),
    cost=litellm_cost,
    inner=litellm_inner_error,
    meaning=classify_litellm_error,
    words=CHAT_ERROR_WORDS.plus(
        ErrorWords(
            context=("contextwindowexceeded",),
            filter=("contentpolicyviolation", "violated guardrail", "violated content safety"),
            model=("invalid model name passed",),
        )
    ),
)
