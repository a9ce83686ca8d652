"""OpenAI's Chat Completions: https://platform.openai.com/docs/api-reference/chat

Errors: https://platform.openai.com/docs/guides/error-codes
"""

from functools import partial
from typing import Final

from evaluations.domain import Dialect
from evaluations.outside.dialects.adapter import Adapter, Headers, Words
from evaluations.outside.dialects.chat import WORDS, chat_body, read_chat
from evaluations.outside.errors import LLMError, StopRun
from evaluations.outside.exchange import Request, Server
from evaluations.outside.wording import Said

# The older name, max_tokens, is refused by the models that reason; the newer one is taken by all.
LIMIT_NAME: Final = "max_completion_tokens"
NOT_SERVED_HERE: Final = ("unsupported_country_region_territory", "country, region, or territory not supported")


def meaning(said: Said, server: Server, request: Request, headers: Headers) -> LLMError | None:
    if said.states(NOT_SERVED_HERE):
        return StopRun(
            f"{server.base_url} does not serve the place where the worker runs: run it elsewhere, or choose another "
            f"endpoint. It says: {said.message}",
            http_status=said.status,
            body=said.body,
        )
    return None


ADAPTER: Final = Adapter(
    dialect=Dialect.OPENAI,
    hosts=("api.openai.com",),
    body=partial(chat_body, limit_name=lambda request: LIMIT_NAME),
    read=read_chat,
    words=WORDS.plus(Words(model=("does not have access to model",))),
    meaning=meaning,
    limits_reasoning=True,
)
