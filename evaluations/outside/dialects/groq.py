"""Groq: a reply that does not keep to the form comes as an error that holds what the model wrote.

https://console.groq.com/docs/errors, https://console.groq.com/docs/structured-outputs,
https://console.groq.com/docs/rate-limits. An empty ``failed_generation`` is a reply without a word, and one that says
that the limit was reached is a reply that was cut off: https://console.groq.com/docs/text-chat.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final

from evaluations.domain import Dialect
from evaluations.outside.dialects.adapter import Adapter, Headers, Words
from evaluations.outside.dialects.chat import WORDS, chat_body, read_chat
from evaluations.outside.errors import LLMError, Retry
from evaluations.outside.exchange import Request, Server
from evaluations.outside.usage import part_of
from evaluations.outside.wording import Said

LIMIT_NAME: Final = "max_completion_tokens"  # the older name is deprecated
NO_CAPACITY: Final = 498


def fault(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """An error that happened while the model wrote stands beside the choices."""
    error = part_of(body, "x_groq").get("error")
    if isinstance(error, str) and error:
        return {"message": error}
    return error if isinstance(error, Mapping) and error else None


def meaning(said: Said, server: Server, request: Request, headers: Headers) -> LLMError | None:
    if said.status == NO_CAPACITY:
        return Retry(f"The server answered 498: {said.message}", busy=True, http_status=498, body=said.body)
    return None


ADAPTER: Final = Adapter(
    dialect=Dialect.GROQ,
    hosts=("api.groq.com",),
    body=partial(chat_body, limit_name=lambda request: LIMIT_NAME),
    read=read_chat,
    fault=fault,
    meaning=meaning,
    words=WORDS.plus(
        Words(
            flawed=(
                *("json_validate_failed", "output_parse_failed", "tool_use_failed"),
                "'failed_generation'",  # its sentence, where a gateway leaves the code out
            ),
            cut_off=("max completion tokens reached",),
            model=("decommissioned",),
            remedy=("organization has been restricted",),
        )
    ),
)
