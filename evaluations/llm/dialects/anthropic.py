"""Anthropic's Messages API: https://platform.claude.com/docs/en/api/messages and …/api/errors

- A limit of tokens is required, and holds for thinking and reply together.
- The system text is the same in every call of a judge, and is marked to be cached:
  https://platform.claude.com/docs/en/build-with-claude/prompt-caching
- A schema may bound no numbers, and there is no mode of JSON without a schema; the prompt shows the form in any case:
  https://platform.claude.com/docs/en/build-with-claude/structured-outputs
- An effort comes with adaptive thinking; a model that only knows the effort is asked without the thinking:
  https://platform.claude.com/docs/en/build-with-claude/adaptive-thinking
"""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final
from urllib.parse import urlsplit

from evaluations.domain.judges import CallState, Dialect, ReplyShape
from evaluations.domain.texts import Message, replace_unstorable
from evaluations.llm.dialects.adapter import Adapter, ErrorWords, Headers
from evaluations.llm.dialects.chat import content_text, normalise_finish_reason, request_messages
from evaluations.llm.error_body import ErrorBody
from evaluations.llm.exchange import (
    MAX_PAUSE_SECONDS,
    Answer,
    FormatRefused,
    LLMError,
    QuotaExhausted,
    RecordOnCall,
    Request,
    Server,
    SettingRefused,
    Usage,
)
from evaluations.llm.token_usage import object_member, parse_reasoning_tokens, parse_token_count

ANTHROPIC_VERSION: Final = "2023-06-01"
# Sent if the judge has no limit. Every offered model takes it, and it fits a reply with its thinking.
DEFAULT_MAX_TOKENS: Final = 16_000
THINKING: Final = "thinking"
STOP_REASONS: Final = {"end_turn": "stop", "stop_sequence": "stop"}
UNSUPPORTED_SCHEMA_KEYS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
LIMIT_REFUSED: Final = re.compile(r"max_tokens: \d+ > (\d+)")
ACCESS_REGAINED: Final = re.compile(r"regain access on (\d{4})-(\d\d)-(\d\d)(?: at (\d\d):(\d\d))?")


def anthropic_base_url(base_url: str) -> str:
    base_url = base_url.removesuffix("/messages")
    return base_url if urlsplit(base_url).path else f"{base_url}/v1"


def build_anthropic_body(request: Request) -> dict[str, object]:
    messages = request_messages(request)
    system = "\n\n".join(message["content"] for message in messages if message["role"] == "system")
    body: dict[str, object] = {
        "model": request.model,
        "max_tokens": request.max_tokens or DEFAULT_MAX_TOKENS,
        "messages": merge_turns([message for message in messages if message["role"] != "system"]),
    }
    if system:
        body["system"] = [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}]
    if request.sends("temperature"):
        body["temperature"] = request.temperature
    if output := {**anthropic_effort(request), **anthropic_output_format(request)}:
        body["output_config"] = output
    return {**body, **anthropic_thinking(request)}


def merge_turns(messages: list[Message]) -> list[Message]:
    """The conversation without empty turns, and without two turns in a row by one role: the API refuses both."""
    joined: list[Message] = []
    for message in messages:
        if not message["content"].strip():
            continue
        if joined and joined[-1]["role"] == message["role"]:
            joined[-1] = {"role": message["role"], "content": f"{joined[-1]['content']}\n\n{message['content']}"}
        else:
            joined.append(message)
    return joined


def anthropic_effort(request: Request) -> dict[str, object]:
    if not request.sends("reasoning_effort") or request.reasoning_effort == "none":
        return {}
    return {"effort": "low" if request.reasoning_effort == "minimal" else request.reasoning_effort}


def anthropic_thinking(request: Request) -> dict[str, object]:
    if not request.sends("reasoning_effort") or THINKING in request.request_shape.left_out:
        return {}
    if request.reasoning_effort == "none":
        return {"thinking": {"type": "disabled"}}
    return {"thinking": {"type": "adaptive", "display": "summarized"}}


def anthropic_output_format(request: Request) -> dict[str, object]:
    if request.shape != ReplyShape.JSON_SCHEMA:
        return {}
    return {"format": {"type": "json_schema", "schema": strip_number_bounds(request.schema)}}


def strip_number_bounds(schema: object) -> object:
    """The schema without bounds of numbers, which are refused; the reply parser checks them."""
    if isinstance(schema, list):
        return [strip_number_bounds(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    is_number = schema.get("type") in ("number", "integer")
    return {
        name: strip_number_bounds(inside)
        for name, inside in schema.items()
        if not (is_number and name in UNSUPPORTED_SCHEMA_KEYS)
    }


def parse_anthropic_answer(answered: Mapping[str, object], headers: Headers, request: Request) -> Answer | None:
    """The text of a message, its thinking kept apart; None if there is no message."""
    content, why = answered.get("content"), content_text(answered.get("stop_reason"))
    if not isinstance(content, list):
        return None
    blocks = [block for block in content if isinstance(block, dict)]
    thoughts = [content_text(block.get("thinking")) for block in blocks if block.get("type") == "thinking"]
    return Answer(
        text="".join(content_text(block.get("text")) for block in blocks if block.get("type") == "text"),
        finish_reason=STOP_REASONS.get(why) or normalise_finish_reason(why),
        refusal=content_text(object_member(answered, "stop_details").get("explanation")) if why == "refusal" else "",
        model=content_text(answered.get("model"))[:200],
        http_status=200,
        usage=parse_anthropic_usage(object_member(answered, "usage")),
        reasoning=replace_unstorable("\n\n".join(filter(None, thoughts))),
    )


def parse_anthropic_usage(usage: Mapping[str, object]) -> Usage:
    """``input_tokens`` are those neither read from the cache nor written to it."""
    uncached = parse_token_count(usage.get("input_tokens"))
    cached = parse_token_count(usage.get("cache_read_input_tokens"))
    written = parse_token_count(usage.get("cache_creation_input_tokens"))
    return Usage(
        tokens_in=None if uncached is None else uncached + (cached or 0) + (written or 0),
        tokens_out=parse_token_count(usage.get("output_tokens")),
        tokens_cached=cached,
        tokens_written=written,
        tokens_reasoning=parse_reasoning_tokens(usage),
    )


def classify_anthropic_error(error: ErrorBody, server: Server, request: Request, headers: Headers) -> LLMError | None:
    why = error.message
    if error.states(("api usage limits",)):
        return classify_spend_limit(error)
    if error.status == 429 and error.states(("long context",)):
        return RecordOnCall(CallState.TOO_LONG, f"The prompt is too long for this account: {why}", **error.kept)
    if match := LIMIT_REFUSED.search(why):
        return error.stop(f"The model writes {match[1]} tokens at most: make a judge with this limit or a lower one.")
    return classify_refused_part(error, request) if error.status == 400 else None


def classify_spend_limit(error: ErrorBody) -> LLMError:
    """A limit that the account's owner set: wait if it is lifted soon, else a person must raise it."""
    why = error.message
    if match := ACCESS_REGAINED.search(why):
        year, month, day, hour, minute = (int(part or 0) for part in match.groups())
        try:
            after = (datetime(year, month, day, hour, minute, tzinfo=UTC) - datetime.now(UTC)).total_seconds()
        except ValueError:
            after = MAX_PAUSE_SECONDS
        if 0 < after < MAX_PAUSE_SECONDS:
            return QuotaExhausted(f"The account's limit is reached. It says: {why}", after=after, **error.kept)
    return error.stop("The account's own limit is reached: raise it in the provider's console and resume the run.")


def classify_refused_part(error: ErrorBody, request: Request) -> LLMError | None:
    """A part of the request that this model refuses, by the API's own names."""
    why, words = error.message, error.message.lower()
    if request.shape == ReplyShape.JSON_SCHEMA and words.startswith(("output_config: ", "output_format")):
        return FormatRefused(request.shape, f"The model does not take structured output: {why}", **error.kept)
    if not request.sends("reasoning_effort") or "temperature" in words:
        return None
    if "thinking" in words and "adaptive" in str(anthropic_thinking(request)):
        return SettingRefused(THINKING, f"The model does not take adaptive thinking: {why}", **error.kept)
    if words.startswith("output_config: ") or "effort" in words or "thinking" in words:
        return SettingRefused(
            "reasoning_effort", f"The model does not take this judge's reasoning_effort: {why}", **error.kept
        )
    return None


ANTHROPIC_ADAPTER: Final = Adapter(
    dialect=Dialect.ANTHROPIC,
    hosts=("api.anthropic.com",),
    body=build_anthropic_body,
    read=parse_anthropic_answer,
    base_url=anthropic_base_url,
    path=lambda server, request: "/messages",
    key_headers=lambda key: {"x-api-key": key},
    headers={"anthropic-version": ANTHROPIC_VERSION},
    words=ErrorWords(
        format=("output_config.format", "output_format", "output format", "schema is too complex"),
        key=("invalid x-api-key",),
        remedy=("organization has been disabled",),
    ),
    meaning=classify_anthropic_error,
    lacks=("seed", "logprobs"),
    batch_path="",
)
