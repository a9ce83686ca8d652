"""One request for one call: what is sent, and what became of it."""

import random
import time
import uuid
from dataclasses import dataclass, field
from typing import Any

from evaluations.domain import AskingMode, AttemptOutcome, CallState, PairTexts, ReplyShape
from evaluations.judge.prompting import messages_for, prompt_sha256
from evaluations.judge.reading import Read, Reply, read_reply
from evaluations.outside.llm import Answer, Ask, FormatRefused, LLMError, RecordOnCall, Request, Retry
from evaluations.services.judging.working import Bout, Held, Outcome


@dataclass
class Asker:
    """How this bout asks: built once, shared by all its requests."""

    bout: Bout
    schema: dict[str, Any] | None
    leases: dict[int, uuid.UUID] = field(default_factory=dict)


async def put_to_judge(asker: Asker, ask: Ask, held: Held) -> Outcome:
    """One request for one call, and what became of it. Raises nothing that the world may cause."""
    judge, schema = asker.bout.judge, asker.schema
    assert isinstance(held.texts, PairTexts)
    messages = messages_for(asker.bout.spec, held.texts, held.shown, judge.fence_key)
    shape = ReplyShape.JSON_SCHEMA if schema else ReplyShape.TEXT
    request = Request(messages, judge.model, judge.temperature, judge.max_tokens, judge.seed, shape, schema)
    began = time.monotonic()
    try:
        answer = await ask(request)
    except LLMError as error:
        return from_error(asker, held, error, milliseconds_since(began))
    return from_answer(asker.bout, held, answer, prompt_sha256(messages, schema), milliseconds_since(began))


def milliseconds_since(began: float) -> int:
    return round((time.monotonic() - began) * 1000)


# ---- what became of it ---------------------------------------------------------------------


def from_answer(bout: Bout, held: Held, answer: Answer, prompt: str, latency_ms: int) -> Outcome:
    told = read_reply(bout.spec, held.shown, Reply(answer.text, answer.finish_reason, answer.refusal))
    state = CallState.ANSWERED if isinstance(told, Read) else told.state
    attempt = {
        "outcome": state,
        "http_status": answer.http_status,
        "raw": answer.text or answer.refusal,
        "finish_reason": answer.finish_reason,
        "model_returned": answer.model,
        "tokens_in": answer.tokens_in,
        "tokens_out": answer.tokens_out,
        "tokens_cached": answer.tokens_cached,
        "latency_ms": latency_ms,
    }
    if isinstance(told, Read):
        return Outcome(held, state, attempt, choices=told.choices, rationale=told.rationale, prompt_sha256=prompt)
    return Outcome(held, state, attempt | {"error": told.error}, error=told.error, prompt_sha256=prompt)


def from_error(asker: Asker, held: Held, error: LLMError, latency_ms: int) -> Outcome:
    said = {"http_status": error.http_status, "raw": error.body, "latency_ms": latency_ms, "error": str(error)}
    if isinstance(error, Retry):
        return from_fault(asker.bout, held, error, said)
    if isinstance(error, RecordOnCall):
        return Outcome(held, error.state, said | {"outcome": error.state}, error=str(error))
    if isinstance(error, FormatRefused) and asker.bout.judge.mode == AskingMode.AUTO:
        asker.schema = None
        return Outcome(held, CallState.PENDING, said | {"outcome": AttemptOutcome.RETRY}, shape_found=ReplyShape.TEXT)
    return stopped(held, said, str(error))


def from_fault(bout: Bout, held: Held, error: Retry, said: dict[str, Any]) -> Outcome:
    """Ask again after a while, or give up: the call, or the run where nobody is there at all."""
    tried = held.tried + 1
    if not bout.patience.is_over(tried, busy=error.busy, unreachable=error.unreachable):
        return Outcome(
            held,
            CallState.PENDING,
            said | {"outcome": AttemptOutcome.RETRY},
            error=str(error),
            wait_seconds=bout.patience.wait(tried, error.after, random.random()),
            busy=error.busy,
            unsent=error.unreachable,
        )
    if error.unreachable:
        return stopped(held, said, str(error), unsent=True)
    return Outcome(
        held,
        CallState.FAILED,
        said | {"outcome": AttemptOutcome.FAILED},
        error=f"Asked {tried} times without an answer. {error}",
    )


def stopped(held: Held, said: dict[str, Any], reason: str, *, unsent: bool = False) -> Outcome:
    """The call waits for a run that can go on."""
    attempt = said | {"outcome": AttemptOutcome.STOPPED}
    return Outcome(held, CallState.PENDING, attempt, stop_reason=reason, unsent=unsent)
