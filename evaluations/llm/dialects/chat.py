"""OpenAI's Chat Completions protocol, which most servers speak: the body of a request, and of an answer."""

import json
from collections.abc import Callable, Sequence
from math import isnan
from typing import Any, Final

from evaluations.domain.json_values import JsonDict, JsonMapping
from evaluations.domain.judges import ReplyShape, ReplyToken
from evaluations.domain.texts import Message, replace_unstorable
from evaluations.llm.dialects.adapter import ErrorWords, Headers
from evaluations.llm.exchange import Answer, Request, Usage, merge_extra_fields
from evaluations.llm.token_usage import object_member, parse_usage

TEXT_PART_TYPES: Final = ("text", "output_text")  # the kinds of parts that are the reply
REASONING_PART_TYPES: Final = ("thinking", "reasoning", "thought", "reasoning_text", "summary_text")
MIN_LOGPROB: Final = -9999.0
# Servers' words for content_filter and for length.
FILTERED_REASONS: Final = (
    *("content_filter", "content_filtered", "safety", "recitation", "prohibited_content", "blocklist", "spii"),
    *("sensitive", "refusal", "guardrail_intervened", "image_safety"),
)
LENGTH_REASONS: Final = ("max_tokens", "model_length", "model_context_window_exceeded", "max_output_tokens")
# Likely tokens requested per position: a rubric has few labels, but each has several spellings.
TOP_LOGPROBS: Final = 20
FEW_LOGPROBS: Final = 5  # for servers that do not take so many
NEW_LIMIT_NAME: Final = "max_completion_tokens"  # the only one that OpenAI's reasoning models know
OLD_LIMIT_NAME: Final = "max_tokens"  # the one that all self-hosted servers know; some ignore the newer one silently
# Finish reasons of broken-off replies.
ABORTED_REASONS: Final = ("error", "network_error", "insufficient_system_resource")
# Words that many servers share.
CHAT_ERROR_WORDS: Final = ErrorWords(
    format=(
        *("response_format", "response format", "json_schema", "json schema", "json_object", "structured output"),
        *("response_schema", "response mime type", "json mode", "grammar", "requested parameters"),
    ),
    context=(
        *("context_length", "context length", "maximum context", "context window", "context size", "context limit"),
        *("exceed_context_size", "prompt is too long", "input is too long"),
    ),
    too_long=(
        *("too long", "request too large", "too many tokens", "maximum number of tokens", "reduce the length"),
        *("string_above_max_length", "maximum input length", "maximum allowed length", "maximum prompt length"),
    ),
    never_fits=("request too large", "tokens must be reduced"),
    filter=(
        *("content_filter", "content management policy", "content policy", "content_policy", "responsibleaipolicy"),
        *("usage policy", "usage policies", "flagged", "moderation", "safety system", "prohibited_content"),
        *("content filtering", "usage guidelines", "safety_check", "inappropriate content", "blocked by safety"),
        *("unsafe content", "sensitive content", "violates our", "guardrail checks", "guardrail policy"),
        *("hooks_failed", "content safety policy", "blocked due to security", "prompt_threat", "prompt threat"),
        *("prompt was blocked", "prompt has been blocked", "response was blocked", "output was blocked"),
    ),
    credit=(
        *("insufficient_quota", "insufficient balance", "insufficient credits", "insufficient_balance"),
        *("credit balance is too low", "out of credits", "more credits", "used all available credits"),
        *("billing_not_active", "billing_hard_limit", "account is not active", "key limit exceeded"),
        *("run out of credits", "have any credits", "spending limit", "included credits", "inactive subscription"),
        *("balance exhausted", "balance is not enough", "insufficient account balance", "insufficient funds"),
    ),
    quota=(
        *("per day", "perday", "per-day", "daily", "(tpd)", "(rpd)", "per 86400s", "per month", "weekly limit"),
        *("tokens_per_day", "requests_per_day", "/ day", "/ month", "usage limit reached", "limit will reset at"),
    ),
    budget=(
        *("budget has been exceeded", "budget_exceeded", "exceededbudget", "exceeded budget", "over budget"),
        *("max budget:", "max budget for"),
    ),
    rate=("rate limit", "rate_limit", "ratelimit", "too many requests", "throttl"),
    key=(
        *("api key not valid", "api_key_invalid", "invalid api key", "invalid_api_key"),
        *("incorrect api key", "incorrect_api_key"),
    ),
    model=(
        *("model_not_found", "not a valid model", "invalid model", "unknown model", "model not exist"),
        *("model does not exist", "no such model", "model not found", "deploymentnotfound"),
    ),
    wrong_address=(
        *("plain http request was sent to https", "client sent an http request to an https"),
        *("unexpected endpoint or method",),
    ),
    system=(
        *("system role not supported", "system role is not supported", "system messages are not supported"),
        *("system message is not supported", "does not support system", "system prompt is not supported"),
        *("only user and assistant roles", "roles must alternate user/assistant", "developer instruction is not"),
        *("unsupported role: system", "role 'system'", "role: system"),
    ),
    refused=(
        *("jinja", "validation error", "validation_error", "parse grammar", "parsing grammar", "invalid json schema"),
    ),
    busy=("context size has been exceeded", "no slots available", "maximum pending requests", "server overloaded"),
    template=("jinja", "chat template"),
    retry=("overloaded", "temporarily unavailable", "server is busy"),
    remedy=("must be verified", "only supported in v1/responses", "v1/responses", "not a chat model"),
)


def build_chat_body(request: Request, *, limit_name: str = "", top_logprobs: int = TOP_LOGPROBS) -> JsonDict:
    """The body of a request: the judge's settings that the model takes, by the protocol's names."""
    body: JsonDict = {"model": request.model, "messages": request_messages(request)}
    if request.sends("temperature"):
        body["temperature"] = request.temperature
    if request.sends("max_tokens"):
        # Models with a reasoning effort count reasoning as well, and know the limit by one name only.
        usual_name = NEW_LIMIT_NAME if request.reasoning_effort else OLD_LIMIT_NAME
        body[request.request_shape.limit_name or limit_name or usual_name] = request.max_tokens
    for setting in ("seed", "reasoning_effort"):
        if request.sends(setting):
            body[setting] = getattr(request, setting)
    if request.sends("logprobs"):
        few = "top_logprobs" in request.request_shape.left_out
        body |= {"logprobs": True, "top_logprobs": FEW_LOGPROBS if few else top_logprobs}
    return merge_extra_fields({**body, **build_response_format(request)}, request.body)


def build_response_format(request: Request) -> JsonDict:
    if request.shape == ReplyShape.JSON_SCHEMA:
        schema = {"name": "verdict", "strict": True, "schema": request.schema}
        return {"response_format": {"type": "json_schema", "json_schema": schema}}
    return {"response_format": {"type": "json_object"}} if request.shape == ReplyShape.JSON_OBJECT else {}


def request_messages(request: Request) -> list[Message]:
    """The messages; the system text leads the first user turn if the model has no system role."""
    return fold_system_message(request.messages) if request.request_shape.system_folded else list(request.messages)


def fold_system_message(messages: Sequence[Message]) -> list[Message]:
    system = "\n\n".join(message["content"] for message in messages if message["role"] == "system")
    others = [message for message in messages if message["role"] != "system"]
    if not system or not others or others[0]["role"] != "user":
        return list(messages)
    return [{"role": "user", "content": f"{system}\n\n{others[0]['content']}"}, *others[1:]]


def parse_chat_answer(
    body: JsonMapping,
    headers: Headers,
    request: Request,
    *,
    cost: Callable[[JsonMapping, Headers], int | None] = lambda usage, headers: None,
) -> Answer | None:
    """The first choice of a completion; None if there is none, or if the model broke off.

    An empty list of choices means that a filter blocked the reply.
    """
    usage = object_member(body, "usage")
    counted = parse_usage(usage, cost(usage, headers))
    choice = first_chat_choice(body)
    if not choice:
        return make_blocked_answer(body, counted) if is_blocked_completion(body) else None
    message = choice.get("message")
    finish_reason = normalise_finish_reason(content_text(choice.get("finish_reason")))
    if finish_reason:  # filters, and reasoning that used up the limit, often leave no message
        message = message or {}
    if not isinstance(message, dict) or finish_reason in ABORTED_REASONS:
        return None
    return Answer(
        text=content_text(message.get("content")),
        finish_reason=finish_reason,
        refusal=content_text(message.get("refusal")),
        model=content_text(body.get("model"))[:200],
        http_status=200,
        usage=counted,
        reasoning=message_reasoning(message),
        logprobs=choice_tokens(choice) if request.logprobs else (),
    )


def is_blocked_completion(body: JsonMapping) -> bool:
    """Whether a body without choices is a completion that a filter blocked."""
    is_completion = bool(body.get("model")) or bool(object_member(body, "usage")) or "promptFeedback" in body
    return is_completion and body.get("choices") in (None, [])


def make_blocked_answer(body: JsonMapping, usage: Usage) -> Answer:
    why = object_member(body, "promptFeedback").get("blockReason")
    refusal = "The server's filter left no reply" + (f" ({why})." if isinstance(why, str) else ".")
    return Answer("", "content_filter", refusal, content_text(body.get("model"))[:200], 200, usage)


def message_reasoning(message: JsonMapping) -> str:
    """The model's reasoning, if the server separates it; never read for a verdict."""
    for name in ("reasoning_content", "reasoning", "thinking"):
        if isinstance(message.get(name), str) and message[name]:
            return replace_unstorable(message[name])
    content, details = message.get("content"), message.get("reasoning_details")
    parts = [part for listed in (details, content) if isinstance(listed, list) for part in listed]
    texts = [part_reasoning(part) for part in parts if isinstance(part, dict)]
    return replace_unstorable("\n\n".join(filter(None, texts)))


def part_reasoning(part: JsonMapping) -> str:
    """The reasoning in one part of a message; "" if it is of another kind."""
    kind = str(part.get("type", ""))
    if not (part.get("thought") or kind.partition(".")[0] in REASONING_PART_TYPES):
        return ""
    for name in ("text", "thinking", "summary"):
        inside = part.get(name)
        if isinstance(inside, str):
            return inside
        if isinstance(inside, list):
            return "".join(str(item.get("text", "")) for item in inside if isinstance(item, dict))
    return ""


def normalise_finish_reason(reason: str) -> str:
    """Why the model stopped, in the protocol's word for filters and limits."""
    word = reason.partition(":")[0].strip().lower()  # some servers add details after a colon
    if word in FILTERED_REASONS:
        return "content_filter"
    return "length" if word in LENGTH_REASONS else reason[:40]


def first_chat_choice(body: JsonMapping) -> JsonDict:
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, dict) else {}


def content_text(content: object) -> str:
    """The text parts of a list, other JSON as written, "" for nothing.

    Parts of other kinds, such as reasoning, are not text although they contain some.
    """
    if content is None:
        return ""
    if isinstance(content, list) and content and all(isinstance(part, dict) for part in content):
        parts = [part for part in content if part.get("type", "text") in TEXT_PART_TYPES and not part.get("thought")]
        content = "".join(part["text"] for part in parts if isinstance(part.get("text"), str))
    return replace_unstorable(content if isinstance(content, str) else json.dumps(content))


def choice_tokens(choice: JsonMapping) -> tuple[ReplyToken, ...]:
    """The reply's tokens with their probabilities; empty if the server sent none of this form."""
    tokens: Any = object_member(choice, "logprobs").get("content")
    try:
        return tuple(parse_token(token) for token in tokens or ())
    except (AttributeError, KeyError, TypeError, ValueError):
        return ()


def parse_token(token: JsonMapping) -> ReplyToken:
    likeliest = ((token_bytes(other), token_logprob(other)) for other in token.get("top_logprobs") or ())
    return ReplyToken(token_bytes(token), token_logprob(token), tuple(likeliest))


def token_bytes(token: JsonMapping) -> bytes:
    """The token's bytes: a token may be half a character, which its text does not show."""
    values = token.get("bytes")
    return bytes(values) if isinstance(values, list) else str(token["token"]).encode(errors="replace")


def token_logprob(token: JsonMapping) -> float:
    """The log probability, clipped to [MIN_LOGPROB, 0]: databases take no minus infinity."""
    logprob = float(token["logprob"])
    if isnan(logprob):
        raise ValueError
    return min(max(logprob, MIN_LOGPROB), 0.0)
