"""The handshake: what an endpoint takes for a model, found with one tiny request, and a long one where that is asked.

What it finds is a table for people, and where a judge of that model begins: its first verdict confirms it.
"""

import asyncio
import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Final
from urllib.parse import urlsplit

from django.db import transaction
from django.utils import timezone

from evaluations.domain import DIALECTS_IN_WORDS, Dialect, InputRefused, Message, ReplyShape, SentAs
from evaluations.judge.token_rates import TokenRates, profile_of
from evaluations.models import Endpoint, Handshake
from evaluations.outside.addresses import checked_base_url, checked_key_variable, is_local_address
from evaluations.outside.dialects import adapter_of
from evaluations.outside.errors import FormatRefused, LLMError, RecordOnCall, SettingRefused
from evaluations.outside.exchange import Answer, Ask, Request, Server
from evaluations.outside.llm import connected
from evaluations.outside.reaching import getter_of, poster_of
from evaluations.outside.recognition import Recognized, recognized
from evaluations.services.judging.connecting import usual_model
from evaluations.services.judging.conversing import server_of_endpoint
from evaluations.services.judging.probing import TRIED_IN_TURN, rewritten
from evaluations.services.recording import record

LIMIT: Final = 512  # tokens of the reply, the reasoning of a model that thinks included
MOST_TRIES: Final = 12
QUESTION_SECONDS: Final = 60.0
LONG_SENTENCES: Final = 900
SCHEMA: Final = {
    "type": "object",
    "properties": {"choice": {"type": "string", "enum": ["A", "B"]}},
    "required": ["choice"],
    "additionalProperties": False,
}
QUESTION: Final[tuple[Message, ...]] = (
    {"role": "system", "content": "You compare two answers to a question. Answer with one JSON object."},
    {
        "role": "user",
        "content": 'How much is 2 + 2? Answer A: "4". Answer B: "5". Which answer is right? '
        'Reply with {"choice": "A"} or {"choice": "B"}.',
    },
)
OK, WARNING, PROBLEM = "ok", "warning", "problem"
SHAPES_IN_WORDS: Final = {
    ReplyShape.JSON_SCHEMA: "JSON schema (strict)",
    ReplyShape.JSON_OBJECT: "JSON object, without a schema",
    ReplyShape.TEXT: "plain text: the prompt alone asks for the format",
}
NOT_IN_PROTOCOL: Final = "the provider's API does not have it"


@dataclass(frozen=True)
class Finding:
    """One line of the table. ``do`` says what to do about it; empty where nothing is to be done."""

    about: str
    found: str
    health: str = OK
    do: str = ""


@dataclass(frozen=True)
class Result:
    """What was found. ``shape`` and ``sent_as`` are None where no request was answered."""

    findings: tuple[Finding, ...]
    dialect: Dialect
    base_url: str
    model: str
    models: tuple[str, ...] = ()
    shape: ReplyShape | None = None
    sent_as: SentAs | None = None
    slots: int | None = None
    context_tokens: int | None = None
    tokens_per_byte: float | None = None
    latency_ms: int | None = None
    is_cut: bool | None = None

    @property
    def problem(self) -> Finding | None:
        return next((one for one in self.findings if one.health == PROBLEM), None)

    def as_json(self) -> dict[str, Any]:
        return {**asdict(self), "sent_as": self.sent_as.as_json() if self.sent_as else None}


@dataclass
class Tried:
    """The tiny request as it was written in the end, and what came back."""

    request: Request
    refused: dict[str, str] = field(default_factory=dict)
    answer: Answer | None = None
    error: LLMError | None = None
    latency_ms: int | None = None
    limit_name: str = ""


def shake_hands(server: Server, model: str, *, long: bool | None = None) -> Result:
    """Ask the server who it is, and the model one tiny question; ``long``: a long prompt too.

    By default a long prompt is sent to servers on this machine or network alone, where it costs nothing.
    """
    get = getter_of(server)
    known = recognized(server.base_url, get, poster_of(server))
    server = replace(server, dialect=server.dialect or (known.dialect if known else None))
    offered = (known.model_names if known else None) or ()
    named = model or next(iter(offered), "")
    found = of_server(server, known, named)
    result = Result(
        findings=(),
        dialect=adapter_of(server).dialect,
        base_url=server.base_url,
        model=named,
        models=offered,
        slots=known.slots if known else None,
        context_tokens=known.context_tokens.get(named) if known else None,
    )
    if known is None and get(urlsplit(server.base_url).path or "/") is None:
        nobody = Finding(
            "Server", f"Nobody answers at {server.base_url}.", PROBLEM, "Start it, or correct the address."
        )
        return replace(result, findings=(nobody,))
    if not named:
        found.append(Finding("Model", "No model was named, and the server lists none.", PROBLEM, "Name a model."))
        return replace(result, findings=tuple(found))
    is_long = is_local_address(server.base_url) if long is None else long
    return asyncio.run(asked(server, replace(result, findings=tuple(found)), is_long))


async def asked(server: Server, result: Result, long: bool) -> Result:
    try:
        async with connected(server) as ask:
            tried = await tiny(ask, result.model, adapter_of(server).lacks)
            tried.limit_name = limit_name_in(adapter_of(server).body(tried.request))
            is_cut = await long_is_cut(ask, tried) if long and tried.answer else None
    except LLMError as error:  # no key, or no usable address
        return replace(result, findings=(*result.findings, Finding("Request", str(error), PROBLEM, cure_of(result))))
    if tried.answer is None:
        failed = Finding("Request", str(tried.error), PROBLEM, cure_of(result))
        return replace(result, findings=(*result.findings, failed))
    rate = tokens_per_byte(tried)
    return replace(
        result,
        findings=(*result.findings, *of_answer(tried, tried.answer), *of_length(is_cut, rate)),
        shape=tried.request.shape,
        sent_as=tried.request.sent_as,
        tokens_per_byte=rate,
        latency_ms=tried.latency_ms,
        is_cut=is_cut,
    )


def limit_name_in(body: Mapping[str, Any]) -> str:
    """The name under which the limit of tokens stands in a body, or in an object of it."""
    for name, value in body.items():
        if value == LIMIT and not isinstance(value, bool):
            return name
        if isinstance(value, Mapping) and (inside := limit_name_in(value)):
            return inside
    return ""


async def tiny(ask: Ask, model: str, lacks: Sequence[str] = ()) -> Tried:
    """The tiny question with all that a judge may set, written otherwise after each refusal until it is taken.

    ``lacks``: settings that the protocol does not have, which are left out from the first.
    """
    tried = Tried(
        Request(
            QUESTION,
            model,
            temperature=0.0,
            max_tokens=LIMIT,
            seed=1,
            shape=TRIED_IN_TURN[0],
            schema=SCHEMA,
            logprobs=True,
            sent_as=SentAs(left_out=tuple(lacks)),
        )
    )
    for _ in range(MOST_TRIES):
        began = time.monotonic()
        try:
            tried.answer = await ask(tried.request)
        except FormatRefused as error:
            later = TRIED_IN_TURN[TRIED_IN_TURN.index(tried.request.shape) + 1 :]
            tried.refused[str(tried.request.shape)] = str(error)
            if not later:
                tried.error = error
                return tried
            tried.request = replace(tried.request, shape=later[0])
            continue
        except SettingRefused as error:
            changed = rewritten(tried.request.sent_as, error)
            tried.error = error
            if changed is None:
                return tried
            tried.refused[error.setting] = str(error)
            tried.request = replace(tried.request, sent_as=changed)
            continue
        except LLMError as error:
            tried.error = error
            return tried
        tried.latency_ms = round((time.monotonic() - began) * 1000)
        return tried
    return tried


def one_question(endpoint: Endpoint, model: str) -> str:
    """Why the model does not answer the tiny question, in a sentence; "" where it does."""

    async def main() -> Tried:
        async with connected(replace(server_of_endpoint(endpoint), timeout_seconds=QUESTION_SECONDS)) as ask:
            return await tiny(ask, model, adapter_of(server_of_endpoint(endpoint)).lacks)

    try:
        tried = asyncio.run(main())
    except LLMError as error:
        return str(error)
    return "" if tried.answer else str(tried.error)


async def long_is_cut(ask: Ask, tried: Tried) -> bool | None:
    """Whether the server silently cuts a prompt of about 9,000 tokens; None where it does not say how many it read."""
    text = " ".join(
        f"Sentence {n} says that the number {n * 7919 % 10_007} is written here." for n in range(LONG_SENTENCES)
    )
    messages: list[Message] = [*QUESTION[:1], {"role": "user", "content": f"{text}\n\n{QUESTION[1]['content']}"}]
    try:
        answer = await ask(replace(tried.request, messages=messages, max_tokens=16))
    except RecordOnCall:
        return False  # it says that the prompt is too long
    except LLMError:
        return None
    if answer.tokens_in is None:
        return None
    return TokenRates().cut(profile_of(messages), answer.tokens_in) is not None


# ---- the table -------------------------------------------------------------------------------


def of_server(server: Server, known: Recognized | None, model: str) -> list[Finding]:
    adapter = adapter_of(server)
    title = DIALECTS_IN_WORDS[adapter.dialect]
    if known is None:
        return [Finding("Server", f"not recognized: treated as {title[0].lower()}{title[1:]}")]
    said = f"{title} {known.version}".strip()
    if known.base_url.rstrip("/") != server.base_url.rstrip("/"):
        return [Finding("Server", f"{said}: its API is at {known.base_url}", WARNING, "Change the base URL to it.")]
    found = [Finding("Server", said)]
    if known.model_names:
        found.append(Finding("Models", f"{len(known.model_names)} offered: {', '.join(known.model_names[:5])}"))
    if known.slots:
        found.append(Finding("Slots", f"{known.slots} requests at once"))
    if context := known.context_tokens.get(model):
        found.append(Finding("Context", f"{context:,} tokens a request"))
    return found


def of_answer(tried: Tried, answer: Answer) -> list[Finding]:
    request, refused = tried.request, tried.refused
    left_out = request.sent_as.left_out
    found = [of_shape(tried, answer), Finding("Model", answer.model or request.model)]
    found.append(of_limit(answer, tried.limit_name))
    for name, words in (("temperature", "Temperature"), ("seed", "Seed")):
        is_out = name in left_out
        found.append(
            Finding(
                words,
                f"left out: {refused.get(name, NOT_IN_PROTOCOL)}" if is_out else "sent",
                WARNING if is_out else OK,
            )
        )
    role = "folded into the first user message" if request.sent_as.system_folded else "sent as a system message"
    found.append(Finding("System text", role))
    found.append(of_logprobs(request, answer))
    if answer.usage.tokens_reasoning or answer.reasoning:
        found.append(Finding("Reasoning", f"{answer.usage.tokens_reasoning or 'some'} tokens before the reply"))
    if answer.usage.cost is not None:
        found.append(Finding("Cost", "reported with each answer"))
    found.append(Finding("Latency", f"{tried.latency_ms:,} ms"))
    return found


def of_shape(tried: Tried, answer: Answer) -> Finding:
    words = SHAPES_IN_WORDS[tried.request.shape]
    try:
        keeps = json.loads(answer.text)["choice"] in ("A", "B")
    except (ValueError, TypeError, KeyError):
        keeps = False
    if tried.request.shape == ReplyShape.JSON_SCHEMA and not keeps:
        said = " ".join(answer.text.split())[:120] or "nothing"
        do = "Expect unreadable replies; try a larger limit of tokens or another model."
        return Finding("Output format", f"{words}, but the reply did not follow it: {said}", WARNING, do)
    return Finding("Output format", words)


def of_limit(answer: Answer, limit: str) -> Finding:
    if not limit:
        return Finding("Token limit", "left out", WARNING, "Without a limit no budget can be guaranteed.")
    out = answer.usage.tokens_out
    if out is not None and out > LIMIT:
        do = "Set the model's maximum in its price, or no budget can be guaranteed."
        return Finding("Token limit", f"sent as {limit}, but not kept: {out:,} of {LIMIT}", WARNING, do)
    return Finding("Token limit", f"sent as {limit}")


def of_logprobs(request: Request, answer: Answer) -> Finding:
    if "logprobs" in request.sent_as.left_out:
        return Finding("Log probabilities", "refused: judges here have none")
    few = " (the 5 likeliest)" if "top_logprobs" in request.sent_as.left_out else ""
    return Finding("Log probabilities", f"returned{few}" if answer.logprobs else "taken, but not returned")


def of_length(is_cut: bool | None, rate: float | None) -> list[Finding]:
    found = [Finding("Tokens per byte", f"{rate:.2f}")] if rate else []
    if is_cut:
        do = "Give the server a larger context (Ollama: set OLLAMA_CONTEXT_LENGTH, or num_ctx in the Modelfile)."
        return [*found, Finding("Long prompts", "cut without a word: such calls fail as too long", PROBLEM, do)]
    if is_cut is None:
        return [*found, Finding("Long prompts", "not tested")]
    return [*found, Finding("Long prompts", "read whole, or refused")]


def tokens_per_byte(tried: Tried) -> float | None:
    if tried.answer is None or not tried.answer.tokens_in:
        return None
    size = sum(len(message["content"].encode()) for message in tried.request.messages)
    return round(tried.answer.tokens_in / size, 4)


def cure_of(result: Result) -> str:
    if result.models and result.model not in result.models:
        return f"Use a model that the server offers: {', '.join(result.models[:8])}."
    return "Check the base URL, the key and the model, then test again."


# ---- whom to ask -----------------------------------------------------------------------------


def endpoint_named(name: str) -> Endpoint:
    endpoint = Endpoint.objects.filter(name=name).first()
    if endpoint is None:
        known = ", ".join(Endpoint.objects.order_by("name").values_list("name", flat=True)[:20])
        raise InputRefused(f"There is no endpoint “{name}”. {f'There are: {known}.' if known else 'Add one first.'}")
    return endpoint


def server_at(endpoint: Endpoint | None, base_url: str | None, key_variable: str) -> Server:
    if endpoint is not None:
        return server_of_endpoint(endpoint)
    if not base_url:
        raise InputRefused("Name an endpoint, or give the address of a server with --base-url.")
    return Server(checked_base_url(base_url), checked_key_variable(key_variable))


# ---- keeping ---------------------------------------------------------------------------------


@transaction.atomic
def keep(endpoint: Endpoint, result: Result, waiting: Handshake | None = None) -> Handshake:
    """The newest handshake of this model at this endpoint, in place of the one that waited for it.

    The dialect that was recognized becomes the endpoint's. A model that answers ends a pause for a quota.
    """
    if waiting is not None and waiting.model != result.model:
        waiting.delete()
    row, _ = Handshake.objects.update_or_create(
        endpoint=endpoint,
        model=result.model,
        defaults={"checked_at": timezone.now(), "result": result.as_json()},
    )
    mine = Endpoint.objects.filter(pk=endpoint.pk)
    if result.dialect != Dialect.GENERIC and mine.filter(dialect="").update(dialect=result.dialect):
        record("changed", endpoint, user=None, evaluation=None, after={"dialect": str(result.dialect)})
    if result.sent_as is not None:
        mine.exclude(pause_reason="").update(paused_until=None, pause_reason="")
    return row


def go_on(handshake_id: int) -> None:
    """Shake hands as somebody asked on a page."""
    waiting = Handshake.objects.select_related("endpoint").filter(pk=handshake_id).first()
    if waiting is None or "waiting_since" not in waiting.result:
        return
    endpoint = waiting.endpoint
    result = shake_hands(server_of_endpoint(endpoint), waiting.model or usual_model(endpoint))
    keep(endpoint, result, waiting)
