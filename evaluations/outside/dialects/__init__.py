"""The dialects: one module for each, found by its name, by an endpoint's address, or by what a server says of itself.

A new provider is one module here and one line in `SPECIFIC`.
"""

from functools import reduce
from typing import Final
from urllib.parse import urlsplit

from evaluations.domain import Dialect
from evaluations.outside.dialects import openai, openrouter, vllm
from evaluations.outside.dialects.adapter import Adapter, Words
from evaluations.outside.dialects.generic import generic
from evaluations.outside.exchange import Server

SPECIFIC: Final = (openai.ADAPTER, openrouter.ADAPTER, vllm.ADAPTER)
GENERIC: Final = generic(SPECIFIC)
ADAPTERS: Final = {one.dialect: one for one in (*SPECIFIC, GENERIC)}
# Any of them may come through a gateway.
ALL_WORDS: Final[Words] = reduce(Words.plus, (one.words for one in ADAPTERS.values()))


def adapter_of(server: Server) -> Adapter:
    """The adapter of the dialect that was set or found, else of the one that the address tells."""
    return ADAPTERS[server.dialect or dialect_at(server.base_url)]


def dialect_at(base_url: str) -> Dialect:
    """The dialect spoken at a well-known host, or on this machine at the port where such a server usually listens."""
    parts = urlsplit(base_url)
    host, port = (parts.hostname or "").lower(), parts.port
    for one in SPECIFIC:
        if any(host == end or host.endswith(f".{end}") for end in one.hosts):
            return one.dialect
    is_here = host in ("localhost", "127.0.0.1", "::1", "host.docker.internal")
    return next((one.dialect for one in SPECIFIC if is_here and port in one.ports), Dialect.GENERIC)
