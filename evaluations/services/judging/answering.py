"""Working a run's calls over the network, with many requests in flight."""

import asyncio
import logging
import random
import time
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Final, ParamSpec, TypeVar

from django.conf import settings
from django.db import InterfaceError, OperationalError, close_old_connections, connections

from evaluations.domain import AskingMode, AttemptOutcome, CallState, JudgeKind
from evaluations.judge.asking import Claimed, Loop
from evaluations.judge.prompting import messages_for, prompt_sha256
from evaluations.judge.reading import Read, Reply, read_reply
from evaluations.judge.retrying import Patience
from evaluations.outside.llm import (
    Answer,
    Ask,
    FormatRefused,
    LLMError,
    RecordOnCall,
    Request,
    Retry,
    Server,
    StopRun,
    connected,
)
from evaluations.services.judging import running, working
from evaluations.services.judging.judging import schema_asked
from evaluations.services.judging.ruling import apply_rule
from evaluations.services.judging.working import Bout, Held, Outcome
from evaluations.services.pacing import LEAVING, rest_after, time_is_up

logger = logging.getLogger(__name__)

# A task works this long and hands over, so that one long run never blocks the others.
BOUT_SECONDS: Final = 30.0
# Waits before an answer is offered again to a database that is away.
STORE_AGAIN_SECONDS: Final = (0.5, 1, 2, 4, 8, 16)

P = ParamSpec("P")
T = TypeVar("T")


def work(
    run_id: int,
    *,
    hand_over: Callable[[], None],
    seconds: float = BOUT_SECONDS,
    patience: Patience | None = None,
) -> None:
    """Plan and work this run for so long; ``hand_over`` is called if there is more to do."""
    until = time.monotonic() + seconds
    running.plan(run_id, until=until)
    bout = working.begin(run_id, patience or Patience())
    if bout is None:
        if time_is_up(until):
            hand_over()
        return
    if bout.judge.kind == JudgeKind.RULE:
        apply_rule(bout, until=until, hand_over=hand_over)
    else:
        work_by_asking(bout, until, hand_over)
    running.finish(bout.run)


# ---- asking --------------------------------------------------------------------------------


@dataclass
class Asker:
    """How this bout asks: built once, shared by all its requests."""

    bout: Bout
    schema: dict[str, Any] | None
    leases: dict[int, uuid.UUID] = field(default_factory=dict)


def work_by_asking(bout: Bout, until: float, hand_over: Callable[[], None]) -> None:
    try:
        asyncio.run(ask_all(bout, until, hand_over))
    except StopRun as error:  # before anything could be sent: no key, no usable address
        running.stop(bout.run, str(error))


async def ask_all(bout: Bout, until: float, hand_over: Callable[[], None]) -> None:
    """The asking loop with the database behind it, in a thread of its own.

    One thread, so that claims and stores take turns by themselves: two would wait for each
    other's write lock, which SQLite does by sleeping.
    """
    asker = Asker(bout, schema_asked(bout.judge, bout.spec))
    with ThreadPoolExecutor(1) as thread:

        async def claim(room: int, held: int) -> Claimed[Held]:
            claimed = await in_thread(thread, working.claim, bout, room, held)
            asker.leases.update((one.call_id, one.lease) for one in claimed.questions)
            return claimed

        async def store(outcomes: Sequence[Outcome]) -> None:
            rest = await in_thread(thread, store_surely, bout, outcomes)
            for outcome in outcomes:
                asker.leases.pop(outcome.held.call_id, None)
            await asyncio.sleep(rest)

        async def tell_successor() -> None:
            await in_thread(thread, hand_over)

        try:
            async with connected(server_of(bout)) as ask:
                loop = Loop(
                    claim=claim,
                    ask=lambda held: put_to_judge(asker, ask, held),
                    store=store,
                    hand_over=tell_successor,
                    clock=time.monotonic,
                    work_until=until,
                    in_flight=bout.in_flight,
                    is_leaving=LEAVING.is_set,
                )
                keeping = asyncio.create_task(keep_leases(asker, thread))
                await loop.run()
                keeping.cancel()
        finally:
            await in_thread(thread, connections.close_all)


async def in_thread(thread: ThreadPoolExecutor, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    def with_fresh_connection() -> T:
        close_old_connections()
        return function(*args, **kwargs)

    return await asyncio.get_running_loop().run_in_executor(thread, with_fresh_connection)


def store_surely(bout: Bout, outcomes: Sequence[Outcome]) -> float:
    """Store, and try again while the database is away: these answers are paid for. Seconds to rest."""
    for wait in STORE_AGAIN_SECONDS:
        began = time.monotonic()
        try:
            working.store(bout, outcomes)
            return rest_after(time.monotonic() - began)
        except (OperationalError, InterfaceError) as error:
            logger.warning("run %s: %d answers not stored yet: %s", bout.run.pk, len(outcomes), error)
            time.sleep(wait)
            close_old_connections()
    working.store(bout, outcomes)
    return 0.0


async def keep_leases(asker: Asker, thread: ThreadPoolExecutor) -> None:
    """Calls in flight stay ours, however long the server takes, as long as this process lives."""
    while True:
        await asyncio.sleep(settings.LEASE_SECONDS / 4)
        if asker.leases:
            await in_thread(thread, working.refresh, dict(asker.leases))


def server_of(bout: Bout) -> Server:
    endpoint = bout.judge.endpoint
    if endpoint is None:
        raise StopRun("This judge has no endpoint to ask.")
    return Server(endpoint.base_url, endpoint.key_variable, settings.REQUEST_TIMEOUT_SECONDS)


async def put_to_judge(asker: Asker, ask: Ask, held: Held) -> Outcome:
    """One request for one call, and what became of it. Raises nothing that the world may cause."""
    judge, schema = asker.bout.judge, asker.schema
    messages = messages_for(asker.bout.spec, held.texts, held.shown, judge.fence_key)
    request = Request(messages, judge.model, judge.temperature, judge.max_tokens, judge.seed, schema)
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
        return Outcome(held, CallState.PENDING, said | {"outcome": AttemptOutcome.RETRY}, plain_text_needed=True)
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
        )
    if error.unreachable:
        return stopped(held, said, str(error))
    return Outcome(
        held,
        CallState.FAILED,
        said | {"outcome": AttemptOutcome.FAILED},
        error=f"Asked {tried} times without an answer. {error}",
    )


def stopped(held: Held, said: dict[str, Any], reason: str) -> Outcome:
    """The call waits for a run that can go on."""
    return Outcome(held, CallState.PENDING, said | {"outcome": AttemptOutcome.STOPPED}, stop_reason=reason)
