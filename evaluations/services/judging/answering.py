"""Working a run's calls over the network, with many requests in flight.

All bouts of a process ask on one event loop, in a thread of its own; each has a thread for its
database besides. So they share what is known of an endpoint without a lock.
"""

import asyncio
import gc
import logging
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from functools import cache
from typing import Final, ParamSpec, TypeVar

from django.conf import settings
from django.db import InterfaceError, OperationalError, close_old_connections, connection, connections

from evaluations.domain import JudgeKind
from evaluations.judge.adapting import Sent, Taker
from evaluations.judge.asking import Claimed, Loop
from evaluations.judge.retrying import Patience
from evaluations.models import Endpoint
from evaluations.outside.addresses import is_local_address
from evaluations.outside.llm import Answer, Ask, LLMError, QuotaUsedUp, Request, Retry, StopRun, TimedOut, connected
from evaluations.outside.reaching import getter_of
from evaluations.outside.recognition import recognized
from evaluations.services.judging import (
    batching,
    circuit_breaker,
    claiming,
    cut_prompts,
    running,
    sharing,
    storing,
    working,
)
from evaluations.services.judging.connecting import found_before
from evaluations.services.judging.conversing import Asker, put_to_judge, server_of, server_of_endpoint
from evaluations.services.judging.probing import LOOK_AGAIN_SECONDS
from evaluations.services.judging.ruling import apply_rule
from evaluations.services.judging.working import Bout, Held, Outcome
from evaluations.services.pacing import LEAVING, rest_after, time_is_up

logger = logging.getLogger(__name__)

# A task works this long and hands over, so that one long run never blocks the others.
BOUT_SECONDS: Final = 30.0
SLOW_BOUT_SECONDS: Final = 600.0
# Waits before an answer is offered again to a database that is away.
STORE_AGAIN_SECONDS: Final = (0.5, 1, 2, 4, 8, 16)
STARTING: Final = threading.Lock()

P = ParamSpec("P")
T = TypeVar("T")


class NotStored(Exception):
    """Answers that the database did not take, however often it was asked to."""


def work(
    run_id: int,
    *,
    hand_over: Callable[[], None],
    seconds: float | None = None,
    patience: Patience | None = None,
) -> None:
    """Plan and work this run for so long; ``hand_over`` is called if there is more to do."""
    until = time.monotonic() + (BOUT_SECONDS if seconds is None else seconds)
    running.plan(run_id, until=until)
    bout = working.begin(run_id, patience or Patience())
    if bout is None:
        if time_is_up(until):
            hand_over()
        return
    if bout.judge.kind == JudgeKind.RULE:
        apply_rule(bout, until=until, hand_over=hand_over)
    elif bout.batched:
        batching.send(bout, until=until, hand_over=hand_over)
    else:
        work_by_asking(bout, until if seconds is not None else max(until, slow_end(bout)), hand_over)
    running.finish(bout.run)


def slow_end(bout: Bout) -> float:
    """When a bout at a slow server ends.

    Each waits for its last answers while its successor works: shorter ones would take every thread of a worker.
    """
    latency = sharing.latency_at(bout.judge.endpoint) if bout.judge.endpoint else 0.0
    return time.monotonic() + min(2 * latency, SLOW_BOUT_SECONDS)


# ---- asking --------------------------------------------------------------------------------


def work_by_asking(bout: Bout, until: float, hand_over: Callable[[], None]) -> None:
    try:
        on_shared_loop(ask_all(bout, until, hand_over))
    except StopRun as error:  # before anything could be sent: no key, no usable address
        running.stop(bout.run, str(error))
    except NotStored as error:
        logger.error("run %s: %s", bout.run.pk, error)
        stop_if_that_can_be_stored(bout, error)


def stop_if_that_can_be_stored(bout: Bout, error: NotStored) -> None:
    """Nothing more is bought for a database that takes nothing. One that is away altogether is waited for."""
    close_old_connections()
    with suppress(OperationalError, InterfaceError):
        running.stop(bout.run, f"{error} Make room or mend the database, then resume this run.")


def on_shared_loop(work: Coroutine[None, None, T]) -> T:
    doing = asyncio.run_coroutine_threadsafe(work, shared_loop())
    try:
        return doing.result()
    finally:
        doing.cancel()  # where the wait for it was broken off


def shared_loop() -> asyncio.AbstractEventLoop:
    with STARTING:
        return running_loop()


@cache
def running_loop() -> asyncio.AbstractEventLoop:
    # What was loaded until now stays: looking through it again and again would hold up every answer.
    gc.freeze()
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="asking", daemon=True).start()
    return loop


async def ask_all(bout: Bout, until: float, hand_over: Callable[[], None]) -> None:
    """The asking loop with the database behind it, in threads of its own.

    On SQLite one thread, so that claims and stores take turns by themselves: two would wait for
    each other's write lock, which SQLite does by sleeping. Elsewhere no answer waits for a claim.
    """
    asker = Asker(bout)
    with ExitStack() as stack:
        thread = stack.enter_context(ThreadPoolExecutor(1))
        to_claim = thread if connection.vendor == "sqlite" else stack.enter_context(ThreadPoolExecutor(1))

        async def claim(room: int, held: int) -> Claimed[Held]:
            room = asker.room(room, held)
            if room <= 0:
                return Claimed(wait=LOOK_AGAIN_SECONDS)
            claimed = await in_thread(to_claim, claiming.claim, bout, room, held)
            asker.leases.update((one.call_id, one.lease) for one in claimed.questions)
            return claimed

        async def store(outcomes: Sequence[Outcome]) -> None:
            rest = await in_thread(thread, store_surely, bout, outcomes)
            for outcome in outcomes:
                asker.leases.pop(outcome.held.call_id, None)
            await asyncio.sleep(rest)

        async def give_back(unsent: Sequence[Held]) -> None:
            for held in unsent:
                asker.leases.pop(held.call_id, None)
            with suppress(OperationalError, InterfaceError):  # their leases run out all the same
                await in_thread(to_claim, claiming.give_back, unsent)

        async def tell_successor() -> None:
            await in_thread(thread, hand_over)

        try:
            async with connected(server_of(bout)) as ask:
                taker = await taker_for(bout, to_claim)
                asker.probe.begin_with(await in_thread(to_claim, found_before, bout.judge.endpoint, bout.judge.model))
                asker.watched = await in_thread(to_claim, cut_prompts.watch, bout)
                asker.has_answered = await in_thread(to_claim, circuit_breaker.was_answered, bout.run)
                loop = Loop(
                    claim=claim,
                    ask=lambda held: ask_in_place(taker, taker.sent(time.monotonic()), asker, ask, held),
                    store=store,
                    give_back=give_back,
                    hand_over=tell_successor,
                    clock=time.monotonic,
                    work_until=until,
                    slots=taker,
                    is_leaving=lambda: LEAVING.is_set() or bout.batched,
                )
                taker.wake = loop.wake
                keeping = asyncio.create_task(keep_leases(asker, thread))
                try:
                    await loop.run()
                finally:
                    keeping.cancel()
                    taker.leave()
        finally:
            for one in {thread, to_claim}:
                await in_thread(one, connections.close_all)


async def taker_for(bout: Bout, thread: ThreadPoolExecutor) -> Taker:
    assert bout.judge.endpoint is not None
    slots = await in_thread(thread, sharing.slots_of, bout.judge.endpoint)
    if slots is None:
        slots = await in_thread(thread, slots_told, bout.judge.endpoint)
    return sharing.capacity_of(bout.judge.endpoint, slots).join()


SLOTS_TOLD: Final[dict[tuple[int, str], int | None]] = {}


def slots_told(endpoint: Endpoint) -> int | None:
    """How many requests a local server says it works on at once, asked for once by each process.

    One that was never tested is overrun otherwise: its slots show in no answer.
    """
    key = (endpoint.pk, endpoint.base_url)
    if key not in SLOTS_TOLD:
        server = server_of_endpoint(endpoint)
        known = recognized(server.base_url, getter_of(server)) if is_local_address(endpoint.base_url) else None
        SLOTS_TOLD[key] = known.slots if known else None
    return SLOTS_TOLD[key]


async def ask_in_place(taker: Taker, sent: Sent, asker: Asker, ask: Ask, held: Held) -> Outcome:
    """One call, in the place that was taken for it; how its request went is told to the capacity."""

    async def watched(request: Request) -> Answer:
        try:
            answer = await ask(request)
        except LLMError as error:
            note_error(taker, sent, error)
            raise
        taker.capacity.answered(sent, time.monotonic(), tokens_of(answer))
        return answer

    try:
        outcome = await put_to_judge(asker, watched, held)
        asker.note(outcome)
        return outcome
    finally:
        taker.ended()


def note_error(taker: Taker, sent: Sent, error: LLMError) -> None:
    if isinstance(error, TimedOut):
        taker.capacity.timed_out(sent, time.monotonic())
    elif isinstance(error, Retry) and error.busy:
        # How long a quota lasts stands on the endpoint, where it can be lifted.
        after = None if isinstance(error, QuotaUsedUp) else error.after
        taker.capacity.turned_away(sent, time.monotonic(), after)


def tokens_of(answer: Answer) -> int | None:
    if answer.tokens_in is None or answer.tokens_out is None:
        return None
    return answer.tokens_in + answer.tokens_out


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
            storing.store(bout, outcomes)
            return rest_after(time.monotonic() - began)
        except (OperationalError, InterfaceError) as error:
            logger.warning("run %s: %d answers not stored yet: %s", bout.run.pk, len(outcomes), error)
            time.sleep(wait)
            close_old_connections()
    try:
        storing.store(bout, outcomes)
    except (OperationalError, InterfaceError) as error:
        why = str(error).partition("\n")[0]
        raise NotStored(f"{len(outcomes)} answers could not be stored and are lost: {why}.") from error
    return 0.0


async def keep_leases(asker: Asker, thread: ThreadPoolExecutor) -> None:
    """Calls in flight stay ours, however long the server takes, as long as this process lives."""
    while True:
        await asyncio.sleep(settings.LEASE_SECONDS / 4)
        if asker.leases:
            await in_thread(thread, claiming.refresh, dict(asker.leases))
