"""vLLM and SGLang: https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html"""

import re
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from evaluations.domain import Dialect
from evaluations.outside.dialects.adapter import Adapter, Headers, Words
from evaluations.outside.dialects.chat import chat_body, limit_as_max_tokens, read_chat
from evaluations.outside.errors import LLMError, Retry, StopRun
from evaluations.outside.exchange import Answer, Request, Server
from evaluations.outside.wording import Said

# The server gave up on a reply that it had begun: what there is of it is no answer.
BROKEN_OFF: Final = ("abort", "error")
CONTEXT: Final = re.compile(r"maximum context length (?:is|of) (\d+)")


def read(given: Mapping[str, Any], headers: Headers, request: Request) -> Answer | None:
    answer = read_chat(given, headers, request)
    if answer is not None and answer.finish_reason in BROKEN_OFF:
        raise Retry(
            "The server broke off its reply.", http_status=answer.http_status, body=answer.text, usage=answer.usage
        )
    return answer


def meaning(said: Said, server: Server, request: Request, headers: Headers) -> LLMError | None:
    """A limit of tokens that is no smaller than the context leaves no room for any prompt."""
    context = CONTEXT.search(said.message)
    if context is None or request.max_tokens is None or request.max_tokens < int(context[1]):
        return None
    return StopRun(
        f"This judge's limit of {request.max_tokens:,} tokens is no smaller than the model's context of "
        f"{int(context[1]):,}: make a judge with a lower one. It says: {said.message}",
        http_status=said.status,
        body=said.body,
    )


ADAPTER: Final = Adapter(
    dialect=Dialect.VLLM,
    ports=(8000, 30000),
    body=partial(chat_body, limit_name=limit_as_max_tokens),
    read=read,
    meaning=meaning,
    words=Words(
        format=("xgrammar", "guided decoding", "guided_json", "outlines", "structured outputs"),
        refused=("grammar error", "xgrammar"),
        # The prompt is taken off the window before it is looked at what is left for the reply.
        too_long=("max_tokens must be at least 1, got -",),
        context=("maximum model length", "max_model_len"),
    ),
)
