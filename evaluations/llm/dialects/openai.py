"""OpenAI, with its Responses API, with Azure OpenAI.

Chat Completions: https://platform.openai.com/docs/api-reference/chat; errors:
https://platform.openai.com/docs/guides/error-codes; Responses: https://platform.openai.com/docs/api-
reference/responses; Azure: https://learn.microsoft.com/azure/foundry/openai/api-version-lifecycle
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Final
from urllib.parse import urlsplit

from evaluations.domain.json_values import JsonDict, JsonMapping
from evaluations.domain.judges import Dialect, ReplyShape
from evaluations.domain.texts import replace_unstorable
from evaluations.llm.dialects.adapter import Adapter, ErrorWords, Headers
from evaluations.llm.dialects.chat import (
    CHAT_ERROR_WORDS,
    FEW_LOGPROBS,
    NEW_LIMIT_NAME,
    TOP_LOGPROBS,
    build_chat_body,
    choice_tokens,
    content_text,
    normalise_finish_reason,
    parse_chat_answer,
    request_messages,
)
from evaluations.llm.error_body import SETTING_NAMES, ErrorBody
from evaluations.llm.exchange import Answer, LLMError, Request, Retry, Server, SettingRefused, StopRun
from evaluations.llm.token_usage import object_member, parse_usage

OPENAI_ADAPTER: Final = Adapter(
    dialect=Dialect.OPENAI,
    hosts=("api.openai.com",),
    body=partial(build_chat_body, limit_name=NEW_LIMIT_NAME),
    read=parse_chat_answer,
    words=ErrorWords(
        filter=("invalid_prompt", "limited access to this content"),
        model=("does not have access to model",),
        place=("country, region, or territory not",),
    ),
)

AZURE_API_VERSION: Final = "2025-04-01-preview"  # the last of the older API: it knows structured output and reasoning
NO_DEPLOYMENT_WORDS: Final = ("deploymentnotfound", "deployment for this resource does not exist")
API_VERSION_WORDS: Final = ("api version", "api-version", "unsupportedapiversion")
NOT_FOR_CHAT_WORDS: Final = ("operation does not work with the specified model", "operationnotsupported")


def azure_base_url(base_url: str) -> str:
    base_url = base_url.removesuffix("/chat/completions")
    path = urlsplit(base_url).path
    if not path:
        return f"{base_url}/openai/v1"
    return f"{base_url}/v1" if path == "/openai" else base_url


def azure_query(base_url: str) -> Mapping[str, str]:
    return {"api-version": AZURE_API_VERSION} if "/openai/deployments/" in urlsplit(base_url).path else {}


def is_version_too_old_for_part(error: ErrorBody) -> bool:
    """Whether the version is only too old for a part of the request that can be written another way."""
    return error.states(CHAT_ERROR_WORDS.format) or error.refused_setting(SETTING_NAMES) is not None


def classify_azure_error(error: ErrorBody, server: Server, request: Request, headers: Headers) -> LLMError | None:
    if error.states(NO_DEPLOYMENT_WORDS):
        return error.stop(
            f"{server.base_url} has no deployment “{request.model}”: name the judge's model as the deployment is named "
            "in Azure, not as the model behind it."
        )
    if error.status in (400, 404) and error.states(API_VERSION_WORDS) and not is_version_too_old_for_part(error):
        return error.stop(
            "Azure refuses the API version: set another api-version among the endpoint's extra query parameters, or "
            "use an address that ends in /openai/v1, without one."
        )
    if error.status in (400, 404) and error.states(NOT_FOR_CHAT_WORDS):
        return error.stop(
            "This deployment is not served by Chat Completions: use an address that ends in /openai/v1, and set the "
            "endpoint's provider to OpenAI (Responses)."
        )
    if error.status == 404 and "model" not in error.message.lower():
        return error.stop(
            f"There is no chat API at {server.base_url}: the base URL is the resource's address, such as "
            "https://NAME.openai.azure.com."
        )
    return None


AZURE_ADAPTER: Final = Adapter(
    dialect=Dialect.AZURE,
    hosts=("openai.azure.com", "services.ai.azure.com", "cognitiveservices.azure.com"),
    body=partial(build_chat_body, limit_name=NEW_LIMIT_NAME),
    read=parse_chat_answer,
    base_url=azure_base_url,
    query=azure_query,
    key_headers=lambda key: {"api-key": key},
    words=ErrorWords(key=("invalid subscription key",)),
    meaning=classify_azure_error,
)

REASONING_SUMMARY: Final = "reasoning_summary"
INCLUDE_LOGPROBS: Final = "message.output_text.logprobs"
SUMMARY_REFUSED_WORDS: Final = ("reasoning.summary", "reasoning summar")
# Codes of a response that failed, although its request was answered with 200.
BUSY_CODES: Final = ("rate_limit_exceeded",)
BLOCKED_WORDS: Final = ("invalid_prompt", "content_filter", "usage policy", "safety")


def build_responses_body(request: Request) -> JsonDict:
    """The system text is an input item: JSON mode looks for the word “JSON” only there."""
    body: JsonDict = {"model": request.model, "input": request_messages(request), "store": False}
    if request.sends("temperature"):
        body["temperature"] = request.temperature
    if request.sends("max_tokens"):
        body["max_output_tokens"] = request.max_tokens
    if request.sends("reasoning_effort"):
        body["reasoning"] = {"effort": request.reasoning_effort, **responses_reasoning_summary(request)}
    if request.sends("logprobs"):
        few = "top_logprobs" in request.request_shape.left_out
        body |= {"include": [INCLUDE_LOGPROBS], "top_logprobs": FEW_LOGPROBS if few else TOP_LOGPROBS}
    return {**body, **responses_text_format(request)}


def responses_reasoning_summary(request: Request) -> dict[str, str]:
    is_left_out = REASONING_SUMMARY in request.request_shape.left_out or request.reasoning_effort == "none"
    return {} if is_left_out else {"summary": "auto"}


def responses_text_format(request: Request) -> JsonDict:
    if request.shape == ReplyShape.JSON_SCHEMA:
        schema = {"type": "json_schema", "name": "verdict", "strict": True, "schema": request.schema}
        return {"text": {"format": schema}}
    return {"text": {"format": {"type": "json_object"}}} if request.shape == ReplyShape.JSON_OBJECT else {}


def parse_responses_answer(answered: JsonMapping, headers: Headers, request: Request) -> Answer | None:
    """The messages of a response that ended, completely or not; None if it failed or is in progress."""
    output, status = answered.get("output"), answered.get("status", "completed")
    if not isinstance(output, list) or status not in ("completed", "incomplete"):
        return None
    parts = list(output_parts(output, "message", "content"))
    texts = [part for part in parts if part.get("type") == "output_text"]
    incomplete_reason = content_text(object_member(answered, "incomplete_details").get("reason"))
    logprobs = [token for part in texts for token in part.get("logprobs") or ()]
    return Answer(
        text="".join(content_text(part.get("text")) for part in texts),
        finish_reason=normalise_finish_reason(incomplete_reason if status == "incomplete" else "stop"),
        refusal="".join(content_text(part.get("refusal")) for part in parts if part.get("type") == "refusal"),
        model=content_text(answered.get("model"))[:200],
        http_status=200,
        usage=parse_usage(object_member(answered, "usage")),
        reasoning=responses_reasoning(output),
        logprobs=choice_tokens({"logprobs": {"content": logprobs}}) if request.logprobs else (),
    )


def responses_reasoning(output: Sequence[object]) -> str:
    parts = [*output_parts(output, "reasoning", "summary"), *output_parts(output, "reasoning", "content")]
    return replace_unstorable("\n\n".join(filter(None, (content_text(part.get("text")) for part in parts))))


def output_parts(output: Sequence[object], kind: str, name: str) -> Iterator[JsonMapping]:
    """The parts with this name in all items of this kind."""
    for item in output:
        listed = item.get(name) if isinstance(item, dict) and item.get("type") == kind else None
        yield from (part for part in listed or () if isinstance(part, dict))


def classify_responses_error(error: ErrorBody, server: Server, request: Request, headers: Headers) -> LLMError | None:
    wants_summary = request.sends("reasoning_effort") and bool(responses_reasoning_summary(request))
    if wants_summary and (error.param == "reasoning.summary" or error.states(SUMMARY_REFUSED_WORDS)):
        return SettingRefused(
            REASONING_SUMMARY, f"The model gives no summary of its reasoning: {error.message}", **error.kept
        )
    if not error.is_known_status and error.states(BUSY_CODES):
        return Retry(f"The server is busy: {error.message}", busy=True, **error.kept)
    if not error.is_known_status and error.states(BLOCKED_WORDS):
        return error.filtered_prompt()
    if error.status in (404, 405) and "model" not in error.body.lower():
        return StopRun(
            f"There is no Responses API at {server.base_url}: set the endpoint's provider to another one, or check the "
            "base URL. It usually ends in /v1.",
            **error.kept,
        )
    return None


RESPONSES_ADAPTER: Final = Adapter(
    dialect=Dialect.OPENAI_RESPONSES,
    body=build_responses_body,
    read=parse_responses_answer,
    path=lambda server, request: "/responses",
    words=ErrorWords(format=("text.format",)),
    meaning=classify_responses_error,
    lacks=("seed",),
    batch_path="/v1/responses",
)
