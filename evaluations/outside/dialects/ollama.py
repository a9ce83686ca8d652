"""Ollama's own protocol, which alone can say how long the context is to be: https://docs.ollama.com/api/chat

Its OpenAI-compatible API cuts a prompt that is longer than the context and answers 200. The native one takes
``num_ctx``, and refuses a prompt that is longer where it is told not to cut it. A server that only has the
compatible API is found by its answer to the first request, and then asked as the protocol has it.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from evaluations.domain import Dialect, ReplyShape
from evaluations.outside.addresses import root_of
from evaluations.outside.dialects.adapter import Adapter, Headers, Words
from evaluations.outside.dialects.chat import (
    FEW_LOGPROBS,
    TOP_LOGPROBS,
    chat_body,
    ended_by,
    limit_as_max_tokens,
    messages_of,
    read_chat,
    reasoning_in,
    text_in,
    tokens_in,
)
from evaluations.outside.errors import LLMError, SettingRefused, StopRun
from evaluations.outside.exchange import Answer, Request, Server, Usage, with_extra
from evaluations.outside.usage import count, usage_in
from evaluations.outside.wording import Said

NATIVE: Final = "native"
HOST: Final = "ollama.com"
# The least context of any server, and the steps in which more is asked for: each other size loads the model anew.
LEAST_CONTEXT: Final = 4096
CONTEXT_STEP: Final = 4096
# Efforts by other names; none is no thinking.
THINK: Final[Mapping[str, str | bool]] = {"none": False, "minimal": "low", "xhigh": "high"}
NOT_ANSWERED: Final = ("load", "unload")  # the model was loaded or unloaded, nothing else
NO_SUCH_PATH: Final = (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_IMPLEMENTED)


def is_native(request: Request) -> bool:
    return NATIVE not in request.sent_as.left_out


# ---- the request ---------------------------------------------------------------------------


def path(server: Server, request: Request) -> str:
    """The whole address: the native API is beside /v1, not below it."""
    return root_of(server.base_url) + ("/api/chat" if is_native(request) else "/v1/chat/completions")


def body(request: Request) -> dict[str, Any]:
    if not is_native(request):
        return chat_body(request, limit_name=limit_as_max_tokens)
    given: dict[str, Any] = {
        "model": request.model,
        "messages": messages_of(request),
        "stream": False,
        # Neither the prompt nor what was written so far is to be cut. Older versions pass over both.
        "truncate": False,
        "shift": False,
        "options": options(request),
        **reply_format(request),
    }
    if request.sends("reasoning_effort"):
        given["think"] = THINK.get(request.reasoning_effort, request.reasoning_effort)
    if request.sends("logprobs"):
        few = "top_logprobs" in request.sent_as.left_out
        given |= {"logprobs": True, "top_logprobs": FEW_LOGPROBS if few else TOP_LOGPROBS}
    return with_extra(given, request.body)


def options(request: Request) -> dict[str, Any]:
    names = {"temperature": "temperature", "max_tokens": "num_predict", "seed": "seed"}
    given = {name: getattr(request, setting) for setting, name in names.items() if request.sends(setting)}
    if request.context_tokens is not None:
        given["num_ctx"] = context_asked_for(request.context_tokens)
    return given


def context_asked_for(tokens: int) -> int:
    """The context in which so many tokens fit.

    >>> [context_asked_for(tokens) for tokens in (100, 4096, 4097, 9000)]
    [4096, 4096, 8192, 12288]
    """
    return max(LEAST_CONTEXT, -(-tokens // CONTEXT_STEP) * CONTEXT_STEP)


def reply_format(request: Request) -> dict[str, Any]:
    if request.shape == ReplyShape.JSON_SCHEMA:
        return {"format": request.schema}
    return {"format": "json"} if request.shape == ReplyShape.JSON_OBJECT else {}


# ---- the answer ----------------------------------------------------------------------------


def read(given: Mapping[str, Any], headers: Headers, request: Request) -> Answer | None:
    if not is_native(request):
        return read_chat(given, headers, request)
    if "choices" in given:  # it answers on the native path as well, but passes over what stands in native names
        usage = usage_in(given["usage"]) if isinstance(given.get("usage"), Mapping) else None
        raise not_native("It answers in the protocol of OpenAI.", http_status=HTTPStatus.OK, usage=usage)
    message = given.get("message")
    if not isinstance(message, Mapping) or given.get("done_reason") in NOT_ANSWERED:
        return None
    return Answer(
        text=text_in(message.get("content")),
        finish_reason=ended_by(text_in(given.get("done_reason"))),
        refusal="",
        model=text_in(given.get("model"))[:200],
        http_status=HTTPStatus.OK,
        usage=usage_of(given),
        reasoning=reasoning_in(message),
        logprobs=tokens_in({"logprobs": {"content": given.get("logprobs")}}) if request.logprobs else (),
    )


def usage_of(given: Mapping[str, Any]) -> Usage:
    """Older versions leave out the count of a prompt that was cached; no prompt has no tokens."""
    return Usage(
        tokens_in=count(given.get("prompt_eval_count")) or None,
        tokens_out=count(given.get("eval_count")),
        tokens_cached=count(given.get("prompt_eval_cached_count")),
    )


# ---- errors --------------------------------------------------------------------------------


def meaning(said: Said, server: Server, request: Request, headers: Headers) -> LLMError | None:
    known: dict[str, Any] = {"http_status": said.status, "body": said.body}
    why = said.message.lower()
    if is_native(request) and lacks_native_path(said, request):
        return not_native(said.message, **known)
    if said.status == HTTPStatus.NOT_FOUND and "model" in why and "not found" in why:
        return StopRun(
            f"{server.base_url} does not have the model “{request.model}”: run “ollama pull {request.model}” there, or "
            f"make a judge with a model that it has. It says: {said.message}",
            **known,
        )
    if said.status == HTTPStatus.UNAUTHORIZED and "signin" in said.body.lower():
        return StopRun(
            f"“{request.model}” runs in Ollama's cloud, and {server.base_url} is not signed in there: "
            "run “ollama signin” on that machine.",
            **known,
        )
    return None


def lacks_native_path(said: Said, request: Request) -> bool:
    """Whether the server does not know the path, rather than the model."""
    why = said.message.lower()
    is_of_model = "model" in why or request.model.lower() in why
    return (said.status in NO_SUCH_PATH and not is_of_model) or "unexpected endpoint" in why


def not_native(why: str, **known: Any) -> SettingRefused:
    return SettingRefused(NATIVE, f"This server does not have Ollama's own API. {why}", **known)


ADAPTER: Final = Adapter(
    dialect=Dialect.OLLAMA,
    hosts=(HOST,),
    ports=(11434,),
    path=path,
    body=body,
    read=read,
    meaning=meaning,
    words=Words(
        format=("vocabulary required for format", "field chatrequest.format"),
        refused=("vocabulary required for format",),
        context=("prompt is longer than the context",),
        quota=("hourly usage limit", "session usage limit", "weekly usage limit"),
        loading=("requires more system memory", "requires more memory"),
    ),
)
