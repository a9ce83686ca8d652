"""OpenRouter, a gateway that says what each request cost: https://openrouter.ai/docs/api-reference/overview"""

from collections.abc import Mapping
from typing import Any, Final

from evaluations.domain import Dialect
from evaluations.outside.dialects.adapter import Adapter, Headers, Words
from evaluations.outside.dialects.chat import chat_body, chat_reader
from evaluations.outside.usage import nano_usd_in, part_of


def cost(usage: Mapping[str, Any], headers: Headers) -> int | None:
    """What was charged; with a key of one's own the provider's bill comes beside OpenRouter's fee."""
    told = usage.get("cost")
    fee = nano_usd_in(told.get("total_cost") if isinstance(told, Mapping) else told)
    if not usage.get("is_byok"):
        return fee
    upstream = nano_usd_in(part_of(usage, "cost_details").get("upstream_inference_cost"))
    return None if upstream is None else upstream + (fee or 0)


ADAPTER: Final = Adapter(
    dialect=Dialect.OPENROUTER,
    hosts=("openrouter.ai",),
    body=chat_body,
    read=chat_reader(cost),
    cost=cost,
    words=Words(filter=("requires moderation",), model=("is not a valid model id",)),
)
