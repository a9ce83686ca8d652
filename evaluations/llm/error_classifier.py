"""The meaning of a server's error for the caller: it ends the run, ends this call, or may pass."""

import re
import time
from email.utils import parsedate_to_datetime
from typing import Final

from evaluations.domain.json_values import JsonMapping
from evaluations.domain.judges import CallState, ReplyShape
from evaluations.llm.dialects.adapter import Adapter, ErrorWords, Headers
from evaluations.llm.error_body import ErrorBody, html_title
from evaluations.llm.exchange import (
    MAX_PAUSE_SECONDS,
    ErrorFacts,
    FormatRefused,
    LLMError,
    QuotaExhausted,
    RecordOnCall,
    Request,
    Retry,
    Server,
    SettingRefused,
    StopRun,
)

MAX_WAIT_SECONDS: Final = 3600.0
# How long an endpoint is left alone whose daily limit is reached and that names no time.
QUOTA_PAUSE_SECONDS: Final = 3600.0
# A wait longer than this is for a quota, whatever the server calls it.
SHORT_WAIT_SECONDS: Final = 300.0
OVERLOADED: Final = 529  # of all who ask, not by these requests alone
LIMIT_NAMES: Final = ("max_tokens", "max_completion_tokens")
# A key's owner is blocked for what earlier requests said: no request can succeed, unlike one that a filter blocks.
ACCOUNT_ERRORS: Final = (
    "account has been",
    "account was",
    "account is deactivated",
    "account_deactivated",
    "access_terminated",
)
OPTIONAL_SETTINGS: Final = ("temperature", "top_logprobs", "logprobs", "seed", "reasoning_effort", "max_tokens")
# "14m24.5s", "2h3m", "34074.8s", "41027 seconds"
WAIT_DURATION: Final = re.compile(
    r"(?:try again in|retry in|retry after|please wait|wait|reset(?:s)? (?:in|after)|retrydelay\W{1,5})\s*"
    r"(?:(\d+)\s*h(?:ours?)?\s*)?(?:(\d+)\s*m(?:in(?:utes?)?)?(?!s)\s*)?(?:(\d+(?:\.\d+)?)\s*s(?:ec(?:onds?)?)?)?",
    re.IGNORECASE,
)
# "Limit 6000, Requested 6294"; what was used before is named between them.
REQUESTED_TOKENS: Final = re.compile(r"limit:? *(\d[\d,]*)[^.]*?requested:? *~?(\d[\d,]*)", re.IGNORECASE)
TOO_MANY_TOKENS: Final = re.compile(
    r"\btokens?\b[^.]*\b(?:exceed|larger than|more than|greater than)|\bexceed\w*\b[^.]*\b(?:tokens?|context)\b",
    re.IGNORECASE,
)
RESET_TIME: Final = re.compile(r"x-ratelimit-reset\W{1,6}(\d{10,13})", re.IGNORECASE)


def classify_error(
    said: ErrorBody, server: Server, request: Request, headers: Headers, adapter: Adapter, words: ErrorWords
) -> LLMError:
    """What to do about an answer that is none. ``words`` are those of all dialects: a gateway passes any of them on."""
    said = adapter.inner(said)
    if (own := adapter.meaning(said, server, request, headers)) is not None:
        return own
    status, why = said.status, said.message
    known: ErrorFacts = {"http_status": status, "body": said.body}
    is_request = (400 <= status < 500 and status != 408) or not said.is_known_status
    is_limit = status == 429 or ((status == 403 or not said.is_known_status) and said.states(words.rate))
    if is_request and said.states(words.place):
        return StopRun(
            f"{server.base_url} does not serve the place where the worker runs: use another endpoint, or run the "
            f"worker elsewhere. {server_sentence(why)}",
            **known,
        )
    if is_request and said.states(words.remedy):
        return StopRun(add_remedy(why), **known)
    if is_request and said.states(ACCOUNT_ERRORS):
        return StopRun(f"The account behind the key is blocked. {server_sentence(why)}", **known)
    if is_request and status not in (401, 429) and said.states(words.filter):
        return RecordOnCall(CallState.REFUSED, f"The server's filter refused the prompt: {why}", **known)
    if is_request and said.states(words.budget):
        return StopRun(
            f"The gateway's budget is used up: raise it there and resume the run. {server_sentence(why)}", **known
        )
    if is_request and (status == 402 or said.states(words.credit)):
        return StopRun(
            f"The account behind the key has no credit left: top it up and resume the run. {server_sentence(why)}",
            **known,
        )
    if is_limit and exceeds_rate_limit(said, words):
        return RecordOnCall(
            CallState.TOO_LONG, f"The request is larger than the server's limit a minute: {why}", **known
        )
    if is_limit:
        return classify_rate_limit(said, headers, known, words)
    if said.states(words.wrong_address):
        return StopRun(wrong_address_error(server, why), **known)
    if said.states(words.loading):
        return StopRun(
            f"The server could not load “{request.model}”: free memory there, or make a judge with a smaller model. "
            f"{server_sentence(why)}",
            **known,
        )
    if status == OVERLOADED or (status >= 500 and said.states(words.busy)):
        return Retry(f"The server answered {status}: {why}", after=parse_retry_after(headers), busy=True, **known)
    if is_transient_error(said, words):
        return Retry(f"The server answered {status}: {why}", after=parse_retry_after(headers), **known)
    if status == 401 or said.states(words.key):
        return StopRun(refused_key_error(server, said), **known)
    if 300 <= status < 400 or status in (404, 405, 410):
        return classify_not_found(said, server, request, known, words)
    return classify_bad_request(said, server, request, known, words, adapter)


def is_transient_error(said: ErrorBody, words: ErrorWords) -> bool:
    """Whether the same request may succeed later: not one that the server found invalid, whatever its status."""
    status = said.status
    if status >= 500 and said.states((*words.context, *words.refused, *words.template, *words.system)):
        return False
    if not said.is_known_status and said.states((*words.too_long, *words.key, *words.model)):
        return False
    return status in (408, 409, 425, 498) or (status >= 500 and status != 501) or said.states(words.retry)


def server_sentence(why: str) -> str:
    return f"It says: {why}"


def add_remedy(why: str) -> str:
    if "v1/responses" in why or "not a chat model" in why.lower():
        return f"{server_sentence(why)} Set the endpoint's provider to OpenAI (Responses) and resume the run."
    return server_sentence(why)


def wrong_address_error(server: Server, why: str) -> str:
    return (
        f"There is no chat API at {server.base_url}: is the base URL right? It usually ends in "
        f"/v1. {server_sentence(why)}"
    )


# ---- limits ----------------------------------------------------------------------------------


def exceeds_rate_limit(said: ErrorBody, words: ErrorWords) -> bool:
    """Whether this one request is larger than the limit, so that waiting does not help."""
    if said.states(words.never_fits):
        return True
    found = REQUESTED_TOKENS.search(said.message)
    limit, needed = (int(part.replace(",", "")) for part in found.groups()) if found else (0, 0)
    return needed > limit


def classify_rate_limit(said: ErrorBody, headers: Headers, known: JsonMapping, words: ErrorWords) -> LLMError:
    """Too many requests: for a moment, or for the day."""
    wait = requested_wait(said, headers)
    if said.holds(words.quota) or (wait or 0) > SHORT_WAIT_SECONDS:
        after = min(QUOTA_PAUSE_SECONDS if wait is None else wait, MAX_PAUSE_SECONDS)
        return QuotaExhausted(f"The endpoint's quota is used up. {server_sentence(said.message)}", after=after, **known)
    sentence = f"The server answered {said.status}: {said.message}"
    return Retry(sentence, after=None if wait is None else min(wait, MAX_WAIT_SECONDS), busy=True, **known)


def requested_wait(said: ErrorBody, headers: Headers) -> float | None:
    """Seconds until the server wants to be asked again: from its headers, else from its words."""
    if (after := parse_retry_headers(headers)) is not None:
        return after
    if found := RESET_TIME.search(said.body):
        at = int(found[1]) / (1000 if len(found[1]) > 10 else 1)
        return max(at - time.time(), 0.0)
    for found in WAIT_DURATION.finditer(f"{said.message} {said.body}"):
        hours, minutes, seconds = (float(part) if part else 0.0 for part in found.groups())
        if total := hours * 3600 + minutes * 60 + seconds:
            return total
    return None


def parse_retry_after(headers: Headers) -> float | None:
    """Seconds until the server wants to be asked again, from a number or from a date, an hour at most."""
    seconds = parse_retry_headers(headers)
    return None if seconds is None else min(seconds, MAX_WAIT_SECONDS)


def parse_retry_headers(headers: Headers) -> float | None:
    given, milliseconds = headers.get("retry-after", "").strip(), headers.get("retry-after-ms", "").strip()
    try:
        if milliseconds.isdecimal():
            seconds = int(milliseconds) / 1000
        else:
            seconds = float(given) if given[:1].isdecimal() else parsedate_to_datetime(given).timestamp() - time.time()
    except (TypeError, ValueError):
        return None
    return max(seconds, 0.0)


# ---- refused requests --------------------------------------------------------------------------


def refused_key_error(server: Server, said: ErrorBody) -> str:
    told = f" {server_sentence(said.message)}" if said.body.strip() else ""
    if not server.key_variable:
        return f"{server.base_url} wants a key ({said.status}), and this endpoint names none: add one with a key.{told}"
    return (
        f"{server.base_url} refused the key in {server.key_variable} ({said.status}): set a valid one for the worker."
        f"{told}"
    )


def classify_not_found(
    said: ErrorBody, server: Server, request: Request, known: JsonMapping, words: ErrorWords
) -> LLMError:
    if said.states(("requested parameters",)) and request.shape != ReplyShape.TEXT:
        return format_refused_error(said, request, known)
    if said.states(("no endpoints found", "no endpoints available", "no allowed providers")):
        return StopRun(f"{server.base_url} has nobody who serves “{request.model}” so: {said.message}", **known)
    if said.is_json and (said.states(words.model) or "model" in said.body.lower()):
        return StopRun(unknown_model_error(server, request, said), **known)
    return StopRun(
        f"There is no chat API at {server.base_url} (not found): is the base URL right? It usually ends in /v1.",
        **known,
    )


def unknown_model_error(server: Server, request: Request, said: ErrorBody) -> str:
    return (
        f"{server.base_url} does not know the model “{request.model}”: make a judge with one that it offers. "
        f"{server_sentence(said.message)}"
    )


def classify_bad_request(
    said: ErrorBody, server: Server, request: Request, known: JsonMapping, words: ErrorWords, adapter: Adapter
) -> LLMError:
    """A request that was understood and refused: for its form, for a setting, or for this item alone."""
    why = said.message
    has_system = any(message["role"] == "system" for message in request.messages)
    if has_system and not request.sent_as.system_folded and said.states(words.system):
        return SettingRefused("system", f"The model does not take a system role: {why}", **known)
    if request.shape != ReplyShape.TEXT and (said.states(words.format) or said.param.startswith("response_format")):
        return format_refused_error(said, request, known)
    too_long = RecordOnCall(CallState.TOO_LONG, f"The prompt is too long for the model: {why}", **known)
    refused = RecordOnCall(CallState.REFUSED, f"The server's filter refused the prompt: {why}", **known)
    if said.status == 413 or said.states((*words.context, *words.too_long)):
        return too_long
    if said.states(words.filter):
        return refused
    if said.states((*words.template, *words.system)):
        return StopRun(chat_template_error(why), **known)
    if setting := said.refused_setting(sent_settings(request)):
        return SettingRefused(
            setting,
            f"The server does not take this judge's {setting}: {end_sentence(why)}{setting_advice(said, setting)}",
            instead=alternative_limit_name(adapter.body(request)) if setting == "max_tokens" else "",
            **known,
        )
    if said.param == "model" or said.states(words.model):
        return StopRun(unknown_model_error(server, request, said), **known)
    # A body may repeat what was sent: what it says beside its sentence comes last.
    if TOO_MANY_TOKENS.search(why) or said.holds((*words.context, *words.too_long)):
        return too_long
    if said.holds(words.filter):
        return refused
    if said.status == 403 and html_title(said.body):
        return RecordOnCall(
            CallState.FAILED,
            f"Something in front of {server.base_url}, such as a firewall, turned the request away (403): {why}",
            **known,
        )
    if said.status == 403:
        return StopRun(refused_key_error(server, said), **known)
    return RecordOnCall(CallState.FAILED, f"The server refused the request: {why}", **known)


def chat_template_error(why: str) -> str:
    """The engine of templates quotes its source at length before it says what is wrong."""
    sentence = " ".join(why.rpartition("Jinja Exception:")[2].split())
    return (
        "The model's chat template does not take a judge's messages: serve an instruction-tuned model, or start the "
        f"server with another template. {server_sentence(sentence)}"
    )


def alternative_limit_name(body: JsonMapping) -> str:
    """The name of the limit that was not sent; "" where the dialect has one of its own."""
    sent = [name for name in LIMIT_NAMES if name in body]
    return next((name for name in LIMIT_NAMES if sent and name not in sent), "")


def sent_settings(request: Request) -> list[str]:
    sent = [name for name in OPTIONAL_SETTINGS if name != "top_logprobs" and request.sends(name)]
    if "logprobs" in sent and "top_logprobs" not in request.sent_as.left_out:
        sent.insert(0, "top_logprobs")
    return sent


def format_refused_error(said: ErrorBody, request: Request, known: JsonMapping) -> FormatRefused:
    return FormatRefused(
        request.shape, f"The server does not take structured output ({request.shape}): {said.message}", **known
    )


def end_sentence(sentence: str) -> str:
    return sentence if sentence.endswith((".", "!", "?")) else f"{sentence}."


def setting_advice(said: ErrorBody, setting: str) -> str:
    """What a person can do who reads only a parameter's name."""
    return " Create a judge without it." if setting != "max_tokens" else ""
