"""The server of llama.cpp: https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from evaluations.domain import Dialect
from evaluations.outside.dialects.adapter import Adapter, Headers, Words
from evaluations.outside.dialects.chat import chat_body, limit_as_max_tokens, read_chat
from evaluations.outside.exchange import Answer, Request
from evaluations.outside.usage import count, part_of


def read(given: Mapping[str, Any], headers: Headers, request: Request) -> Answer | None:
    """A completion; older versions say only among its timings how much of the prompt was cached."""
    answer = read_chat(given, headers, request)
    cached = count(part_of(given, "timings").get("cache_n"))
    if answer is None or cached is None or answer.usage.tokens_cached is not None:
        return answer
    return replace(answer, usage=replace(answer.usage, tokens_cached=cached))


ADAPTER: Final = Adapter(
    dialect=Dialect.LLAMA_CPP,
    ports=(8080,),
    body=partial(chat_body, limit_name=limit_as_max_tokens),
    read=read,
    words=Words(
        # “Unrecognized schema”, “Pattern must start with '^'”: what its own grammar cannot say.
        format=("schema conversion failed", "unrecognized schema"),
        refused=("failed to initialize samplers", "schema conversion failed"),
        context=("available context size",),
    ),
)
