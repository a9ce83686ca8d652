"""OpenAI's Chat Completions: https://platform.openai.com/docs/api-reference/chat

Errors: https://platform.openai.com/docs/guides/error-codes
"""

from functools import partial
from typing import Final

from evaluations.domain import Dialect
from evaluations.outside.dialects.adapter import Adapter, Words
from evaluations.outside.dialects.chat import WORDS, chat_body, read_chat

# The older name, max_tokens, is refused by the models that reason; the newer one is taken by all.
LIMIT_NAME: Final = "max_completion_tokens"

ADAPTER: Final = Adapter(
    dialect=Dialect.OPENAI,
    hosts=("api.openai.com",),
    body=partial(chat_body, limit_name=lambda request: LIMIT_NAME),
    read=read_chat,
    words=WORDS.plus(
        Words(
            filter=("invalid_prompt", "limited access to this content"),
            model=("does not have access to model",),
            place=("country, region, or territory not",),
        )
    ),
)
