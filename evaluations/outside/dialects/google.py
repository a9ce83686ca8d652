"""Google's endpoint that is compatible with Chat Completions: https://ai.google.dev/gemini-api/docs/openai

The limit of tokens holds for thoughts and reply together; thoughts are counted in the total alone. Errors come as a
list of one: https://ai.google.dev/gemini-api/docs/troubleshooting
"""

import re
from typing import Any, Final
from urllib.parse import urlsplit

from evaluations.domain import Dialect, ReplyShape
from evaluations.outside.dialects.adapter import Adapter, Headers, Words
from evaluations.outside.dialects.chat import WORDS, chat_body, read_chat
from evaluations.outside.errors import LONGEST_PAUSE_SECONDS, FormatRefused, LLMError, QuotaUsedUp, StopRun
from evaluations.outside.exchange import Request, Server
from evaluations.outside.wording import Said

# A quota a day is lifted at midnight in California. The delay that is named for it is often that of the minute's.
HOUR_SECONDS: Final = 3600.0
SHORT_DELAY_SECONDS: Final = 300.0
DELAY: Final = re.compile(r'"retryDelay"\s*:\s*"(\d+(?:\.\d+)?)s"')
NO_QUOTA: Final = re.compile(r"limit: 0(?![.\d])")
ANY_LIMIT: Final = re.compile(r"limit: \d")
# What refuses a schema, often among the details of a sentence that says nothing.
SCHEMA: Final = ("too many states", "specified schema", "response_schema", "response_json_schema", "schema nesting")


def base_url(given: str) -> str:
    path = urlsplit(given).path
    if not path:
        return f"{given}/v1beta/openai"
    return f"{given}/openai" if path in ("/v1beta", "/v1") else given


def meaning(said: Said, server: Server, request: Request, headers: Headers) -> LLMError | None:
    known: dict[str, Any] = {"http_status": said.status, "body": said.body}
    why = said.message
    if said.status == 429:
        return used_up(said, request, known)
    if request.shape != ReplyShape.TEXT and said.status == 400 and said.holds(SCHEMA):
        sentence = f"The server does not take structured output ({request.shape}): {why}"
        return FormatRefused(request.shape, sentence, **known)
    if said.status == 404 and "model" not in said.body.lower():
        return StopRun(
            f"There is no chat API at {server.base_url}: is the base URL right? Google's ends in /v1beta/openai.",
            **known,
        )
    return None


def used_up(said: Said, request: Request, known: dict[str, Any]) -> LLMError | None:
    """A quota that will not be lifted by itself, or not before a day has passed; None for one a minute."""
    if NO_QUOTA.search(said.message) and len(NO_QUOTA.findall(said.message)) == len(ANY_LIMIT.findall(said.message)):
        return StopRun(
            f"The project has no quota for “{request.model}”: turn on billing, or make a judge with another model. "
            f"It says: {said.message}",
            **known,
        )
    if not said.holds(WORDS.quota):
        return None
    delay = max((float(found) for found in DELAY.findall(said.body)), default=0.0)
    after = min(delay, LONGEST_PAUSE_SECONDS) if delay > SHORT_DELAY_SECONDS else HOUR_SECONDS
    return QuotaUsedUp(f"The endpoint's quota is used up. It says: {said.message}", after=after, **known)


ADAPTER: Final = Adapter(
    dialect=Dialect.GOOGLE,
    hosts=("generativelanguage.googleapis.com",),
    body=chat_body,
    read=read_chat,
    base_url=base_url,
    words=WORDS.plus(
        Words(
            filter=("blocked by safety settings",),
            key=("api key expired", "api key not found"),
            place=("user location is not supported", "not available in your country"),
        )
    ),
    meaning=meaning,
)
