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
from typing import Any, Final
from urllib.parse import urlsplit

from evaluations.domain import CallState, Dialect, Message, ReplyShape, storable
from evaluations.outside.dialects.adapter import Adapter, Headers, Words
from evaluations.outside.dialects.chat import WORDS, ended_by, messages_of, text_in
from evaluations.outside.errors import (
    LONGEST_PAUSE_SECONDS,
    FormatRefused,
    LLMError,
    QuotaUsedUp,
    RecordOnCall,
    SettingRefused,
    StopRun,
)
from evaluations.outside.exchange import Answer, Request, Server, Usage
from evaluations.outside.usage import count, part_of, reasoning_in
from evaluations.outside.wording import Said

VERSION: Final = "2023-06-01"
# What is sent where the judge has no limit. Every model that is offered takes it, and a reply with thoughts fits.
MOST_TOKENS_OUT: Final = 16_000
THINKING: Final = "thinking"
ENDED: Final = {"end_turn": "stop", "stop_sequence": "stop"}
NOT_IN_SCHEMAS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
LIMIT_REFUSED: Final = re.compile(r"max_tokens: \d+ > (\d+)")
REGAINED_ON: Final = re.compile(r"regain access on (\d{4})-(\d\d)-(\d\d)(?: at (\d\d):(\d\d))?")


def base_url(given: str) -> str:
    given = given.removesuffix("/messages")
    return given if urlsplit(given).path else f"{given}/v1"


# ---- the request ---------------------------------------------------------------------------


def body(request: Request) -> dict[str, Any]:
    messages = messages_of(request)
    system = "\n\n".join(message["content"] for message in messages if message["role"] == "system")
    given: dict[str, Any] = {
        "model": request.model,
        "max_tokens": request.max_tokens or MOST_TOKENS_OUT,
        "messages": turns([message for message in messages if message["role"] != "system"]),
    }
    if system:
        given["system"] = [{"type": "text", "text": system, "cache_control": {"type": "ephemeral"}}]
    if request.sends("temperature"):
        given["temperature"] = request.temperature
    if output := {**effort_of(request), **format_of(request)}:
        given["output_config"] = output
    return {**given, **thinking_of(request)}


def turns(messages: list[Message]) -> list[Message]:
    """The conversation, with no turn empty and no two in a row by one role, as the API wants it."""
    joined: list[Message] = []
    for message in messages:
        if not message["content"].strip():
            continue
        if joined and joined[-1]["role"] == message["role"]:
            joined[-1] = {"role": message["role"], "content": f"{joined[-1]['content']}\n\n{message['content']}"}
        else:
            joined.append(message)
    return joined


def effort_of(request: Request) -> dict[str, Any]:
    if not request.sends("reasoning_effort") or request.reasoning_effort == "none":
        return {}
    return {"effort": "low" if request.reasoning_effort == "minimal" else request.reasoning_effort}


def thinking_of(request: Request) -> dict[str, Any]:
    if not request.sends("reasoning_effort") or THINKING in request.sent_as.left_out:
        return {}
    if request.reasoning_effort == "none":
        return {"thinking": {"type": "disabled"}}
    return {"thinking": {"type": "adaptive", "display": "summarized"}}


def format_of(request: Request) -> dict[str, Any]:
    if request.shape != ReplyShape.JSON_SCHEMA:
        return {}
    return {"format": {"type": "json_schema", "schema": without_bounds(request.schema)}}


def without_bounds(schema: Any) -> Any:
    """The schema without bounds of numbers, which are refused; the reader of the reply keeps to them."""
    if isinstance(schema, list):
        return [without_bounds(one) for one in schema]
    if not isinstance(schema, Mapping):
        return schema
    is_number = schema.get("type") in ("number", "integer")
    return {
        name: without_bounds(inside) for name, inside in schema.items() if not (is_number and name in NOT_IN_SCHEMAS)
    }


# ---- the answer ----------------------------------------------------------------------------


def read(answered: Mapping[str, Any], headers: Headers, request: Request) -> Answer | None:
    """The text of a message; what it thought is kept apart. None where there is no message."""
    content, why = answered.get("content"), text_in(answered.get("stop_reason"))
    if not isinstance(content, list):
        return None
    blocks = [block for block in content if isinstance(block, dict)]
    thoughts = [text_in(block.get("thinking")) for block in blocks if block.get("type") == "thinking"]
    return Answer(
        text="".join(text_in(block.get("text")) for block in blocks if block.get("type") == "text"),
        finish_reason=ENDED.get(why) or ended_by(why),
        refusal=text_in(part_of(answered, "stop_details").get("explanation")) if why == "refusal" else "",
        model=text_in(answered.get("model"))[:200],
        http_status=200,
        usage=counted(part_of(answered, "usage")),
        reasoning=storable("\n\n".join(filter(None, thoughts))),
    )


def counted(usage: Mapping[str, Any]) -> Usage:
    """``input_tokens`` are those that were neither read from the cache nor written to it."""
    rest, read_ones = count(usage.get("input_tokens")), count(usage.get("cache_read_input_tokens"))
    written = count(usage.get("cache_creation_input_tokens"))
    return Usage(
        tokens_in=None if rest is None else rest + (read_ones or 0) + (written or 0),
        tokens_out=count(usage.get("output_tokens")),
        tokens_cached=read_ones,
        tokens_written=written,
        tokens_reasoning=reasoning_in(usage),
    )


# ---- errors --------------------------------------------------------------------------------


def meaning(said: Said, server: Server, request: Request, headers: Headers) -> LLMError | None:
    known: dict[str, Any] = {"http_status": said.status, "body": said.body}
    why = said.message
    if said.states(("api usage limits",)):
        return limit_of_account(why, known)
    if said.status == 429 and said.states(("long context",)):
        return RecordOnCall(CallState.TOO_LONG, f"The prompt is too long for this account: {why}", **known)
    if found := LIMIT_REFUSED.search(why):
        return StopRun(
            f"The model writes {found[1]} tokens at most: make a judge with this limit or a lower one. It says: {why}",
            **known,
        )
    return refused_part(said, request, known) if said.status == 400 else None


def limit_of_account(why: str, known: Mapping[str, Any]) -> LLMError:
    """A limit that the account's owner set: wait where it is lifted soon, else a person must raise it."""
    if found := REGAINED_ON.search(why):
        year, month, day, hour, minute = (int(part or 0) for part in found.groups())
        try:
            after = (datetime(year, month, day, hour, minute, tzinfo=UTC) - datetime.now(UTC)).total_seconds()
        except ValueError:
            after = LONGEST_PAUSE_SECONDS
        if 0 < after < LONGEST_PAUSE_SECONDS:
            return QuotaUsedUp(f"The account's limit is reached. It says: {why}", after=after, **known)
    return StopRun(
        f"The account's own limit is reached: raise it in the provider's console and resume the run. It says: {why}",
        **known,
    )


def refused_part(said: Said, request: Request, known: Mapping[str, Any]) -> LLMError | None:
    """A part of the request that this model does not know, in the API's own names."""
    why, words = said.message, said.message.lower()
    if request.shape == ReplyShape.JSON_SCHEMA and words.startswith(("output_config: ", "output_format")):
        return FormatRefused(request.shape, f"The model does not take structured output: {why}", **known)
    if not request.sends("reasoning_effort") or "temperature" in words:
        return None
    if "thinking" in words and "adaptive" in str(thinking_of(request)):
        return SettingRefused(THINKING, f"The model does not take adaptive thinking: {why}", **known)
    if words.startswith("output_config: ") or "effort" in words or "thinking" in words:
        return SettingRefused(
            "reasoning_effort", f"The model does not take this judge's reasoning_effort: {why}", **known
        )
    return None


ADAPTER: Final = Adapter(
    dialect=Dialect.ANTHROPIC,
    hosts=("api.anthropic.com",),
    body=body,
    read=read,
    base_url=base_url,
    path=lambda server, request: "/messages",
    key_headers=lambda key: {"x-api-key": key},
    headers={"anthropic-version": VERSION},
    words=WORDS.plus(
        Words(
            format=("output_config.format", "output_format", "output format", "schema is too complex"),
            key=("invalid x-api-key",),
            remedy=("organization has been disabled",),
        )
    ),
    meaning=meaning,
    lacks=("seed", "logprobs"),
    batch_path="",
)
