"""The meaning of a server's error for the caller: end the run, end this call, or retry."""

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
    FormatRefused,
    LLMError,
    RecordOnCall,
    Request,
    Server,
    SettingRefused,
    StopRun,
)

MAX_WAIT_SECONDS: Final = 3600.0
# The pause of an endpoint whose daily limit is reached, if it names no time.
QUOTA_PAUSE_SECONDS: Final = 3600.0
# Longer waits mean a quota, whatever the server calls it.
SHORT_WAIT_SECONDS: Final = 300.0
OVERLOADED: Final = 529  # by all clients, not by these requests alone
LIMIT_NAMES: Final = ("max_tokens", "max_completion_tokens")
# The key's owner is blocked for earlier requests: no request can succeed, unlike after a filter's refusal.
ACCOUNT_ERRORS: Final = (
    *("account has been", "account was", "account is deactivated", "account_deactivated", "access_terminated"),
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
    error: ErrorBody, server: Server, request: Request, headers: Headers, adapter: Adapter, words: ErrorWords
) -> LLMError:
    """Classify an error by what to do about it. ``words``: of all dialects, since gateways pass on any of them."""
    error = adapter.inner(error)
    if (own := adapter.meaning(error, server, request, headers)) is not None:
        return own
    status, why = error.status, error.message
    is_request = (400 <= status < 500 and status != 408) or not error.is_known_status
    is_limit = status == 429 or ((status == 403 or not error.is_known_status) and error.states(words.rate))
    if is_request and error.states(words.place):
        return error.stop(
            f"{server.base_url} does not serve the place where the worker runs: use another endpoint, or run the "
            "worker elsewhere."
        )
    if is_request and error.states(words.remedy):
        return StopRun(add_remedy(why), **error.kept)
    if is_request and error.states(ACCOUNT_ERRORS):
        return error.stop("The account behind the key is blocked.")
    if is_request and status not in (401, 429) and error.states(words.filter):
        return error.filtered_prompt()
    if is_request and error.states(words.budget):
        return error.stop("The gateway's budget is used up: raise it there and resume the run.")
    if is_request and (status == 402 or error.states(words.credit)):
        return error.stop("The account behind the key has no credit left: top it up and resume the run.")
    if is_limit and exceeds_rate_limit(error, words):
        return RecordOnCall(
            CallState.TOO_LONG, f"The request is larger than the server's limit a minute: {why}", **error.kept
        )
    if is_limit:
        return classify_rate_limit(error, headers, words)
    if error.states(words.wrong_address):
        return error.stop(f"There is no chat API at {server.base_url}: is the base URL right? It usually ends in /v1.")
    if error.states(words.loading):
        return error.stop(
            f"The server could not load “{request.model}”: free memory there, or make a judge with a smaller model."
        )
    if status == OVERLOADED or (status >= 500 and error.states(words.busy)):
        return error.retry(after=parse_retry_after(headers), busy=True)
    if is_transient_error(error, words):
        return error.retry(after=parse_retry_after(headers))
    if status == 401 or error.states(words.key):
        return StopRun(refused_key_error(server, error), **error.kept)
    if 300 <= status < 400 or status in (404, 405, 410):
        return classify_not_found(error, server, request, words)
    return classify_bad_request(error, server, request, words, adapter)


def is_transient_error(error: ErrorBody, words: ErrorWords) -> bool:
    """Whether the same request may succeed later; an invalid one never does, whatever its status."""
    status = error.status
    if status >= 500 and error.states((*words.context, *words.refused, *words.template, *words.system)):
        return False
    if not error.is_known_status and error.states((*words.too_long, *words.key, *words.model)):
        return False
    return status in (408, 409, 425, 498) or (status >= 500 and status != 501) or error.states(words.retry)


def add_remedy(why: str) -> str:
    if "v1/responses" in why or "not a chat model" in why.lower():
        return f"It says: {why} Set the endpoint's provider to OpenAI (Responses) and resume the run."
    return f"It says: {why}"


def exceeds_rate_limit(error: ErrorBody, words: ErrorWords) -> bool:
    """Whether this request alone exceeds the limit, so that waiting does not help."""
    if error.states(words.never_fits):
        return True
    match = REQUESTED_TOKENS.search(error.message)
    limit, needed = (int(part.replace(",", "")) for part in match.groups()) if match else (0, 0)
    return needed > limit


def classify_rate_limit(error: ErrorBody, headers: Headers, words: ErrorWords) -> LLMError:
    """Too many requests: for a moment, or for the day."""
    wait = parse_requested_wait(error, headers)
    if error.holds(words.quota) or (wait or 0) > SHORT_WAIT_SECONDS:
        return error.exhausted_quota(min(QUOTA_PAUSE_SECONDS if wait is None else wait, MAX_PAUSE_SECONDS))
    return error.retry(after=None if wait is None else min(wait, MAX_WAIT_SECONDS), busy=True)


def parse_requested_wait(error: ErrorBody, headers: Headers) -> float | None:
    """Seconds until the server wants the next request, by its headers, else by its message."""
    if (after := parse_retry_headers(headers)) is not None:
        return after
    if match := RESET_TIME.search(error.body):
        at = int(match[1]) / (1000 if len(match[1]) > 10 else 1)
        return max(at - time.time(), 0.0)
    for match in WAIT_DURATION.finditer(f"{error.message} {error.body}"):
        hours, minutes, seconds = (float(part) if part else 0.0 for part in match.groups())
        if total := hours * 3600 + minutes * 60 + seconds:
            return total
    return None


def parse_retry_after(headers: Headers) -> float | None:
    """Seconds until the server wants the next request, from a number or a date; at most an hour."""
    seconds = parse_retry_headers(headers)
    return None if seconds is None else min(seconds, MAX_WAIT_SECONDS)


def parse_retry_headers(headers: Headers) -> float | None:
    after, milliseconds = headers.get("retry-after", "").strip(), headers.get("retry-after-ms", "").strip()
    try:
        if milliseconds.isdecimal():
            seconds = int(milliseconds) / 1000
        else:
            seconds = float(after) if after[:1].isdecimal() else parsedate_to_datetime(after).timestamp() - time.time()
    except (TypeError, ValueError):
        return None
    return max(seconds, 0.0)


def refused_key_error(server: Server, error: ErrorBody) -> str:
    sentence = f" It says: {error.message}" if error.body.strip() else ""
    if not server.has_key:
        return f"{server.base_url} requires an API key ({error.status}): add one to the endpoint.{sentence}"
    remedy = "set a valid one for the worker." if server.key_variable else "replace it on the endpoint's page."
    return f"{server.base_url} refused {server.key_in_words} ({error.status}): {remedy}{sentence}"


def classify_not_found(error: ErrorBody, server: Server, request: Request, words: ErrorWords) -> LLMError:
    if error.states(("requested parameters",)) and request.shape != ReplyShape.TEXT:
        return format_refused_error(error, request)
    if error.states(("no endpoints found", "no endpoints available", "no allowed providers")):
        return StopRun(f"{server.base_url} has nobody who serves “{request.model}” so: {error.message}", **error.kept)
    if error.is_json and (error.states(words.model) or "model" in error.body.lower()):
        return unknown_model_error(server, request, error)
    return StopRun(
        f"There is no chat API at {server.base_url} (not found): is the base URL right? It usually ends in /v1.",
        **error.kept,
    )


def unknown_model_error(server: Server, request: Request, error: ErrorBody) -> StopRun:
    return error.stop(
        f"{server.base_url} does not know the model “{request.model}”: make a judge with one that it offers."
    )


def classify_bad_request(
    error: ErrorBody, server: Server, request: Request, words: ErrorWords, adapter: Adapter
) -> LLMError:
    """A valid request that was refused: for its format, for a setting, or for this item only."""
    why = error.message
    has_system = any(message["role"] == "system" for message in request.messages)
    if has_system and not request.request_shape.system_folded and error.states(words.system):
        return SettingRefused("system", f"The model does not take a system role: {why}", **error.kept)
    if request.shape != ReplyShape.TEXT and (error.states(words.format) or error.param.startswith("response_format")):
        return format_refused_error(error, request)
    too_long = RecordOnCall(CallState.TOO_LONG, f"The prompt is too long for the model: {why}", **error.kept)
    if error.status == 413 or error.states((*words.context, *words.too_long)):
        return too_long
    if error.states(words.filter):
        return error.filtered_prompt()
    if error.states((*words.template, *words.system)):
        return StopRun(chat_template_error(why), **error.kept)
    if setting := error.refused_setting(list_sent_settings(request)):
        is_limit = setting == "max_tokens"
        sentence = why if why.endswith((".", "!", "?")) else f"{why}."
        return SettingRefused(
            setting,
            f"The server does not take this judge's {setting}: {sentence}"
            f"{'' if is_limit else ' Create a judge without it.'}",
            instead=alternative_limit_name(adapter.body(request)) if is_limit else "",
            **error.kept,
        )
    if error.param == "model" or error.states(words.model):
        return unknown_model_error(server, request, error)
    # A body may repeat the request, so it is searched last.
    if TOO_MANY_TOKENS.search(why) or error.holds((*words.context, *words.too_long)):
        return too_long
    if error.holds(words.filter):
        return error.filtered_prompt()
    if error.status == 403 and html_title(error.body):
        return RecordOnCall(
            CallState.FAILED,
            f"Something in front of {server.base_url}, such as a firewall, turned the request away (403): {why}",
            **error.kept,
        )
    if error.status == 403:
        return StopRun(refused_key_error(server, error), **error.kept)
    return RecordOnCall(CallState.FAILED, f"The server refused the request: {why}", **error.kept)


def chat_template_error(why: str) -> str:
    """The template engine quotes its source at length before its message."""
    sentence = " ".join(why.rpartition("Jinja Exception:")[2].split())
    return (
        "The model's chat template does not take a judge's messages: serve an instruction-tuned model, or start the "
        f"server with another template. It says: {sentence}"
    )


def alternative_limit_name(body: JsonMapping) -> str:
    """The limit's name that was not sent; "" if the dialect has its own."""
    sent = [name for name in LIMIT_NAMES if name in body]
    return next((name for name in LIMIT_NAMES if sent and name not in sent), "")


def list_sent_settings(request: Request) -> list[str]:
    sent = [name for name in OPTIONAL_SETTINGS if name != "top_logprobs" and request.sends(name)]
    if "logprobs" in sent and "top_logprobs" not in request.request_shape.left_out:
        sent.insert(0, "top_logprobs")
    return sent


def format_refused_error(error: ErrorBody, request: Request) -> FormatRefused:
    return FormatRefused(
        request.shape, f"The server does not take structured output ({request.shape}): {error.message}", **error.kept
    )
