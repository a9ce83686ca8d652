"""The check: one tiny request that finds what an endpoint accepts for a model.

A judge of that model starts from the result; its first verdict confirms it.
"""

import asyncio
import json
import re
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Final
from urllib.parse import urlsplit

from django.db import transaction
from django.utils import timezone

from evaluations.audit.events import record_event
from evaluations.domain.errors import InputRefused
from evaluations.domain.json_values import JsonDict
from evaluations.domain.judges import DIALECT_NAMES, Dialect, ReplyShape, RequestShape
from evaluations.domain.texts import Message
from evaluations.judges.endpoints.check_spending import CheckMeter, charge_check
from evaluations.judges.endpoints.selectors import latest_model, server_for_endpoint
from evaluations.llm.client import connect_llm, server_getter, server_poster
from evaluations.llm.dialects.registry import find_adapter, hosted_dialect
from evaluations.llm.exchange import (
    SHAPES_TO_TRY,
    Answer,
    FormatRefused,
    LLMError,
    RecordOnCall,
    Request,
    SendRequest,
    Server,
    SettingRefused,
    adapt_to_refusal,
)
from evaluations.llm.list_prices import find_list_price
from evaluations.llm.server_detection import DetectedServer, detect_server
from evaluations.llm.token_rates import TokenRates, profile_prompt
from evaluations.models.judges import Endpoint, EndpointCheck
from evaluations.net.addresses import check_base_url, check_key_variable, is_local_address

CHECK_MAX_TOKENS: Final = 512  # tokens of the reply, reasoning included
MAX_TRIES: Final = 12
QUESTION_SECONDS: Final = 60.0
LONG_SENTENCES: Final = 900
CHECK_SCHEMA: Final = {
    "type": "object",
    "properties": {"choice": {"type": "string", "enum": ["A", "B"]}},
    "required": ["choice"],
    "additionalProperties": False,
}
CHECK_QUESTION: Final[tuple[Message, ...]] = (
    {"role": "system", "content": "You compare two answers to a question. Answer with one JSON object."},
    {
        "role": "user",
        "content": 'How much is 2 + 2? Answer A: "4". Answer B: "5". Which answer is right? '
        'Reply with {"choice": "A"} or {"choice": "B"}.',
    },
)
HEALTH_OK, HEALTH_WARNING, HEALTH_PROBLEM = "ok", "warning", "problem"
SHAPE_DESCRIPTIONS: Final = {
    ReplyShape.JSON_SCHEMA: "JSON schema (strict)",
    ReplyShape.JSON_OBJECT: "JSON object, without a schema",
    ReplyShape.TEXT: "plain text: the prompt alone asks for the format",
}
NOT_IN_PROTOCOL: Final = "the provider's API does not have it"


@dataclass(frozen=True)
class CheckFinding:
    """One line of the result. ``do`` says what to do about it; "" if nothing."""

    about: str
    found: str
    health: str = HEALTH_OK
    do: str = ""


@dataclass(frozen=True)
class CheckResult:
    """The result. ``shape`` and ``request_shape`` are None if no request was answered."""

    findings: tuple[CheckFinding, ...]
    dialect: Dialect
    base_url: str
    model: str
    models: tuple[str, ...] = ()
    shape: ReplyShape | None = None
    request_shape: RequestShape | None = None
    slots: int | None = None
    context_tokens: int | None = None
    tokens_per_byte: float | None = None
    latency_ms: int | None = None
    is_cut: bool | None = None

    @property
    def problem(self) -> CheckFinding | None:
        return next((finding for finding in self.findings if finding.health == HEALTH_PROBLEM), None)

    def as_json(self) -> JsonDict:
        return {**asdict(self), "request_shape": self.request_shape.as_json() if self.request_shape else None}


@dataclass
class TinyRequestOutcome:
    """The tiny request as it was finally sent, and its answer or error."""

    request: Request
    refused: dict[str, str] = field(default_factory=dict)
    answer: Answer | None = None
    error: LLMError | None = None
    latency_ms: int | None = None
    limit_name: str = ""


def perform_check(
    server: Server, model: str, *, endpoint: Endpoint | None = None, long: bool | None = None
) -> CheckResult:
    """Identify the server, then send the model one tiny question; ``long``: a long prompt as well.

    By default only servers on this machine or network get the long prompt: it costs nothing there. ``endpoint`` is
    charged; InputRefused if its daily budget does not cover the test.
    """
    get = server_getter(server)
    detected = detect_server(server.base_url, get, server_poster(server), hosted_dialect(server.base_url))
    server = replace(server, dialect=server.dialect or (detected.dialect if detected else None))
    models = (detected.model_names if detected else None) or ()
    model = model or choose_test_model(server.base_url, models)
    result = CheckResult(
        findings=tuple(server_findings(server, detected, model)),
        dialect=find_adapter(server).dialect,
        base_url=server.base_url,
        model=model,
        models=models,
        slots=detected.slots if detected else None,
        context_tokens=detected.context_tokens.get(model) if detected else None,
    )
    if detected is None and get(urlsplit(server.base_url).path or "/") is None:
        silent = f"No answer from {server.base_url}."
        unreachable = CheckFinding("Server", silent, HEALTH_PROBLEM, "Start the server, or correct the base URL.")
        return replace(result, findings=(unreachable,))
    if not model:
        unnamed = "The server lists no models."
        finding = CheckFinding("Model", unnamed, HEALTH_PROBLEM, "Enter a model and test again.")
        return replace(result, findings=(*result.findings, finding))
    is_long = is_local_address(server.base_url) if long is None else long
    tiny = make_tiny_request(model, find_adapter(server).lacks)
    with charge_check(endpoint, model, [tiny, make_long_request(tiny)] if is_long else [tiny]) as meter:
        return asyncio.run(run_check_requests(server, result, tiny, meter, is_long))


# Models that do not chat, by their usual names.
NO_CHAT_MODEL: Final = re.compile(
    r"embed|whisper|tts|audio|speech|transcri|realtime|image|dall-e|sora|veo|imagen|moderation|guard|rerank|davinci|babbage",
    re.IGNORECASE,
)


def choose_test_model(base_url: str, models: Sequence[str]) -> str:
    """A model for the tiny request: the cheapest with a list price, else the first that chats; "" without models."""
    chatting = [model for model in models if not NO_CHAT_MODEL.search(model)] or list(models)
    priced = [(line.tokens_out, model) for model in chatting if (line := find_list_price(base_url, model))]
    return min(priced)[1] if priced else next(iter(chatting), "")


async def run_check_requests(
    server: Server, result: CheckResult, request: Request, meter: CheckMeter, long: bool
) -> CheckResult:
    try:
        async with connect_llm(server) as send_uncounted:
            send = meter.count_requests(send_uncounted)
            tiny = await send_tiny_request(send, request)
            tiny.limit_name = find_limit_name(find_adapter(server).body(tiny.request))
            is_cut = await is_long_prompt_cut(send, tiny) if long and tiny.answer else None
    except LLMError as error:  # no key, or no usable address
        return add_failed_request(result, error)
    if tiny.answer is None:
        return add_failed_request(result, tiny.error)
    rate = tokens_per_byte(tiny)
    return replace(
        result,
        findings=(*result.findings, *answer_findings(tiny, tiny.answer), *length_finding(is_cut, rate)),
        shape=tiny.request.shape,
        request_shape=tiny.request.request_shape,
        tokens_per_byte=rate,
        latency_ms=tiny.latency_ms,
        is_cut=is_cut,
    )


def add_failed_request(result: CheckResult, error: LLMError | None) -> CheckResult:
    failed = CheckFinding("Request", str(error), HEALTH_PROBLEM, check_remedy(result))
    return replace(result, findings=(*result.findings, failed))


def find_limit_name(body: Mapping[str, object]) -> str:
    """The name of the token limit in a request body, or in an object inside it."""
    for name, value in body.items():
        if value == CHECK_MAX_TOKENS and not isinstance(value, bool):
            return name
        if isinstance(value, Mapping) and (inside := find_limit_name(value)):
            return inside
    return ""


def make_tiny_request(model: str, lacks: Sequence[str]) -> Request:
    """The tiny question with all settings that a judge may have.

    ``lacks``: settings that the protocol does not have; they are omitted from the start.
    """
    return Request(
        CHECK_QUESTION,
        model,
        temperature=0.0,
        max_tokens=CHECK_MAX_TOKENS,
        seed=1,
        shape=SHAPES_TO_TRY[0],
        schema=CHECK_SCHEMA,
        logprobs=True,
        request_shape=RequestShape(left_out=tuple(lacks)),
    )


def make_long_request(tiny: Request) -> Request:
    """The tiny request with about 9,000 tokens before the question."""
    text = " ".join(
        f"Sentence {n} says that the number {n * 7919 % 10_007} is written here." for n in range(LONG_SENTENCES)
    )
    messages: list[Message] = [
        *CHECK_QUESTION[:1],
        {"role": "user", "content": f"{text}\n\n{CHECK_QUESTION[1]['content']}"},
    ]
    return replace(tiny, messages=messages, max_tokens=16)


async def send_tiny_request(send: SendRequest, request: Request) -> TinyRequestOutcome:
    """Send the tiny question, adapted after each refusal."""
    tiny = TinyRequestOutcome(request)
    for _ in range(MAX_TRIES):
        began = time.monotonic()
        try:
            tiny.answer = await send(tiny.request)
            tiny.latency_ms = round((time.monotonic() - began) * 1000)
            return tiny
        except FormatRefused as error:
            later = SHAPES_TO_TRY[SHAPES_TO_TRY.index(tiny.request.shape) + 1 :]
            tiny.refused[str(tiny.request.shape)] = str(error)
            if not later:
                tiny.error = error
                return tiny
            tiny.request = replace(tiny.request, shape=later[0])
        except SettingRefused as error:
            changed = adapt_to_refusal(tiny.request.request_shape, error)
            tiny.error = error
            if changed is None:
                return tiny
            tiny.refused[error.setting] = str(error)
            tiny.request = replace(tiny.request, request_shape=changed)
        except LLMError as error:
            tiny.error = error
            return tiny
    return tiny


def find_model_problem(endpoint: Endpoint, model: str) -> str:
    """Why the model does not answer the tiny question, as a sentence; "" if it does.

    InputRefused if the endpoint's daily budget does not cover it.
    """
    server = replace(server_for_endpoint(endpoint), timeout_seconds=QUESTION_SECONDS)
    request = make_tiny_request(model, find_adapter(server).lacks)

    async def main(meter: CheckMeter) -> TinyRequestOutcome:
        async with connect_llm(server) as send:
            return await send_tiny_request(meter.count_requests(send), request)

    with charge_check(endpoint, model, [request]) as meter:
        try:
            tiny = asyncio.run(main(meter))
        except LLMError as error:  # no key, or no usable address
            tiny = TinyRequestOutcome(request, error=error)
    return "" if tiny.answer else str(tiny.error)


async def is_long_prompt_cut(send: SendRequest, tiny: TinyRequestOutcome) -> bool | None:
    """Whether the server silently cuts a prompt of about 9,000 tokens; None if it reports no token count."""
    request = make_long_request(tiny.request)
    try:
        answer = await send(request)
    except RecordOnCall:
        return False  # it says that the prompt is too long
    except LLMError:
        return None
    if answer.tokens_in is None:
        return None
    return TokenRates().cut(profile_prompt(request.messages), answer.tokens_in) is not None


def server_findings(server: Server, detected: DetectedServer | None, model: str) -> list[CheckFinding]:
    title = DIALECT_NAMES[find_adapter(server).dialect]
    if detected is None:
        return [CheckFinding("Server", f"not recognized, treated as {title[0].lower()}{title[1:]}")]
    description = f"{title} {detected.version}".strip()
    if detected.base_url.rstrip("/") != server.base_url.rstrip("/"):
        elsewhere = f"{description}, with its API at {detected.base_url}"
        return [CheckFinding("Server", elsewhere, HEALTH_WARNING, "Use this base URL.")]
    findings = [CheckFinding("Server", description)]
    if names := detected.model_names:
        findings.append(CheckFinding("Models", f"{len(names)} offered: {', '.join(names[:5])}"))
    if detected.slots:
        findings.append(CheckFinding("Slots", f"{detected.slots} concurrent requests"))
    if context := detected.context_tokens.get(model):
        findings.append(CheckFinding("Context", f"{context:,} tokens per request"))
    return findings


def answer_findings(tiny: TinyRequestOutcome, answer: Answer) -> list[CheckFinding]:
    request, refused = tiny.request, tiny.refused
    left_out = request.request_shape.left_out
    findings = [shape_finding(tiny, answer), CheckFinding("Model", answer.model or request.model)]
    findings.append(limit_finding(answer, tiny.limit_name))
    for name, words in (("temperature", "Temperature"), ("seed", "Seed")):
        if name in left_out:
            findings.append(CheckFinding(words, f"left out: {refused.get(name, NOT_IN_PROTOCOL)}", HEALTH_WARNING))
        else:
            findings.append(CheckFinding(words, "sent"))
    role = "folded into the first user message" if request.request_shape.system_folded else "sent as a system message"
    findings.append(CheckFinding("System text", role))
    findings.append(logprobs_finding(request, answer))
    if answer.usage.tokens_reasoning or answer.reasoning:
        findings.append(CheckFinding("Reasoning", f"{answer.usage.tokens_reasoning or 'some'} tokens before the reply"))
    if answer.usage.cost is not None:
        findings.append(CheckFinding("Cost", "reported with each answer"))
    findings.append(CheckFinding("Latency", f"{tiny.latency_ms:,} ms"))
    return findings


def shape_finding(tiny: TinyRequestOutcome, answer: Answer) -> CheckFinding:
    words = SHAPE_DESCRIPTIONS[tiny.request.shape]
    try:
        keeps = json.loads(answer.text)["choice"] in ("A", "B")
    except (ValueError, TypeError, KeyError):
        keeps = False
    if tiny.request.shape == ReplyShape.JSON_SCHEMA and not keeps:
        reply = " ".join(answer.text.split())[:120] or "nothing"
        do = "Expect unparsable replies. Try a higher token limit or another model."
        return CheckFinding("Output format", f"{words}, but the reply did not follow it: {reply}", HEALTH_WARNING, do)
    return CheckFinding("Output format", words)


def limit_finding(answer: Answer, limit: str) -> CheckFinding:
    if not limit:
        return CheckFinding("Token limit", "left out", HEALTH_WARNING, "Budgets cannot be guaranteed without a limit.")
    tokens = answer.usage.tokens_out
    if tokens is not None and tokens > CHECK_MAX_TOKENS:
        do = "Set the max output tokens in the model's price; budgets need it."
        broken = f"sent as {limit}, but exceeded: {tokens:,} of {CHECK_MAX_TOKENS}"
        return CheckFinding("Token limit", broken, HEALTH_WARNING, do)
    return CheckFinding("Token limit", f"sent as {limit}")


def logprobs_finding(request: Request, answer: Answer) -> CheckFinding:
    if "logprobs" in request.request_shape.left_out:
        return CheckFinding("Log probabilities", "not supported")
    few = " (the 5 likeliest)" if "top_logprobs" in request.request_shape.left_out else ""
    return CheckFinding("Log probabilities", f"returned{few}" if answer.logprobs else "accepted, but not returned")


def length_finding(is_cut: bool | None, rate: float | None) -> list[CheckFinding]:
    findings = [CheckFinding("Tokens per byte", f"{rate:.2f}")] if rate else []
    if is_cut:
        do = "Give the server a larger context (Ollama: set OLLAMA_CONTEXT_LENGTH, or num_ctx in the Modelfile)."
        cut = "cut silently: such calls fail as too long"
        return [*findings, CheckFinding("Long prompts", cut, HEALTH_PROBLEM, do)]
    return [*findings, CheckFinding("Long prompts", "not tested" if is_cut is None else "read in full, or refused")]


def tokens_per_byte(tiny: TinyRequestOutcome) -> float | None:
    if tiny.answer is None or not tiny.answer.tokens_in:
        return None
    size = sum(len(message["content"].encode()) for message in tiny.request.messages)
    return round(tiny.answer.tokens_in / size, 4)


def check_remedy(result: CheckResult) -> str:
    if result.models and result.model not in result.models:
        return f"Use a model that the server offers: {', '.join(result.models[:8])}."
    return "Check the base URL, key and model, then test again."


def find_endpoint_by_name(name: str) -> Endpoint:
    endpoint = Endpoint.objects.filter(name=name).first()
    if endpoint is None:
        names = ", ".join(Endpoint.objects.order_by("name").values_list("name", flat=True)[:20])
        raise InputRefused(f"There is no endpoint “{name}”. {f'There are: {names}.' if names else 'Add one first.'}")
    return endpoint


def find_endpoint_at(server: Server) -> Endpoint | None:
    """The endpoint of this address and key, whose day a test is part of also where it is not named."""
    same = Endpoint.objects.filter(base_url=server.base_url, key_variable=server.key_variable, encrypted_key="")
    return same.order_by("pk").first()


def server_for_check(endpoint: Endpoint | None, base_url: str | None, key_variable: str) -> Server:
    if endpoint is not None:
        return server_for_endpoint(endpoint)
    if not base_url:
        raise InputRefused("Name an endpoint, or give the address of a server with --base-url.")
    return Server(check_base_url(base_url), check_key_variable(key_variable))


@transaction.atomic
def store_check(endpoint: Endpoint, result: CheckResult, waiting: EndpointCheck | None = None) -> EndpointCheck:
    """Store the latest check of this model at this endpoint, replacing the pending one.

    A recognised dialect becomes the endpoint's. A model that answers ends a pause for a quota.
    """
    if waiting is not None and waiting.model != result.model:
        waiting.delete()
    columns = {"checked_at": timezone.now(), "result": result.as_json()}
    row, _ = EndpointCheck.objects.update_or_create(endpoint=endpoint, model=result.model, defaults=columns)
    mine = Endpoint.objects.filter(pk=endpoint.pk)
    if result.dialect != Dialect.GENERIC and mine.filter(dialect="").update(dialect=result.dialect):
        record_event("changed", endpoint, user=None, evaluation=None, after={"dialect": str(result.dialect)})
    if result.request_shape is not None:
        mine.exclude(pause_reason="").update(paused_until=None, pause_reason="")
    return row


def run_requested_check(check_id: int) -> None:
    """Perform a check that somebody requested on a page."""
    waiting = EndpointCheck.objects.select_related("endpoint").filter(pk=check_id).first()
    if waiting is None or "waiting_since" not in waiting.result:
        return
    endpoint, server = waiting.endpoint, server_for_endpoint(waiting.endpoint)
    try:
        result = perform_check(server, waiting.model or latest_model(endpoint), endpoint=endpoint)
    except InputRefused as refused:
        finding = CheckFinding("Budget", str(refused), HEALTH_PROBLEM)
        result = CheckResult((finding,), find_adapter(server).dialect, server.base_url, waiting.model)
    store_check(endpoint, result, waiting)
