"""A server of which only the protocol is known: it may be any provider's, or a gateway to several of them."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from evaluations.domain import Dialect
from evaluations.outside.dialects.adapter import Adapter, Headers, Words
from evaluations.outside.dialects.chat import WORDS, chat_body, chat_reader

# What providers say that have no dialect of their own: DeepSeek, Alibaba, Zhipu, Mistral, TGI and others.
OTHERS: Final = Words(
    too_long=("`inputs` tokens",),  # TGI: `inputs` tokens + `max_new_tokens` must be <= 4096
    filter=("content exists risk", "data_inspection_failed", "datainspectionfailed", "不安全或敏感内容", "敏感内容"),
    credit=("arrearage", "余额不足"),
)


def generic(known: Sequence[Adapter]) -> Adapter:
    """The adapter that understands what any of the known ones says of its costs."""

    def cost(usage: Mapping[str, Any], headers: Headers) -> int | None:
        return next((told for one in known if (told := one.cost(usage, headers)) is not None), None)

    return Adapter(dialect=GENERIC, body=chat_body, read=chat_reader(cost), cost=cost, words=WORDS.plus(OTHERS))


GENERIC: Final = Dialect.GENERIC
