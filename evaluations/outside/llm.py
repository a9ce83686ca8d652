"""One request to an OpenAI-compatible server, and errors that say what the caller should do.

The only importer of ``openai``, whose import costs half a second: import this module late.
"""

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import Any, Final

from httpx2 import Response
from openai import APIConnectionError, APIStatusError, APITimeoutError, AsyncOpenAI, DefaultAioHttpClient, OpenAIError

from evaluations.domain import CallState, InputRefused, Message, storable
from evaluations.outside.addresses import checked_base_url, checked_key_variable

COMPLETIONS: Final = "/chat/completions"
KEYLESS: Final = "no-key"  # the SDK refuses an empty key; servers without keys ignore this one
LONGEST_BODY: Final = 4000
# Parameters of the judge, not of one call: a server that refuses one refuses every call.
JUDGE_PARAMETERS: Final = ("temperature", "max_tokens", "seed", "model")
# How servers word the three bad requests that are not the judge's fault.
FORMAT_WORDS: Final = ("response_format", "json_schema", "structured output")
TOO_LONG_WORDS: Final = ("context_length", "maximum context", "context window", "too long")
FILTER_WORDS: Final = ("content_filter", "content management policy")
# The aiohttp transport calls a refused connection and an unknown host a timeout of the connection.
NEVER_CONNECTED: Final = ("ConnectError", "ConnectTimeout")
LONGEST_WAIT_SECONDS: Final = 3600.0


@dataclass(frozen=True)
class Server:
    base_url: str
    key_variable: str = ""
    timeout_seconds: float = 120.0


@dataclass(frozen=True)
class Request:
    """What is sent. A ``schema`` asks for strict structured output; None for plain text."""

    messages: Sequence[Message]
    model: str
    temperature: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    schema: Mapping[str, Any] | None = None

    def parameters(self) -> dict[str, Any]:
        optional = {"temperature": self.temperature, "max_tokens": self.max_tokens, "seed": self.seed}
        given: dict[str, Any] = {name: value for name, value in optional.items() if value is not None}
        if self.schema is not None:
            schema = {"name": "verdict", "strict": True, "schema": self.schema}
            given["response_format"] = {"type": "json_schema", "json_schema": schema}
        return {"model": self.model, "messages": list(self.messages), **given}


@dataclass(frozen=True)
class Answer:
    text: str
    finish_reason: str
    refusal: str
    model: str
    http_status: int
    tokens_in: int | None
    tokens_out: int | None
    tokens_cached: int | None


class LLMError(Exception):
    """Why there is no answer, in one sentence; what the server said, without the key."""

    def __init__(self, sentence: str, *, http_status: int | None = None, body: str = "") -> None:
        super().__init__(sentence)
        self.http_status = http_status
        self.body = body


class Retry(LLMError):
    """Ask again later: after so many seconds where the server named a time.

    ``busy``: the server turned the request away because there were too many.
    ``unreachable``: there was no answer at all, so that no call of the run can do better.
    """

    def __init__(
        self, sentence: str, *, after: float | None = None, busy: bool = False, unreachable: bool = False, **said: Any
    ) -> None:
        super().__init__(sentence, **said)
        self.after = after
        self.busy = busy
        self.unreachable = unreachable


class StopRun(LLMError):
    """No call of this run can succeed before a person mends something."""


class RecordOnCall(LLMError):
    """This one call fails in this state; others may succeed."""

    def __init__(self, state: CallState, sentence: str, **said: Any) -> None:
        super().__init__(sentence, **said)
        self.state = state


class FormatRefused(LLMError):
    """The server does not take structured output: ask this judge's calls as plain text."""


Ask = Callable[[Request], Awaitable[Answer]]


@asynccontextmanager
async def connected(server: Server) -> AsyncIterator[Ask]:
    """A function that asks this server, over one pool of connections that closes at the end."""
    key = key_of(server)
    async with (
        DefaultAioHttpClient() as http,
        AsyncOpenAI(
            base_url=base_url_of(server),
            api_key=key,
            http_client=http,
            max_retries=0,  # when to ask again is written on the call, where a killed worker cannot lose it
            timeout=server.timeout_seconds,
        ) as client,
    ):

        async def ask(request: Request) -> Answer:
            try:
                async with asyncio.timeout(server.timeout_seconds):
                    # `chat.completions.create` looks through every message again and makes objects of the
                    # answer, which takes as long as all the rest.
                    raw = await client.post(COMPLETIONS, body=request.parameters(), cast_to=Response)
            except (OpenAIError, TimeoutError) as error:
                raise error_of(error, server, request, key) from None
            return answer_from(raw.status_code, raw.text, server)

        yield ask


def base_url_of(server: Server) -> str:
    try:
        return checked_base_url(server.base_url)
    except InputRefused as error:
        raise StopRun(str(error)) from None


def key_of(server: Server) -> str:
    """The key from the environment; the name is checked again, however it got here."""
    try:
        name = checked_key_variable(server.key_variable)
    except InputRefused as error:
        raise StopRun(str(error)) from None
    if not name:
        return KEYLESS
    key = os.environ.get(name, "").strip()
    if not key:
        raise StopRun(f"{name} is not set where the worker runs: set it there and start the worker again.")
    if not (key.isascii() and key.isprintable()):
        raise StopRun(f"{name} holds characters that no key has: set it again, without line breaks or quotes.")
    return key


# ---- answers -------------------------------------------------------------------------------


def answer_from(status: int, text: str, server: Server) -> Answer:
    try:
        body = json.loads(text)
    except (ValueError, RecursionError):
        body = None
    if not isinstance(body, dict):
        raise StopRun(
            f"{server.base_url} answered with something other than JSON, as a web page would: "
            "is the base URL right? It usually ends in /v1.",
            http_status=status,
            body=storable(text[:LONGEST_BODY]),
        )
    message, finish_reason = first_choice(body)
    if message is None:
        raise Retry("The server answered without a choice.", http_status=status, body=storable(text[:LONGEST_BODY]))
    usage = part(body, "usage")
    return Answer(
        text=text_in(message.get("content")),
        finish_reason=text_in(finish_reason)[:40],
        refusal=text_in(message.get("refusal")),
        model=text_in(body.get("model"))[:200],
        http_status=status,
        tokens_in=count(usage.get("prompt_tokens")),
        tokens_out=count(usage.get("completion_tokens")),
        tokens_cached=count(part(usage, "prompt_tokens_details").get("cached_tokens")),
    )


def first_choice(body: Mapping[str, Any]) -> tuple[dict[str, Any] | None, Any]:
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(first, dict) or not isinstance(first.get("message"), dict):
        return None, None
    return first["message"], first.get("finish_reason")


def part(body: Mapping[str, Any], name: str) -> dict[str, Any]:
    inside = body.get(name)
    return inside if isinstance(inside, dict) else {}


def count(given: Any) -> int | None:
    return given if isinstance(given, int) and 0 <= given < 2**31 else None


def text_in(given: Any) -> str:
    """What stands where text should; other JSON as it is written, nothing as nothing."""
    if given is None:
        return ""
    return storable(given if isinstance(given, str) else json.dumps(given))


# ---- errors --------------------------------------------------------------------------------


def error_of(error: Exception, server: Server, request: Request, key: str) -> LLMError:
    if isinstance(error, APIStatusError):
        return status_error(error, server, request, key)
    if type(error.__cause__).__name__ in NEVER_CONNECTED:
        return Retry(f"Nobody answers at {server.base_url}: is the address right, and is it up?", unreachable=True)
    if isinstance(error, (APITimeoutError, TimeoutError)):
        return Retry(f"No answer within {server.timeout_seconds:g} seconds.")
    if isinstance(error, APIConnectionError):
        return Retry(f"The connection to {server.base_url} broke.")
    return Retry(f"The request failed: {type(error).__name__}.")


def status_error(error: APIStatusError, server: Server, request: Request, key: str) -> LLMError:
    status = error.status_code
    said = storable(error.response.text[:LONGEST_BODY]).replace(key, "…")
    why = storable(str(error.message).removeprefix(f"Error code: {status} - "))[:300].replace(key, "…")
    known: dict[str, Any] = {"http_status": status, "body": said}
    if status in (400, 413, 422):
        return bad_request(error, request, why, known)
    if status in (401, 403):
        return StopRun(refused_key(server, status), **known)
    if status == 402 or (status == 429 and error.code == "insufficient_quota"):
        return StopRun("The account behind the key has no credit left: top it up and start a new run.", **known)
    if status in (404, 405):
        return StopRun(not_found(error, server, request), **known)
    if status in (408, 409, 425, 429) or status >= 500:
        after = retry_after(error.response.headers)
        return Retry(f"The server answered {status}: {why}", after=after, busy=status == 429, **known)
    return RecordOnCall(CallState.FAILED, f"The server answered {status}: {why}", **known)


def refused_key(server: Server, status: int) -> str:
    if not server.key_variable:
        return f"{server.base_url} wants a key ({status}), and this endpoint names none: add one with a key."
    return f"{server.base_url} refused the key in {server.key_variable} ({status}): set a valid one for the worker."


def not_found(error: APIStatusError, server: Server, request: Request) -> str:
    if isinstance(error.body, dict) and "model" in json.dumps(error.body).lower():
        return f"{server.base_url} does not know the model “{request.model}”: make a judge with one that it offers."
    return f"There is no chat API at {server.base_url} (not found): is the base URL right? It usually ends in /v1."


def bad_request(error: APIStatusError, request: Request, why: str, known: Mapping[str, Any]) -> LLMError:
    words = f"{error.code} {why} {known['body']}".lower()
    if request.schema is not None and any(name in words for name in FORMAT_WORDS):
        return FormatRefused(f"The server does not take structured output: {why}", **known)
    if error.param in JUDGE_PARAMETERS:
        return StopRun(f"The server does not take this judge's {error.param}: {why}", **known)
    if known["http_status"] == 413 or any(name in words for name in TOO_LONG_WORDS):
        return RecordOnCall(CallState.TOO_LONG, f"The prompt is too long for the model: {why}", **known)
    if any(name in words for name in FILTER_WORDS):
        return RecordOnCall(CallState.REFUSED, f"The server's filter refused the prompt: {why}", **known)
    return RecordOnCall(CallState.FAILED, f"The server refused the request: {why}", **known)


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds until the server wants to be asked again, from a number or from a date."""
    given = headers.get("retry-after", "").strip()
    try:
        seconds = float(given) if given[:1].isdecimal() else parsedate_to_datetime(given).timestamp() - time.time()
    except (TypeError, ValueError):
        return None
    return min(max(seconds, 0.0), LONGEST_WAIT_SECONDS)
