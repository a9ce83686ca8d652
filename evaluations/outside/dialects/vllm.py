"""vLLM and SGLang: https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html"""

from typing import Final

from evaluations.domain import Dialect
from evaluations.outside.dialects.adapter import Adapter, Words
from evaluations.outside.dialects.chat import chat_body, read_chat

ADAPTER: Final = Adapter(
    dialect=Dialect.VLLM,
    ports=(8000, 30000),
    body=chat_body,
    read=read_chat,
    words=Words(
        # The prompt is taken off the window before it is looked at what is left for the reply.
        too_long=("max_tokens must be at least 1, got -",),
    ),
)
