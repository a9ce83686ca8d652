"""Google, Groq, xAI: hosted providers that speak the OpenAI protocol with peculiarities of their own."""

import re
from collections.abc import Mapping
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from evaluations.domain.judges import Dialect, ReplyShape
from evaluations.domain.money import NANO_PER_USD
from evaluations.llm.dialects.adapter import Adapter, ErrorWords, Headers
from evaluations.llm.dialects.chat import CHAT_ERROR_WORDS, NEW_LIMIT_NAME, build_chat_body, parse_chat_answer
from evaluations.llm.error_body import ErrorBody
from evaluations.llm.exchange import MAX_PAUSE_SECONDS, Answer, FormatRefused, LLMError, Request, Server, StopRun
from evaluations.llm.token_usage import (
    INPUT_TOKEN_NAMES,
    OUTPUT_TOKEN_NAMES,
    TOTAL_TOKEN_NAMES,
    first_token_count,
    object_member,
    parse_reasoning_tokens,
    parse_token_count,
)

NO_CAPACITY: Final = 498


def groq_embedded_error(body: Mapping[str, object]) -> Mapping[str, object] | None:
    """An error that happened during generation is next to the choices."""
    error = object_member(body, "x_groq").get("error")
    if isinstance(error, str) and error:
        return {"message": error}
    return error if isinstance(error, Mapping) and error else None


def classify_groq_error(error: ErrorBody, server: Server, request: Request, headers: Headers) -> LLMError | None:
    return error.retry(busy=True) if error.status == NO_CAPACITY else None


GROQ_ADAPTER: Final = Adapter(
    dialect=Dialect.GROQ,
    hosts=("api.groq.com",),
    body=partial(build_chat_body, limit_name=NEW_LIMIT_NAME),  # the older name is deprecated
    read=parse_chat_answer,
    fault=groq_embedded_error,
    meaning=classify_groq_error,
    words=ErrorWords(
        flawed=(
            *("json_validate_failed", "output_parse_failed", "tool_use_failed"),
            "'failed_generation'",  # its message, for gateways that omit the code
        ),
        cut_off=("max completion tokens reached",),
        model=("decommissioned",),
        remedy=("organization has been restricted",),
    ),
)

XAI_TOP_LOGPROBS: Final = 8  # more are refused
TICKS_PER_USD: Final = 10**10
# A count that only xAI reports, which identifies its usage behind a gateway.
XAI_USAGE_NAME: Final = "num_sources_used"
# "Requests per Day (actual/limit): 16/0, Tokens per Minute (actual/limit): 65605/16000"
XAI_LIMITS: Final = re.compile(r"per (\w+) \(actual/limit\): *(\d+)/(\d+)", re.IGNORECASE)
SHORT_LIMIT_PERIODS: Final = ("second", "minute", "hour")


def xai_cost(usage: Mapping[str, object], headers: Headers) -> int | None:
    ticks = usage.get("cost_in_usd_ticks")
    if isinstance(ticks, bool) or not isinstance(ticks, (int, float)) or ticks < 0:
        return None
    return round(ticks * NANO_PER_USD / TICKS_PER_USD)


def add_xai_total(body: Mapping[str, object]) -> Mapping[str, object]:
    """The body with a total in its usage; xAI counts reasoning in addition to the completion."""
    usage = object_member(body, "usage")
    prompt, completion = first_token_count(usage, INPUT_TOKEN_NAMES), first_token_count(usage, OUTPUT_TOKEN_NAMES)
    reasoning = parse_reasoning_tokens(usage)
    if first_token_count(usage, TOTAL_TOKEN_NAMES) is not None or prompt is None or reasoning is None:
        return body
    return {**body, "usage": {**usage, "total_tokens": prompt + (completion or 0) + reasoning}}


def is_xai_usage(body: Mapping[str, object]) -> bool:
    usage = object_member(body, "usage")
    return parse_token_count(usage.get(XAI_USAGE_NAME)) is not None or "cost_in_usd_ticks" in usage


def parse_xai_answer(body: Mapping[str, object], headers: Headers, request: Request) -> Answer | None:
    return parse_chat_answer(add_xai_total(body), headers, request, cost=xai_cost)


def classify_xai_error(error: ErrorBody, server: Server, request: Request, headers: Headers) -> LLMError | None:
    """All limits are listed, daily ones included; only those that are reached show how long it lasts."""
    limits = XAI_LIMITS.findall(error.message) if error.status == 429 else []
    reached = [unit.lower() for unit, actual, limit in limits if int(actual) >= int(limit)]
    if not reached or any(unit not in SHORT_LIMIT_PERIODS for unit in reached):
        return None
    return error.retry(busy=True)


XAI_ADAPTER: Final = Adapter(
    dialect=Dialect.XAI,
    hosts=("api.x.ai",),
    body=partial(build_chat_body, limit_name=NEW_LIMIT_NAME, top_logprobs=XAI_TOP_LOGPROBS),  # the older is deprecated
    read=parse_xai_answer,
    cost=xai_cost,
    meaning=classify_xai_error,
    words=ErrorWords(
        filter=("usage guidelines", "safety_check_type"),
        credit=("used all available credits", "have any credits or licenses", "need a grok subscription"),
    ),
)

# Daily quotas are lifted at midnight in California. The delay named for them is often the minute quota's.
HOUR_SECONDS: Final = 3600.0
SHORT_DELAY_SECONDS: Final = 300.0
RETRY_DELAY: Final = re.compile(r'"retryDelay"\s*:\s*"(\d+(?:\.\d+)?)s"')
NO_QUOTA: Final = re.compile(r"limit: 0(?![.\d])")
ANY_LIMIT: Final = re.compile(r"limit: \d")
# Words that refuse a schema, often among the details of a generic message.
SCHEMA_REFUSED_WORDS: Final = (
    *("too many states", "specified schema", "response_schema", "response_json_schema", "schema nesting"),
)


def google_base_url(base_url: str) -> str:
    path = urlsplit(base_url).path
    if not path:
        return f"{base_url}/v1beta/openai"
    return f"{base_url}/openai" if path in ("/v1beta", "/v1") else base_url


def classify_google_error(error: ErrorBody, server: Server, request: Request, headers: Headers) -> LLMError | None:
    why = error.message
    if error.status == 429:
        return classify_google_quota(error, request)
    if request.shape != ReplyShape.TEXT and error.status == 400 and error.holds(SCHEMA_REFUSED_WORDS):
        sentence = f"The server does not take structured output ({request.shape}): {why}"
        return FormatRefused(request.shape, sentence, **error.kept)
    if error.status == 404 and "model" not in error.body.lower():
        return StopRun(
            f"There is no chat API at {server.base_url}: is the base URL right? Google's ends in /v1beta/openai.",
            **error.kept,
        )
    return None


def classify_google_quota(error: ErrorBody, request: Request) -> LLMError | None:
    """A quota that is lifted by nobody, or only after a day; None for one per minute."""
    if NO_QUOTA.search(error.message) and len(NO_QUOTA.findall(error.message)) == len(ANY_LIMIT.findall(error.message)):
        return error.stop(
            f"The project has no quota for “{request.model}”: turn on billing, or make a judge with another model."
        )
    if not error.holds(CHAT_ERROR_WORDS.quota):
        return None
    delay = max((float(seconds) for seconds in RETRY_DELAY.findall(error.body)), default=0.0)
    return error.exhausted_quota(min(delay, MAX_PAUSE_SECONDS) if delay > SHORT_DELAY_SECONDS else HOUR_SECONDS)


GOOGLE_ADAPTER: Final = Adapter(
    dialect=Dialect.GOOGLE,
    hosts=("generativelanguage.googleapis.com",),
    body=build_chat_body,
    read=parse_chat_answer,
    base_url=google_base_url,
    words=ErrorWords(
        filter=("blocked by safety settings",),
        key=("api key expired", "api key not found"),
        place=("user location is not supported", "not available in your country"),
    ),
    meaning=classify_google_error,
)
