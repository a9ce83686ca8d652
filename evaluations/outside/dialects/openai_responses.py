"""OpenAI's Responses API, which some models are served by alone: https://platform.openai.com/docs/api-reference/responses

Nothing is stored at the provider. It has no seed. A summary of the reasoning is asked for together with an effort, and
left out where it is refused: organizations must be verified for it.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from evaluations.domain import CallState, Dialect, ReplyShape, storable
from evaluations.outside.dialects.adapter import Adapter, Headers, Words
from evaluations.outside.dialects.chat import (
    FEW_LOGPROBS,
    TOP_LOGPROBS,
    WORDS,
    ended_by,
    messages_of,
    text_in,
    tokens_in,
)
from evaluations.outside.errors import LLMError, RecordOnCall, Retry, SettingRefused, StopRun
from evaluations.outside.exchange import Answer, Request, Server
from evaluations.outside.usage import part_of, usage_in
from evaluations.outside.wording import Said

SUMMARY: Final = "reasoning_summary"
LOGPROBS: Final = "message.output_text.logprobs"
SUMMARY_REFUSED: Final = ("reasoning.summary", "reasoning summar")
# Codes of a response that failed, although its request was answered with 200.
BUSY: Final = ("rate_limit_exceeded",)
BLOCKED: Final = ("invalid_prompt", "content_filter", "usage policy", "safety")


# ---- the request ---------------------------------------------------------------------------


def body(request: Request) -> dict[str, Any]:
    """The system text is sent as an item of the input: a mode of JSON looks for the word “JSON” there alone."""
    given: dict[str, Any] = {"model": request.model, "input": messages_of(request), "store": False}
    if request.sends("temperature"):
        given["temperature"] = request.temperature
    if request.sends("max_tokens"):
        given["max_output_tokens"] = request.max_tokens
    if request.sends("reasoning_effort"):
        given["reasoning"] = {"effort": request.reasoning_effort, **summary_for(request)}
    if request.sends("logprobs"):
        few = "top_logprobs" in request.sent_as.left_out
        given |= {"include": [LOGPROBS], "top_logprobs": FEW_LOGPROBS if few else TOP_LOGPROBS}
    return {**given, **text_format(request)}


def summary_for(request: Request) -> dict[str, str]:
    return {} if SUMMARY in request.sent_as.left_out or request.reasoning_effort == "none" else {"summary": "auto"}


def text_format(request: Request) -> dict[str, Any]:
    if request.shape == ReplyShape.JSON_SCHEMA:
        schema = {"type": "json_schema", "name": "verdict", "strict": True, "schema": request.schema}
        return {"text": {"format": schema}}
    return {"text": {"format": {"type": "json_object"}}} if request.shape == ReplyShape.JSON_OBJECT else {}


# ---- the answer ----------------------------------------------------------------------------


def read(answered: Mapping[str, Any], headers: Headers, request: Request) -> Answer | None:
    """The messages of a response that ended, whole or not; None of one that failed or is under way."""
    output, status = answered.get("output"), answered.get("status", "completed")
    if not isinstance(output, list) or status not in ("completed", "incomplete"):
        return None
    parts = list(parts_of(output, "message", "content"))
    said = [part for part in parts if part.get("type") == "output_text"]
    why = text_in(part_of(answered, "incomplete_details").get("reason")) if status == "incomplete" else "stop"
    logprobs = [token for part in said for token in part.get("logprobs") or ()]
    return Answer(
        text="".join(text_in(part.get("text")) for part in said),
        finish_reason=ended_by(why),
        refusal="".join(text_in(part.get("refusal")) for part in parts if part.get("type") == "refusal"),
        model=text_in(answered.get("model"))[:200],
        http_status=200,
        usage=usage_in(part_of(answered, "usage")),
        reasoning=reasoning_in(output),
        logprobs=tokens_in({"logprobs": {"content": logprobs}}) if request.logprobs else (),
    )


def reasoning_in(output: list[Any]) -> str:
    parts = [*parts_of(output, "reasoning", "summary"), *parts_of(output, "reasoning", "content")]
    return storable("\n\n".join(filter(None, (text_in(part.get("text")) for part in parts))))


def parts_of(output: list[Any], kind: str, name: str) -> Iterator[Mapping[str, Any]]:
    """The parts under this name of all items of this kind."""
    for item in output:
        listed = item.get(name) if isinstance(item, dict) and item.get("type") == kind else None
        yield from (part for part in listed or () if isinstance(part, dict))


# ---- errors --------------------------------------------------------------------------------


def meaning(said: Said, server: Server, request: Request, headers: Headers) -> LLMError | None:
    known: dict[str, Any] = {"http_status": said.status, "body": said.body}
    was_asked = request.sends("reasoning_effort") and bool(summary_for(request))
    if was_asked and (said.param == "reasoning.summary" or said.states(SUMMARY_REFUSED)):
        return SettingRefused(SUMMARY, f"The model gives no summary of its reasoning: {said.message}", **known)
    if not said.is_known_status and said.states(BUSY):
        return Retry(f"The server is busy: {said.message}", busy=True, **known)
    if not said.is_known_status and said.states(BLOCKED):
        return RecordOnCall(CallState.REFUSED, f"The server's filter refused the prompt: {said.message}", **known)
    if said.status in (404, 405) and "model" not in said.body.lower():
        return StopRun(
            f"There is no Responses API at {server.base_url}: set the endpoint's provider to another one, or check the "
            "base URL. It usually ends in /v1.",
            **known,
        )
    return None


ADAPTER: Final = Adapter(
    dialect=Dialect.OPENAI_RESPONSES,
    body=body,
    read=read,
    path=lambda server, request: "/responses",
    words=WORDS.plus(Words(format=("text.format",))),
    meaning=meaning,
    lacks=("seed",),
    batch_path="/v1/responses",
)
