"""Servers that people run themselves: llama.cpp, LM Studio, vLLM with SGLang, Ollama."""

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from typing import Final, Unpack

from evaluations.domain.json_values import JsonMapping
from evaluations.domain.judges import Dialect, ReplyShape
from evaluations.llm.dialects.adapter import Adapter, ErrorWords, Headers
from evaluations.llm.dialects.chat import (
    FEW_LOGPROBS,
    OLD_LIMIT_NAME,
    TOP_LOGPROBS,
    build_chat_body,
    choice_tokens,
    content_text,
    message_reasoning,
    normalise_finish_reason,
    parse_chat_answer,
    request_messages,
)
from evaluations.llm.error_body import ErrorBody
from evaluations.llm.exchange import (
    Answer,
    ErrorFacts,
    LLMError,
    Request,
    Retry,
    Server,
    SettingRefused,
    StopRun,
    Usage,
    merge_extra_fields,
)
from evaluations.llm.token_usage import object_member, parse_token_count, parse_usage
from evaluations.net.addresses import local_server_root


def parse_llama_cpp_answer(body: Mapping[str, object], headers: Headers, request: Request) -> Answer | None:
    """A completion; older versions report cached tokens only among their timings."""
    answer = parse_chat_answer(body, headers, request)
    cached = parse_token_count(object_member(body, "timings").get("cache_n"))
    if answer is None or cached is None or answer.usage.tokens_cached is not None:
        return answer
    return replace(answer, usage=replace(answer.usage, tokens_cached=cached))


LLAMA_CPP_ADAPTER: Final = Adapter(
    dialect=Dialect.LLAMA_CPP,
    ports=(8080,),
    body=partial(build_chat_body, limit_name=OLD_LIMIT_NAME),
    read=parse_llama_cpp_answer,
    words=ErrorWords(
        # “Unrecognized schema”, “Pattern must start with '^'”: what its own grammar cannot say.
        format=("schema conversion failed", "unrecognized schema"),
        refused=("failed to initialize samplers", "schema conversion failed"),
        context=("available context size",),
    ),
)

WRONG_PATH_WORDS: Final = ("unexpected endpoint or method",)
NO_MODEL_LOADED_WORDS: Final = ("no models loaded", "no model loaded", "multiple models are loaded")


def classify_lm_studio_error(error: ErrorBody, server: Server, request: Request, headers: Headers) -> LLMError | None:
    """LM Studio answers 200 to any path, with an error inside; a path without /v1 is the usual mistake."""
    right = f"{local_server_root(server.base_url)}/v1"
    if error.states(WRONG_PATH_WORDS) and right != server.base_url:
        return StopRun(f"The base URL should end in /v1: {right}. LM Studio says: {error.message}", **error.kept)
    if error.states(NO_MODEL_LOADED_WORDS):
        return error.stop(f"LM Studio has not loaded “{request.model}”: load it there.")
    return None


LM_STUDIO_ADAPTER: Final = Adapter(
    dialect=Dialect.LM_STUDIO,
    ports=(1234,),
    body=partial(build_chat_body, limit_name=OLD_LIMIT_NAME),
    read=parse_chat_answer,
    meaning=classify_lm_studio_error,
    words=ErrorWords(
        too_long=("n_keep", "tokens to keep from the initial prompt", "trying to keep the first"),
        retry=("model unloaded", "model is unloaded", "model reloaded", "the model has crashed", "model crashed"),
        loading=(
            *('failed to load model "', "error loading model.", "could not load model", "unable to load model"),
            "insufficient system resources",
        ),
        remedy=NO_MODEL_LOADED_WORDS,
    ),
)

NATIVE_PROTOCOL: Final = "native"
OLLAMA_HOST: Final = "ollama.com"
# The smallest context of any server, and the step of larger ones: each new size loads the model again.
MIN_CONTEXT: Final = 4096
CONTEXT_STEP: Final = 4096
# Efforts with other names; none means no thinking.
THINK_BY_EFFORT: Final[Mapping[str, str | bool]] = {"none": False, "minimal": "low", "xhigh": "high"}
NOT_ANSWERED_REASONS: Final = ("load", "unload")  # the model was loaded or unloaded, nothing else
NO_SUCH_PATH_STATUSES: Final = (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_IMPLEMENTED)


def is_native_request(request: Request) -> bool:
    return NATIVE_PROTOCOL not in request.request_shape.left_out


def ollama_path(server: Server, request: Request) -> str:
    """The full address: the native API is next to /v1, not below it."""
    return local_server_root(server.base_url) + ("/api/chat" if is_native_request(request) else "/v1/chat/completions")


def build_ollama_body(request: Request) -> dict[str, object]:
    if not is_native_request(request):
        return build_chat_body(request, limit_name=OLD_LIMIT_NAME)
    body: dict[str, object] = {
        "model": request.model,
        "messages": request_messages(request),
        "stream": False,
        # Neither the prompt nor the reply may be cut. Older versions ignore both.
        "truncate": False,
        "shift": False,
        "options": ollama_options(request),
        **ollama_format(request),
    }
    if request.sends("reasoning_effort"):
        body["think"] = THINK_BY_EFFORT.get(request.reasoning_effort, request.reasoning_effort)
    if request.sends("logprobs"):
        few = "top_logprobs" in request.request_shape.left_out
        body |= {"logprobs": True, "top_logprobs": FEW_LOGPROBS if few else TOP_LOGPROBS}
    return merge_extra_fields(body, request.body)


def ollama_options(request: Request) -> dict[str, object]:
    names = {"temperature": "temperature", "max_tokens": "num_predict", "seed": "seed"}
    options = {name: getattr(request, setting) for setting, name in names.items() if request.sends(setting)}
    if request.context_tokens is not None:
        options["num_ctx"] = round_up_context(request.context_tokens)
    return options


def round_up_context(tokens: int) -> int:
    """The context in which so many tokens fit.

    >>> [round_up_context(tokens) for tokens in (100, 4096, 4097, 9000)]
    [4096, 4096, 8192, 12288]
    """
    return max(MIN_CONTEXT, -(-tokens // CONTEXT_STEP) * CONTEXT_STEP)


def ollama_format(request: Request) -> dict[str, object]:
    if request.shape == ReplyShape.JSON_SCHEMA:
        return {"format": request.schema}
    return {"format": "json"} if request.shape == ReplyShape.JSON_OBJECT else {}


def parse_ollama_answer(body: JsonMapping, headers: Headers, request: Request) -> Answer | None:
    if not is_native_request(request):
        return parse_chat_answer(body, headers, request)
    if "choices" in body:  # it answers on the native path as well, but ignores native names
        usage = parse_usage(body["usage"]) if isinstance(body.get("usage"), Mapping) else None
        raise make_native_api_refusal("It answers in the protocol of OpenAI.", http_status=HTTPStatus.OK, usage=usage)
    message = body.get("message")
    if not isinstance(message, Mapping) or body.get("done_reason") in NOT_ANSWERED_REASONS:
        return None
    return Answer(
        text=content_text(message.get("content")),
        finish_reason=normalise_finish_reason(content_text(body.get("done_reason"))),
        refusal="",
        model=content_text(body.get("model"))[:200],
        http_status=HTTPStatus.OK,
        usage=parse_ollama_usage(body),
        reasoning=message_reasoning(message),
        logprobs=choice_tokens({"logprobs": {"content": body.get("logprobs")}}) if request.logprobs else (),
    )


def parse_ollama_usage(body: Mapping[str, object]) -> Usage:
    """Older versions omit the count of a cached prompt, so a missing or zero count is unknown."""
    return Usage(
        tokens_in=parse_token_count(body.get("prompt_eval_count")) or None,
        tokens_out=parse_token_count(body.get("eval_count")),
        tokens_cached=parse_token_count(body.get("prompt_eval_cached_count")),
    )


def classify_ollama_error(error: ErrorBody, server: Server, request: Request, headers: Headers) -> LLMError | None:
    why = error.message.lower()
    if is_native_request(request) and lacks_native_api(error, request):
        return make_native_api_refusal(error.message, **error.kept)
    if error.status == HTTPStatus.NOT_FOUND and "model" in why and "not found" in why:
        return error.stop(
            f"{server.base_url} does not have the model “{request.model}”: run “ollama pull {request.model}” there, or "
            "make a judge with a model that it has."
        )
    if error.status == HTTPStatus.UNAUTHORIZED and "signin" in error.body.lower():
        return StopRun(
            f"“{request.model}” runs in Ollama's cloud, and {server.base_url} is not signed in there: "
            "run “ollama signin” on that machine.",
            **error.kept,
        )
    return None


def lacks_native_api(error: ErrorBody, request: Request) -> bool:
    """Whether the server does not know the path, rather than the model."""
    why = error.message.lower()
    is_of_model = "model" in why or request.model.lower() in why
    return (error.status in NO_SUCH_PATH_STATUSES and not is_of_model) or "unexpected endpoint" in why


def make_native_api_refusal(why: str, **details: Unpack[ErrorFacts]) -> SettingRefused:
    return SettingRefused(NATIVE_PROTOCOL, f"This server does not have Ollama's own API. {why}", **details)


OLLAMA_ADAPTER: Final = Adapter(
    dialect=Dialect.OLLAMA,
    hosts=(OLLAMA_HOST,),
    ports=(11434,),
    path=ollama_path,
    body=build_ollama_body,
    read=parse_ollama_answer,
    meaning=classify_ollama_error,
    words=ErrorWords(
        format=("vocabulary required for format", "field chatrequest.format"),
        refused=("vocabulary required for format",),
        context=("prompt is longer than the context",),
        quota=("hourly usage limit", "session usage limit", "weekly usage limit"),
        loading=("requires more system memory", "requires more memory"),
    ),
)

# The server aborted its reply: the part that was written is no answer.
VLLM_ABORTED_REASONS: Final = ("abort", "error")
VLLM_CONTEXT_LENGTH: Final = re.compile(r"maximum context length (?:is|of) (\d+)")


def parse_vllm_answer(body: Mapping[str, object], headers: Headers, request: Request) -> Answer | None:
    answer = parse_chat_answer(body, headers, request)
    if answer is not None and answer.finish_reason in VLLM_ABORTED_REASONS:
        raise Retry(
            "The server broke off its reply.", http_status=answer.http_status, body=answer.text, usage=answer.usage
        )
    return answer


def classify_vllm_error(error: ErrorBody, server: Server, request: Request, headers: Headers) -> LLMError | None:
    """A token limit no smaller than the context leaves no room for any prompt."""
    context = VLLM_CONTEXT_LENGTH.search(error.message)
    if context is None or request.max_tokens is None or request.max_tokens < int(context[1]):
        return None
    return error.stop(
        f"This judge's limit of {request.max_tokens:,} tokens is no smaller than the model's context of "
        f"{int(context[1]):,}: make a judge with a lower one."
    )


VLLM_ADAPTER: Final = Adapter(
    dialect=Dialect.VLLM,
    ports=(8000, 30000),
    body=partial(build_chat_body, limit_name=OLD_LIMIT_NAME),
    read=parse_vllm_answer,
    meaning=classify_vllm_error,
    words=ErrorWords(
        format=("xgrammar", "guided decoding", "guided_json", "outlines", "structured outputs"),
        refused=("grammar error", "xgrammar"),
        # The prompt is subtracted from the window before the space for the reply is checked.
        too_long=("max_tokens must be at least 1, got -",),
        context=("maximum model length", "max_model_len"),
    ),
)
