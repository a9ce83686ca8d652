"""The dialects by name, by an endpoint's address, by what a server reports of itself.

A new provider is one adapter, listed in ``PROVIDER_ADAPTERS``.
"""

from functools import cache, reduce
from typing import Final
from urllib.parse import urlsplit

from evaluations.domain.judges import Dialect
from evaluations.llm.dialects.adapter import Adapter, ErrorWords
from evaluations.llm.dialects.anthropic import ANTHROPIC_ADAPTER
from evaluations.llm.dialects.chat import CHAT_ERROR_WORDS
from evaluations.llm.dialects.gateways import LITELLM_ADAPTER, OPENROUTER_ADAPTER
from evaluations.llm.dialects.generic import build_generic_adapter
from evaluations.llm.dialects.hosted import GOOGLE_ADAPTER, GROQ_ADAPTER, XAI_ADAPTER
from evaluations.llm.dialects.openai import AZURE_ADAPTER, OPENAI_ADAPTER, RESPONSES_ADAPTER
from evaluations.llm.dialects.self_hosted import LLAMA_CPP_ADAPTER, LM_STUDIO_ADAPTER, OLLAMA_ADAPTER, VLLM_ADAPTER
from evaluations.llm.exchange import Server
from evaluations.net.addresses import is_local_address

PROVIDER_ADAPTERS: Final = (
    OPENAI_ADAPTER,
    RESPONSES_ADAPTER,
    AZURE_ADAPTER,
    ANTHROPIC_ADAPTER,
    GOOGLE_ADAPTER,
    OPENROUTER_ADAPTER,
    XAI_ADAPTER,
    GROQ_ADAPTER,
    LITELLM_ADAPTER,
    OLLAMA_ADAPTER,
    LLAMA_CPP_ADAPTER,
    VLLM_ADAPTER,
    LM_STUDIO_ADAPTER,
)
GENERIC_ADAPTER: Final = build_generic_adapter(PROVIDER_ADAPTERS)
ADAPTERS: Final = {adapter.dialect: adapter for adapter in (*PROVIDER_ADAPTERS, GENERIC_ADAPTER)}
# Any of them may come through a gateway.
ALL_ERROR_WORDS: Final[ErrorWords] = reduce(
    ErrorWords.plus, (adapter.words for adapter in ADAPTERS.values()), CHAT_ERROR_WORDS
)


def find_adapter(server: Server) -> Adapter:
    """The adapter of the dialect that was set or found, else of the one guessed from the address."""
    return ADAPTERS[server.dialect or guess_dialect(server.base_url)]


@cache
def guess_dialect(base_url: str) -> Dialect:
    """The dialect of a well-known host, or of a local port where such servers usually listen."""
    if (hosted := hosted_dialect(base_url)) is not None:
        return hosted
    port, is_near = urlsplit(base_url).port, is_local_address(base_url)
    return next(
        (adapter.dialect for adapter in PROVIDER_ADAPTERS if is_near and port in adapter.ports), Dialect.GENERIC
    )


def hosted_dialect(base_url: str) -> Dialect | None:
    """The dialect of the provider whose host this is; None for any other host."""
    host = (urlsplit(base_url).hostname or "").lower()
    ends = ((adapter.dialect, end) for adapter in PROVIDER_ADAPTERS for end in adapter.hosts)
    return next((dialect for dialect, end in ends if host == end or host.endswith(f".{end}")), None)
