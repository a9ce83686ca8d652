"""One request to an LLM server in its dialect.

This module imports ``openai``, which takes half a second: import it late.
"""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import cache
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import urlsplit

import httpx2
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

from evaluations.domain.errors import InputRefused
from evaluations.domain.json_values import JsonDict, JsonMapping
from evaluations.domain.texts import replace_unstorable
from evaluations.llm.dialects.adapter import Headers
from evaluations.llm.dialects.registry import ALL_ERROR_WORDS, find_adapter
from evaluations.llm.error_body import (
    MAX_BODY_LENGTH,
    MIN_KEY_FRAGMENT,
    ErrorBody,
    parse_error_body,
    parse_json_object,
    redact_key,
)
from evaluations.llm.error_classifier import classify_error
from evaluations.llm.exchange import (
    Answer,
    LLMError,
    Request,
    RequestTimedOut,
    Retry,
    SendRequest,
    Server,
    StopRun,
    Usage,
    merge_extra_fields,
)
from evaluations.llm.request_extras import list_unsent_variables, resolve_extras
from evaluations.llm.server_detection import GetPage, PostPage, ServerPage
from evaluations.llm.token_usage import parse_usage
from evaluations.net.addresses import check_base_url, check_key_variable

HTTP_ERRORS: Final = {str(status) for status in range(400, 600)}
CONNECT_TIMEOUT_SECONDS: Final = 10.0  # a reachable host answers sooner, however slow its model
# A gateway without the server behind it, or a server that starts or stops.
OUTAGE_STATUSES: Final = (HTTPStatus.BAD_GATEWAY, HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.GATEWAY_TIMEOUT)
NO_KEY: Final = "no-key"  # the SDK refuses an empty key; servers without keys ignore this one


trusted_certificates: Final = cache(create_ssl_context)  # reading them takes a third of a second


@asynccontextmanager
async def connect_llm(server: Server) -> AsyncIterator[SendRequest]:
    """A function that sends requests to this server, over a pool of connections that closes at the end."""
    key, adapter = server_key(server), find_adapter(server)
    headers = request_headers(server, key)
    omitted_headers = omit_bearer_header(headers)
    async with (
        DefaultAioHttpClient(verify=trusted_certificates()) as http,
        AsyncOpenAI(
            base_url=server_base_url(server),
            api_key=key,
            http_client=http,
            max_retries=0,  # retries are recorded on the call, where a killed worker cannot lose them
            timeout=Timeout(server.timeout_seconds, connect=min(CONNECT_TIMEOUT_SECONDS, server.timeout_seconds)),
            default_headers=headers,
            default_query=request_query(server),
        ) as client,
    ):

        async def send(request: Request) -> Answer:
            refuse_unsent_variables(server, request)
            body = merge_extra_fields(adapter.body(request), extra_body_fields(server, request))
            options: Any = {"headers": {**omitted_headers, **extras_from_environment(request.headers)}}
            try:
                async with asyncio.timeout(server.timeout_seconds):
                    # `chat.completions.create` validates every message again and builds objects from the
                    # answer, which takes as long as all the rest.
                    raw = await client.post(adapter.path(server, request), body=body, cast_to=Response, options=options)
            except (OpenAIError, TimeoutError) as error:
                if isinstance(error, APIStatusError):
                    error_body = parse_error_body(error.status_code, error.response.text, key)
                    if flawed := salvage_flawed_answer(error_body):
                        return flawed
                raise translate_sdk_error(error, server, request, key) from None
            return parse_answer(raw.status_code, raw.text, server, request, key, raw.headers)

        yield send


def request_headers(server: Server, key: str) -> dict[str, str]:
    """The headers of every request: the dialect's, the key, and the endpoint's extras."""
    adapter = find_adapter(server)
    return {**adapter.headers, **adapter.key_headers(key), **extras_from_environment(server.headers)}


def request_query(server: Server) -> dict[str, str]:
    return {**find_adapter(server).query(server.base_url), **extras_from_environment(server.query)}


def omit_bearer_header(headers: Headers) -> dict[str, Omit]:
    """Keep the SDK from sending a bearer token to providers that want the key in another header."""
    return {} if "authorization" in map(str.lower, headers) else {"Authorization": Omit()}


def extras_from_environment(extras: JsonMapping) -> JsonDict:
    """The extras with each variable replaced by its value in the worker's environment."""
    if not extras:
        return {}
    try:
        return resolve_extras(extras, os.environ)
    except InputRefused as refused:
        raise StopRun(str(refused)) from None


def refuse_unsent_variables(server: Server, request: Request) -> None:
    """Refuse a judge that names a secret of its own: one that was restored may come from another site."""
    if unsent := list_unsent_variables({"headers": request.headers, "body": request.body}, server):
        raise StopRun(
            f"This judge's extra headers or body fields name {unsent[0]}, which its endpoint is not sent: a site "
            "administrator can add it to the endpoint's extra headers."
        )


def extra_body_fields(server: Server | None, request: Request) -> JsonDict:
    """The body fields that endpoint and judge add; the judge's override the endpoint's."""
    return extras_from_environment({**(server.body if server else {}), **request.body})


def server_base_url(server: Server) -> str:
    """The address for requests, completed with the provider's path if that was left out."""
    try:
        return find_adapter(server).base_url(check_base_url(server.base_url))
    except InputRefused as error:
        raise StopRun(str(error)) from None


def server_key(server: Server) -> str:
    """The key that is stored, or the one in the environment, whose name is checked again."""
    try:
        if server.read_stored_key is not None:
            return server.read_stored_key()
        name = check_key_variable(server.key_variable)
    except InputRefused as error:
        raise StopRun(str(error)) from None
    if not name:
        return NO_KEY
    key = os.environ.get(name, "").strip()
    if not key:
        raise StopRun(f"{name} is not set where the worker runs: set it there and start the worker again.")
    if not (key.isascii() and key.isprintable()):
        raise StopRun(f"{name} holds characters that no key has: set it again, without line breaks or quotes.")
    return key


def parse_answer(
    status: int, text: str, server: Server, request: Request, key: str = "", headers: Headers | None = None
) -> Answer:
    """The answer in a body of status 200, or the error that a gateway passed on as one.

    The key is redacted, unless it is short: a dummy such as EMPTY may be a word of the reply.
    """
    headers = headers or {}
    if len(key) >= MIN_KEY_FRAGMENT:
        text = redact_key(text, key)
    body, stored_text = parse_json_object(text), replace_unstorable(text[:MAX_BODY_LENGTH])
    if not isinstance(body, dict) and text.strip()[:1] in ("", "{"):
        raise Retry("The server's answer broke off.", http_status=status, body=stored_text)
    if not isinstance(body, dict):
        raise StopRun(
            f"{server.base_url} answered with something other than JSON, as a web page would: "
            "is the base URL right? It usually ends in /v1.",
            http_status=status,
            body=stored_text,
        )
    adapter = find_adapter(server)
    error: object = adapter.fault(body)
    if error:
        error_body = replace(build_embedded_error_body(error, json.dumps({"error": error}), key), body=stored_text)
    elif error := find_embedded_error(body):
        error_body = build_embedded_error_body(error, text, key)
    if error:
        if flawed := salvage_flawed_answer(error_body, parse_answer_usage(body, server, headers)):
            return flawed
        failure = classify_error(error_body, server, request, headers, adapter, ALL_ERROR_WORDS)
        failure.usage = parse_answer_usage(body, server, headers)
        raise failure
    answer = adapter.read(body, headers, request)
    if answer is not None:
        return answer
    raise Retry(
        f"The server answered without a choice: {replace_unstorable(text[:200])}",
        http_status=status,
        body=stored_text,
        usage=parse_answer_usage(body, server, headers),
    )


def find_embedded_error(body: JsonMapping) -> object:
    """The error in a body of status 200: in its first choice, or at the top if it has no reply."""
    choices = body.get("choices")
    first = choices[0] if isinstance(choices, list) and choices and isinstance(choices[0], dict) else {}
    message = first.get("message")
    has_content = isinstance(message, dict) and bool(message.get("content"))
    return first.get("error") or (None if has_content else body.get("error"))


def parse_answer_usage(body: JsonMapping, server: Server, headers: Headers) -> Usage | None:
    usage = body.get("usage")
    return parse_usage(usage, find_adapter(server).cost(usage, headers)) if isinstance(usage, dict) else None


def build_embedded_error_body(error: object, text: str, key: str) -> ErrorBody:
    """The error with the status that it names; one that names none may be transient."""
    code = error.get("code") if isinstance(error, Mapping) else None
    status = int(code) if isinstance(code, (int, str)) and str(code) in HTTP_ERRORS else None
    return parse_error_body(status or 502, text, key, is_known_status=status is not None)


def salvage_flawed_answer(error: ErrorBody, usage: Usage | None = None) -> Answer | None:
    """The reply in an error: one that broke the format, an empty one, or one cut off at the limit."""
    usage = usage or Usage()
    if error.states(ALL_ERROR_WORDS.flawed) and (error.holds(ALL_ERROR_WORDS.cut_off)):
        return Answer("", "length", "", "", error.status, usage)
    if not error.flawed_reply and not error.states(ALL_ERROR_WORDS.flawed):
        return None
    return Answer(error.flawed_reply, "stop", "", "", error.status, usage, is_flawed=True)


def translate_sdk_error(error: Exception, server: Server, request: Request, key: str) -> LLMError:
    if isinstance(error, APIStatusError):
        failure = parse_http_error(error.status_code, error.response.text, server, request, key, error.response.headers)
        if isinstance(failure, Retry) and not failure.busy:
            failure.is_outage = error.status_code in OUTAGE_STATUSES
        return failure
    # The transport's own error: the SDK reports refused, unknown and lost connections all as connect timeouts.
    cause = error.__cause__.__cause__ if error.__cause__ else None
    if isinstance(cause, (ClientConnectorError, ConnectionTimeoutError)):
        return Retry(f"Nobody answers at {server.base_url}: is the address right, and is it up?", unreachable=True)
    if isinstance(cause, ClientError) and not isinstance(cause, ServerTimeoutError):
        return Retry(f"The connection to {server.base_url} broke.", is_outage=True)
    if isinstance(error, (APITimeoutError, TimeoutError)):
        return RequestTimedOut(f"No answer within {server.timeout_seconds:g} seconds.")
    if isinstance(error, APIConnectionError):
        return Retry(f"The connection to {server.base_url} broke.", is_outage=True)
    return Retry(f"The request failed: {type(error).__name__}.")


def parse_http_error(
    status: int, text: str, server: Server, request: Request, key: str = "", headers: Headers | None = None
) -> LLMError:
    error = parse_error_body(status, text, key)
    return classify_error(error, server, request, headers or {}, find_adapter(server), ALL_ERROR_WORDS)


PROBE_TIMEOUT_SECONDS: Final = 5.0


def find_connection_problem(server: Server, *, is_refusal_fine: bool = False) -> str:
    """Why requests to the server would fail, by its list of models; "" if nothing shows it.

    ``is_refusal_fine``: a server that refuses the key, or that has no such list, is up all the same.
    """
    try:
        answer = fetch_server_answer(server, "GET", f"{server_base_url(server)}/models")
    except LLMError as error:
        return "" if is_refusal_fine else str(error)  # the key is not set here: requests report that
    except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as error:
        return f"It does not answer ({' '.join(str(error).split()) or type(error).__name__})."
    if is_refusal_fine:
        return f"It answers {answer.status_code}." if answer.status_code in OUTAGE_STATUSES else ""
    if answer.status_code in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return f"It refuses {server.key_in_words}." if server.has_key else "It requires an API key."
    if answer.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return f"It answers, but with the error {answer.status_code}."
    return ""


def server_getter(server: Server) -> GetPage:
    """A function that fetches a path on the server's host, without following redirects."""
    return lambda path: fetch_server_page(server, "GET", path)


def server_poster(server: Server) -> PostPage:
    return lambda path, body: fetch_server_page(server, "POST", path, body)


def fetch_server_page(server: Server, method: str, path: str, body: JsonMapping | None = None) -> ServerPage | None:
    parts = urlsplit(server.base_url)
    try:
        answer = fetch_server_answer(server, method, f"{parts.scheme}://{parts.netloc}{path}", body)
    except (LLMError, httpx2.HTTPError, httpx2.InvalidURL, OSError):
        return None
    return answer.status_code, dict(answer.headers), parse_json_object(answer.text)


def fetch_server_answer(server: Server, method: str, address: str, body: JsonMapping | None = None) -> httpx2.Response:
    """The server's answer at this address, requested with the key and extras of judges' requests."""
    headers = request_headers(server, server_key(server))
    if not server.has_key:
        headers = {name: value for name, value in headers.items() if name not in find_adapter(server).key_headers("")}
    sent: JsonDict = {"headers": headers, "params": request_query(server) or None, "json": body}
    return httpx2.request(method, address, **sent, timeout=PROBE_TIMEOUT_SECONDS, verify=trusted_certificates())
