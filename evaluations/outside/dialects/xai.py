"""xAI: reasoning is counted beside the completion, and the cost of each request is told.

https://docs.x.ai/docs/key-information/consumption-and-rate-limits, https://docs.x.ai/developers/debugging. What a
tick is worth: https://github.com/BerriAI/litellm/pull/36281. A filter answers 403, as a lack of permission does:
https://github.com/UKGovernmentBEIS/inspect_ai/pull/2267.
"""

import re
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from evaluations.domain import NANO, Dialect
from evaluations.outside.dialects.adapter import Adapter, Headers, Words
from evaluations.outside.dialects.chat import WORDS, chat_body, read_chat
from evaluations.outside.errors import LLMError, Retry
from evaluations.outside.exchange import Answer, Request, Server
from evaluations.outside.usage import IN, OUT, TOTAL, count, first_count, part_of, reasoning_in
from evaluations.outside.wording import Said

LIMIT_NAME: Final = "max_completion_tokens"  # the older name is deprecated
TOP_LOGPROBS: Final = 8  # more are refused
TICKS_PER_USD: Final = 10**10
# A count that xAI alone gives, by which its usage is known behind a gateway.
OWN_COUNT: Final = "num_sources_used"
# "Requests per Day (actual/limit): 16/0, Tokens per Minute (actual/limit): 65605/16000"
LIMITS: Final = re.compile(r"per (\w+) \(actual/limit\): *(\d+)/(\d+)", re.IGNORECASE)
SHORT: Final = ("second", "minute", "hour")


def cost(usage: Mapping[str, Any], headers: Headers) -> int | None:
    ticks = usage.get("cost_in_usd_ticks")
    if isinstance(ticks, bool) or not isinstance(ticks, (int, float)) or ticks < 0:
        return None
    return round(ticks * NANO / TICKS_PER_USD)


def with_total(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """The body with a total in its usage: where none is given, reasoning stands beside the completion here."""
    usage = part_of(body, "usage")
    parts = (first_count(usage, IN), first_count(usage, OUT), reasoning_in(usage))
    if first_count(usage, TOTAL) is not None or parts[0] is None or parts[2] is None:
        return body
    return {**body, "usage": {**usage, "total_tokens": sum(part or 0 for part in parts)}}


def is_of_xai(body: Mapping[str, Any]) -> bool:
    usage = part_of(body, "usage")
    return count(usage.get(OWN_COUNT)) is not None or "cost_in_usd_ticks" in usage


def read(body: Mapping[str, Any], headers: Headers, request: Request) -> Answer | None:
    return read_chat(with_total(body), headers, request, cost=cost)


def meaning(said: Said, server: Server, request: Request, headers: Headers) -> LLMError | None:
    """A limit is told with all others, those a day among them: only those that are reached tell how long it lasts."""
    limits = LIMITS.findall(said.message) if said.status == 429 else []
    reached = [unit.lower() for unit, actual, limit in limits if int(actual) >= int(limit)]
    if not reached or any(unit not in SHORT for unit in reached):
        return None
    return Retry(f"The server answered 429: {said.message}", busy=True, http_status=429, body=said.body)


ADAPTER: Final = Adapter(
    dialect=Dialect.XAI,
    hosts=("api.x.ai",),
    body=partial(chat_body, limit_name=lambda request: LIMIT_NAME, top_logprobs=TOP_LOGPROBS),
    read=read,
    cost=cost,
    meaning=meaning,
    words=WORDS.plus(
        Words(
            filter=("usage guidelines", "safety_check_type"),
            credit=("used all available credits", "have any credits or licenses", "need a grok subscription"),
        )
    ),
)
