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
from functools import cache
from ssl import SSLContext
from typing import Any, Final

from aiohttp import ClientConnectorError, ClientError, ConnectionTimeoutError, ServerTimeoutError
from httpx2 import Response, create_ssl_context
from openai import APIConnectionError, APIStatusError, APITimeoutError, AsyncOpenAI, DefaultAioHttpClient, OpenAIError

from evaluations.domain import CallState, InputRefused, Message, ReplyShape, Token, storable
from evaluations.outside.addresses import checked_base_url, checked_key_variable
from evaluations.outside.completions import count, ended_by, first_choice, part, text_in, tokens_in
from evaluations.outside.wording import (
    CONTEXT_WORDS,
    CREDIT_WORDS,
    FILTER_WORDS,
    FORMAT_WORDS,
    KEY_WORDS,
    LEAST_OF_KEY,
    LONGEST_BODY,
    MODEL_WORDS,
    NEVER_FITS_WORDS,
    TOO_LONG_WORDS,
    WRONG_DOOR_WORDS,
    Said,
    json_in,
    said_by,
    without_key,
)

COMPLETIONS: Final = "/chat/completions"
KEYLESS: Final = "no-key"  # the SDK refuses an empty key; servers without keys ignore this one
# What is told of each place of a reply: more is refused by some servers, and a rubric has few labels.
TOP_LOGPROBS: Final = 5
LONGEST_WAIT_SECONDS: Final = 3600.0


@dataclass(frozen=True)
class Server:
    base_url: str
    key_variable: str = ""
    timeout_seconds: float = 120.0


@dataclass(frozen=True)
class Request:
    """What is sent. ``shape`` says what holds the reply to its form; a JSON schema needs a ``schema``."""

    messages: Sequence[Message]
    model: str
    temperature: float | None = None
    max_tokens: int | None = None
    seed: int | None = None
    shape: ReplyShape = ReplyShape.TEXT
    schema: Mapping[str, Any] | None = None
    reasoning_effort: str = ""
    logprobs: bool = False

    def settings(self) -> dict[str, Any]:
        """What the judge sets, by the protocol's names: a server that refuses one refuses every call."""
        # Models that take an effort count their reasoning as well, and know the limit by this name alone.
        limit = "max_completion_tokens" if self.reasoning_effort else "max_tokens"
        optional = {
            "temperature": self.temperature,
            limit: self.max_tokens,
            "seed": self.seed,
            "reasoning_effort": self.reasoning_effort or None,
            "logprobs": self.logprobs or None,
        }
        return {name: value for name, value in optional.items() if value is not None}

    def parameters(self) -> dict[str, Any]:
        """The body of the request."""
        given = {"model": self.model, "messages": list(self.messages), **self.settings()}
        if self.logprobs:
            given["top_logprobs"] = TOP_LOGPROBS
        if self.shape == ReplyShape.JSON_SCHEMA:
            schema = {"name": "verdict", "strict": True, "schema": self.schema}
            given["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif self.shape == ReplyShape.JSON_OBJECT:
            given["response_format"] = {"type": "json_object"}
        return given


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
    logprobs: tuple[Token, ...] = ()


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


class TimedOut(Retry):
    """Nothing came in time: the server may have more to do than it can."""


class StopRun(LLMError):
    """No call of this run can succeed before a person mends something."""


class RecordOnCall(LLMError):
    """This one call fails in this state; others may succeed."""

    def __init__(self, state: CallState, sentence: str, **said: Any) -> None:
        super().__init__(sentence, **said)
        self.state = state


class FormatRefused(LLMError):
    """The server does not take a reply of this shape: ask this judge's calls in another, or stop."""

    def __init__(self, shape: ReplyShape, sentence: str, **said: Any) -> None:
        super().__init__(sentence, **said)
        self.shape = shape


Ask = Callable[[Request], Awaitable[Answer]]


@cache
def trusted() -> SSLContext:
    """The certificates that are trusted: reading them takes a third of a second, so once."""
    return create_ssl_context()


@asynccontextmanager
async def connected(server: Server) -> AsyncIterator[Ask]:
    """A function that asks this server, over one pool of connections that closes at the end."""
    key = key_of(server)
    async with (
        DefaultAioHttpClient(verify=trusted()) as http,
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
            return answer_from(raw.status_code, raw.text, server, request, key)

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


def answer_from(status: int, text: str, server: Server, request: Request, key: str = "") -> Answer:
    """What a 200 holds: an answer, or an error that a server in between has passed on as one.

    Neither contains the key, even if the server repeats it. A short dummy such as EMPTY may be a word of the reply.
    """
    if len(key) >= LEAST_OF_KEY:
        text = without_key(text, key)
    body = json_in(text)
    if not isinstance(body, dict) and text.strip()[:1] in ("", "{"):
        raise Retry("The server's answer broke off.", http_status=status, body=storable(text[:LONGEST_BODY]))
    if not isinstance(body, dict):
        raise StopRun(
            f"{server.base_url} answered with something other than JSON, as a web page would: "
            "is the base URL right? It usually ends in /v1.",
            http_status=status,
            body=storable(text[:LONGEST_BODY]),
        )
    choice = first_choice(body)
    message = choice.get("message")
    finish_reason = ended_by(text_in(choice.get("finish_reason")))
    error = body.get("error") or choice.get("error")
    if error and not text_in(part(choice, "message").get("content")):
        raise error_for(passed_on(error, key), server, request, {})
    if finish_reason == "content_filter":  # often without a message
        message = message or {}
    if not isinstance(message, dict):
        raise Retry("The server answered without a choice.", http_status=status, body=storable(text[:LONGEST_BODY]))
    usage = part(body, "usage")
    return Answer(
        text=text_in(message.get("content")),
        finish_reason=finish_reason,
        refusal=text_in(message.get("refusal")),
        model=text_in(body.get("model"))[:200],
        http_status=status,
        tokens_in=count(usage.get("prompt_tokens")),
        tokens_out=count(usage.get("completion_tokens")),
        tokens_cached=count(part(usage, "prompt_tokens_details").get("cached_tokens")),
        logprobs=tokens_in(choice) if request.logprobs else (),
    )


def passed_on(error: Any, key: str) -> Said:
    """An error inside a 200, with the status that it names; one that names none may pass."""
    status = error.get("code") if isinstance(error, dict) else None
    known = status if isinstance(status, int) and 400 <= status < 600 else 502
    return said_by(known, json.dumps({"error": error}, ensure_ascii=False), key)


# ---- errors --------------------------------------------------------------------------------


def error_of(error: Exception, server: Server, request: Request, key: str) -> LLMError:
    if isinstance(error, APIStatusError):
        said = said_by(error.status_code, error.response.text, key)
        return error_for(said, server, request, error.response.headers)
    met = met_by(error)
    if isinstance(met, (ClientConnectorError, ConnectionTimeoutError)):
        return Retry(f"Nobody answers at {server.base_url}: is the address right, and is it up?", unreachable=True)
    if isinstance(met, ClientError) and not isinstance(met, ServerTimeoutError):
        return Retry(f"The connection to {server.base_url} broke.")
    if isinstance(error, (APITimeoutError, TimeoutError)):
        return TimedOut(f"No answer within {server.timeout_seconds:g} seconds.")
    if isinstance(error, APIConnectionError):
        return Retry(f"The connection to {server.base_url} broke.")
    return Retry(f"The request failed: {type(error).__name__}.")


def met_by(error: Exception) -> BaseException | None:
    """What the transport met. It calls a refused, an unknown and a lost connection alike a timeout of connecting."""
    return error.__cause__.__cause__ if error.__cause__ else None


def error_for(said: Said, server: Server, request: Request, headers: Mapping[str, str]) -> LLMError:
    """What to do about an answer that is none: what ends the run first, then this call, then what may pass."""
    status, why = said.status, said.message
    known: dict[str, Any] = {"http_status": status, "body": said.body}
    if 400 <= status < 500 and status != 408 and (status == 402 or said.states(CREDIT_WORDS)):
        return StopRun("The account behind the key has no credit left: top it up and start a new run.", **known)
    if status == 429 and said.states(NEVER_FITS_WORDS):
        return RecordOnCall(
            CallState.TOO_LONG, f"The request is larger than the server's limit a minute: {why}", **known
        )
    if status in (408, 409, 425, 429, 498) or (status >= 500 and status != 501 and not said.states(CONTEXT_WORDS)):
        after = retry_after(headers)
        return Retry(f"The server answered {status}: {why}", after=after, busy=status == 429, **known)
    if status == 401 or said.states(KEY_WORDS):
        return StopRun(refused_key(server, status), **known)
    if 300 <= status < 400 or status in (404, 405, 410) or said.states(WRONG_DOOR_WORDS):
        return nobody_there(said, server, request, known)
    return bad_request(said, server, request, known)


def refused_key(server: Server, status: int) -> str:
    if not server.key_variable:
        return f"{server.base_url} wants a key ({status}), and this endpoint names none: add one with a key."
    return f"{server.base_url} refused the key in {server.key_variable} ({status}): set a valid one for the worker."


def nobody_there(said: Said, server: Server, request: Request, known: Mapping[str, Any]) -> LLMError:
    if said.states(("requested parameters",)) and request.shape != ReplyShape.TEXT:
        return format_refused(said, request, known)
    if said.states(("no endpoints found",)):
        return StopRun(f"{server.base_url} has nobody who serves “{request.model}” so: {said.message}", **known)
    if said.is_json and "model" in said.body.lower():
        return StopRun(unknown_model(server, request), **known)
    return StopRun(
        f"There is no chat API at {server.base_url} (not found): is the base URL right? It usually ends in /v1.",
        **known,
    )


def unknown_model(server: Server, request: Request) -> str:
    return f"{server.base_url} does not know the model “{request.model}”: make a judge with one that it offers."


def bad_request(said: Said, server: Server, request: Request, known: Mapping[str, Any]) -> LLMError:
    """A request that was understood and refused: for its form, for a setting, or for this item alone."""
    why = said.message
    if request.shape != ReplyShape.TEXT and (said.states(FORMAT_WORDS) or said.param.startswith("response_format")):
        return format_refused(said, request, known)
    if said.status == 413 or said.holds(TOO_LONG_WORDS):
        return RecordOnCall(CallState.TOO_LONG, f"The prompt is too long for the model: {why}", **known)
    if said.holds(FILTER_WORDS):
        return RecordOnCall(CallState.REFUSED, f"The server's filter refused the prompt: {why}", **known)
    if setting := said.refused_setting(request.settings()):
        return StopRun(f"The server does not take this judge's {setting}: {why}{advice(said, setting)}", **known)
    if said.param == "model" or said.states(MODEL_WORDS):
        return StopRun(unknown_model(server, request), **known)
    if said.status == 403:
        return StopRun(f"{refused_key(server, said.status)} It says: {why}", **known)
    return RecordOnCall(CallState.FAILED, f"The server refused the request: {why}", **known)


def format_refused(said: Said, request: Request, known: Mapping[str, Any]) -> FormatRefused:
    return FormatRefused(
        request.shape, f"The server does not take structured output ({request.shape}): {said.message}", **known
    )


def advice(said: Said, setting: str) -> str:
    """What a person can do who reads only a parameter's name."""
    if setting == "max_tokens" and "max_completion_tokens" in said.message:
        return " Make a judge with a reasoning effort: its limit goes by that name."
    return " Make a judge without it." if setting != "max_tokens" else ""


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds until the server wants to be asked again, from a number or from a date."""
    given, milliseconds = headers.get("retry-after", "").strip(), headers.get("retry-after-ms", "").strip()
    try:
        if milliseconds.isdecimal():
            seconds = int(milliseconds) / 1000
        else:
            seconds = float(given) if given[:1].isdecimal() else parsedate_to_datetime(given).timestamp() - time.time()
    except (TypeError, ValueError):
        return None
    return min(max(seconds, 0.0), LONGEST_WAIT_SECONDS)
