"""The dialects: one module for each, found by its name, by an endpoint's address, or by what a server says of itself.

A new provider is one module here and one line in `SPECIFIC`.
"""

from functools import cache, reduce
from typing import Final
from urllib.parse import urlsplit

from evaluations.domain import Dialect
from evaluations.outside.addresses import is_local_address
from evaluations.outside.dialects import (
    anthropic,
    azure,
    google,
    groq,
    litellm,
    llama_cpp,
    lm_studio,
    ollama,
    openai,
    openai_responses,
    openrouter,
    vllm,
    xai,
)
from evaluations.outside.dialects.adapter import Adapter, Words
from evaluations.outside.dialects.generic import generic
from evaluations.outside.exchange import Server

SPECIFIC: Final = (
    openai.ADAPTER,
    openai_responses.ADAPTER,
    azure.ADAPTER,
    anthropic.ADAPTER,
    google.ADAPTER,
    openrouter.ADAPTER,
    xai.ADAPTER,
    groq.ADAPTER,
    litellm.ADAPTER,
    ollama.ADAPTER,
    llama_cpp.ADAPTER,
    vllm.ADAPTER,
    lm_studio.ADAPTER,
)
GENERIC: Final = generic(SPECIFIC)
ADAPTERS: Final = {one.dialect: one for one in (*SPECIFIC, GENERIC)}
# Any of them may come through a gateway.
ALL_WORDS: Final[Words] = reduce(Words.plus, (one.words for one in ADAPTERS.values()))


def adapter_of(server: Server) -> Adapter:
    """The adapter of the dialect that was set or found, else of the one that the address tells."""
    return ADAPTERS[server.dialect or dialect_at(server.base_url)]


@cache
def dialect_at(base_url: str) -> Dialect:
    """The dialect spoken at a well-known host, or in one's own network at the port where such a server listens."""
    parts = urlsplit(base_url)
    host, port = (parts.hostname or "").lower(), parts.port
    for one in SPECIFIC:
        if any(host == end or host.endswith(f".{end}") for end in one.hosts):
            return one.dialect
    is_near = is_local_address(base_url)
    return next((one.dialect for one in SPECIFIC if is_near and port in one.ports), Dialect.GENERIC)
