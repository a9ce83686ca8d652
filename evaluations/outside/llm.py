"""One request to a server of models, over its dialect; errors say what the caller should do.

The only importer of ``openai``, whose import costs half a second: import this module late.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache
from ssl import SSLContext
from typing import Any, Final

from aiohttp import ClientConnectorError, ClientError, ConnectionTimeoutError, ServerTimeoutError
from httpx2 import Response, Timeout, create_ssl_context
from openai import (
    APIConnectionError,
    APIStatusError,
    APITimeoutError,
    AsyncOpenAI,
    DefaultAioHttpClient,
    Omit,
    OpenAIError,
)

from evaluations.domain import InputRefused, storable
from evaluations.outside.addresses import checked_base_url, checked_key_variable
from evaluations.outside.dialects import ALL_WORDS, adapter_of
from evaluations.outside.dialects.adapter import Headers
from evaluations.outside.error_reading import error_for, retry_after
from evaluations.outside.errors import (
    FormatRefused,
    LLMError,
    QuotaUsedUp,
    RecordOnCall,
    Retry,
    SettingRefused,
    StopRun,
    TimedOut,
)
from evaluations.outside.exchange import Answer, Ask, Request, Server, Usage, with_extra
from evaluations.outside.extras import resolved
from evaluations.outside.usage import usage_in
from evaluations.outside.wording import LEAST_OF_KEY, LONGEST_BODY, Said, json_in, said_by, without_key

__all__ = [
    "Answer",
    "Ask",
    "FormatRefused",
    "LLMError",
    "QuotaUsedUp",
    "RecordOnCall",
    "Request",
    "Retry",
    "Server",
    "SettingRefused",
    "StopRun",
    "TimedOut",
    "Usage",
    "answer_from",
    "base_url_of",
    "connected",
    "error_from",
    "error_of",
    "flawed_from",
    "key_of",
    "retry_after",
]

HTTP_ERRORS: Final = {str(status) for status in range(400, 600)}
CONNECT_SECONDS: Final = 10.0  # a host that is there answers sooner, however long its model takes
KEYLESS: Final = "no-key"  # the SDK refuses an empty key; servers without keys ignore this one


@cache
def trusted() -> SSLContext:
    """The certificates that are trusted: reading them takes a third of a second, so once."""
    return create_ssl_context()


@asynccontextmanager
async def connected(server: Server) -> AsyncIterator[Ask]:
    """A function that asks this server, over one pool of connections that closes at the end."""
    key, adapter = key_of(server), adapter_of(server)
    headers = headers_of(server, key)
    without = without_bearer(headers)
    async with (
        DefaultAioHttpClient(verify=trusted()) as http,
        AsyncOpenAI(
            base_url=base_url_of(server),
            api_key=key,
            http_client=http,
            max_retries=0,  # when to ask again is written on the call, where a killed worker cannot lose it
            timeout=Timeout(server.timeout_seconds, connect=min(CONNECT_SECONDS, server.timeout_seconds)),
            default_headers=headers,
            default_query=query_of(server),
        ) as client,
    ):

        async def ask(request: Request) -> Answer:
            body = with_extra(adapter.body(request), extra_fields(server, request))
            options: Any = {"headers": {**without, **from_environment(request.headers)}}
            try:
                async with asyncio.timeout(server.timeout_seconds):
                    # `chat.completions.create` looks through every message again and makes objects of the
                    # answer, which takes as long as all the rest.
                    raw = await client.post(adapter.path(server, request), body=body, cast_to=Response, options=options)
            except (OpenAIError, TimeoutError) as error:
                if flawed := flawed_answer(error, key):
                    return flawed
                raise error_of(error, server, request, key) from None
            return answer_from(raw.status_code, raw.text, server, request, key, raw.headers)

        yield ask


def headers_of(server: Server, key: str) -> dict[str, str]:
    """What every request to the server carries besides its body: of the dialect, the key, and what was set."""
    adapter = adapter_of(server)
    return {**adapter.headers, **adapter.key_headers(key), **from_environment(server.headers)}


def query_of(server: Server) -> dict[str, str]:
    return {**adapter_of(server).query(server.base_url), **from_environment(server.query)}


def without_bearer(headers: Headers) -> dict[str, Omit]:
    """Keeps the SDK from sending the key as a bearer token where the provider wants it in another header."""
    return {} if "authorization" in map(str.lower, headers) else {"Authorization": Omit()}


def from_environment(extras: Mapping[str, Any]) -> dict[str, Any]:
    """Extras to be sent, with what the worker's environment holds in place of the variables that they name."""
    if not extras:
        return {}
    try:
        return resolved(extras, os.environ)
    except InputRefused as refused:
        raise StopRun(str(refused)) from None


def extra_fields(server: Server | None, request: Request) -> dict[str, Any]:
    """What the endpoint and the judge add to the body; the judge's fields override the endpoint's."""
    return from_environment({**(server.body if server else {}), **request.body})


def base_url_of(server: Server) -> str:
    """The address as requests need it: a provider's own may have been given without its path."""
    try:
        return adapter_of(server).base_url(checked_base_url(server.base_url))
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


def answer_from(
    status: int, text: str, server: Server, request: Request, key: str = "", headers: Headers | None = None
) -> Answer:
    """What a 200 holds: an answer, or an error that a server in between has passed on as one.

    Neither contains the key, even if the server repeats it. A short dummy such as EMPTY may be a word of the reply.
    """
    headers = headers or {}
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
    adapter = adapter_of(server)
    if error := adapter.fault(body):
        said = replace(said_of(error, json.dumps({"error": error}), key), body=storable(text[:LONGEST_BODY]))
    elif error := error_inside(body):
        said = said_of(error, text, key)
    if error:
        if flawed := flawed_from(said, usage_of(body, server, headers)):
            return flawed
        told = error_for(said, server, request, headers, adapter, ALL_WORDS)
        told.usage = usage_of(body, server, headers)
        raise told
    answer = adapter.read(body, headers, request)
    if answer is not None:
        return answer
    raise Retry(
        f"The server answered without a choice: {storable(text[:200])}",
        http_status=status,
        body=storable(text[:LONGEST_BODY]),
        usage=usage_of(body, server, headers),
    )


def error_inside(body: Mapping[str, Any]) -> Any:
    """What a body of status 200 gives as an error: in its first choice, or at its top where it has no reply."""
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    message = first.get("message")
    has_content = isinstance(message, dict) and bool(message.get("content"))
    return first.get("error") or (None if has_content else body.get("error"))


def usage_of(body: Mapping[str, Any], server: Server, headers: Headers) -> Usage | None:
    usage = body.get("usage")
    return usage_in(usage, adapter_of(server).cost(usage, headers)) if isinstance(usage, dict) else None


def said_of(error: Any, text: str, key: str) -> Said:
    """An error inside a 200, with the status that it names; one that names none may pass."""
    code = error.get("code") if isinstance(error, Mapping) else None
    status = int(code) if isinstance(code, (int, str)) and str(code) in HTTP_ERRORS else None
    return said_by(status or 502, text, key, is_known_status=status is not None)


def flawed_answer(error: Exception, key: str) -> Answer | None:
    """What the model wrote where its server answers with an error because it did not keep to the form."""
    if not isinstance(error, APIStatusError):
        return None
    return flawed_from(said_by(error.status_code, error.response.text, key))


def flawed_from(said: Said, usage: Usage | None = None) -> Answer | None:
    """The reply that an error holds: one that did not keep to the form, without a word, or cut off at the limit."""
    usage = usage or Usage()
    if said.states(ALL_WORDS.flawed) and (said.holds(ALL_WORDS.cut_off)):
        return Answer("", "length", "", "", said.status, usage)
    if not said.wrote and not said.states(ALL_WORDS.flawed):
        return None
    return Answer(said.wrote, "stop", "", "", said.status, usage, is_flawed=True)


# ---- errors --------------------------------------------------------------------------------


def error_of(error: Exception, server: Server, request: Request, key: str) -> LLMError:
    if isinstance(error, APIStatusError):
        return error_from(error.status_code, error.response.text, server, request, key, error.response.headers)
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


def error_from(
    status: int, text: str, server: Server, request: Request, key: str = "", headers: Headers | None = None
) -> LLMError:
    """What an answer with the status of an error means."""
    said = said_by(status, text, key)
    return error_for(said, server, request, headers or {}, adapter_of(server), ALL_WORDS)


def met_by(error: Exception) -> BaseException | None:
    """What the transport met. It calls a refused, an unknown and a lost connection alike a timeout of connecting."""
    return error.__cause__.__cause__ if error.__cause__ else None
