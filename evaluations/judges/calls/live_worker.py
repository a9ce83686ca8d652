"""The worker of live runs, with many requests in flight.

All sessions of a process share one event loop in a separate thread, and so share the capacity of an endpoint without a
lock.
"""

import asyncio
import gc
import logging
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache
from typing import Final, ParamSpec, TypeVar

from django.conf import settings
from django.db import InterfaceError, OperationalError, close_old_connections, connections

from evaluations.domain.judges import CallState, JudgeKind
from evaluations.judges.calls import worker_registry
from evaluations.judges.calls.baseline_worker import work_baseline_run
from evaluations.judges.calls.batch_worker import send_run_batches
from evaluations.judges.calls.capability_probe import PROBE_CHECK_SECONDS
from evaluations.judges.calls.circuit_breaker import was_run_answered
from evaluations.judges.calls.claims import claim_calls, refresh_leases, return_calls
from evaluations.judges.calls.outcome_store import store_outcomes
from evaluations.judges.calls.prompt_truncation import watch_truncation
from evaluations.judges.calls.verdict_requests import CallRequester, request_verdict, session_server
from evaluations.judges.calls.work_session import CallOutcome, ClaimedCall, WorkSession, begin_work_session
from evaluations.judges.calls.worker_registry import endpoint_capacity
from evaluations.judges.endpoints.outages import has_answered_since_probe, has_endpoint_answered
from evaluations.judges.endpoints.selectors import endpoint_slots, find_latest_check_result, server_for_endpoint
from evaluations.judges.runs.planner import plan_run_calls
from evaluations.judges.runs.transitions import finish_run, stop_run
from evaluations.llm.capacity import CapacityUser
from evaluations.llm.client import connect_llm, server_getter
from evaluations.llm.concurrency_window import RequestInFlight
from evaluations.llm.exchange import (
    Answer,
    LLMError,
    QuotaExhausted,
    Request,
    RequestTimedOut,
    Retry,
    SendRequest,
    StopRun,
)
from evaluations.llm.request_loop import ClaimResult, RequestLoop
from evaluations.llm.retry_policy import RetryPolicy
from evaluations.llm.server_detection import detect_server
from evaluations.models.judges import Endpoint
from evaluations.models.transactions import PROCESS_STOPPING, has_single_writer, is_time_up, write_pause_seconds
from evaluations.net.addresses import is_local_address

logger = logging.getLogger(__name__)

# A task works this long and hands over, so that one long run never blocks the others.
SESSION_SECONDS: Final = 30.0
MAX_SESSION_SECONDS: Final = 600.0
# Waits between attempts to store answers in a database that is unreachable.
STORE_RETRY_SECONDS: Final = (0.5, 1, 2, 4, 8, 16)
LOOP_LOCK: Final = threading.Lock()
P = ParamSpec("P")
T = TypeVar("T")


class AnswersNotStored(Exception):
    """The database refused these answers after all retries."""


def work_run_calls(
    run_id: int,
    *,
    hand_over: Callable[[], None],
    seconds: float | None = None,
    retry_policy: RetryPolicy | None = None,
) -> None:
    """Plan and work this run for ``seconds``; ``hand_over`` is called if there is more to do."""
    until = time.monotonic() + (SESSION_SECONDS if seconds is None else seconds)
    plan_run_calls(run_id, until=until)
    session = begin_work_session(run_id, retry_policy or RetryPolicy())
    if session is None:
        if is_time_up(until):
            hand_over()
        return
    if session.judge.kind == JudgeKind.RULE:
        work_baseline_run(session, until=until, hand_over=hand_over)
    elif session.batched:
        send_run_batches(session, until=until, hand_over=hand_over)
    else:
        request_run_calls(session, until if seconds is not None else max(until, slow_session_end(session)), hand_over)
    finish_run(session.run)


def slow_session_end(session: WorkSession) -> float:
    """When a session at a slow server ends, on the monotonic clock.

    Each session waits for its last answers while its successor works: shorter ones would occupy every thread.
    """
    latency = worker_registry.endpoint_latency(session.judge.endpoint) if session.judge.endpoint else 0.0
    return time.monotonic() + min(2 * latency, MAX_SESSION_SECONDS)


def request_run_calls(session: WorkSession, until: float, hand_over: Callable[[], None]) -> None:
    try:
        run_on_shared_loop(request_claimed_calls(session, until, hand_over))
    except StopRun as error:  # before the first request: no key, or no usable address
        stop_run(session.run, str(error))
    except AnswersNotStored as error:
        logger.error("run %s: %s", session.run.pk, error)
        stop_after_storage_failure(session, error)


def stop_after_storage_failure(session: WorkSession, error: AnswersNotStored) -> None:
    """Stop a run whose answers cannot be stored, unless the database is only unreachable."""
    close_old_connections()
    with suppress(OperationalError, InterfaceError):
        stop_run(session.run, f"{error} Free disk space or repair the database, then resume this run.")


def run_on_shared_loop(work: Coroutine[None, None, T]) -> T:
    with LOOP_LOCK:
        loop = start_shared_loop()
    future = asyncio.run_coroutine_threadsafe(work, loop)
    try:
        return future.result()
    finally:
        future.cancel()  # if the wait for it was interrupted


@cache
def start_shared_loop() -> asyncio.AbstractEventLoop:
    # Objects loaded so far stay: collecting garbage among them again and again would delay every answer.
    gc.freeze()
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="asking", daemon=True).start()
    return loop


async def request_claimed_calls(session: WorkSession, until: float, hand_over: Callable[[], None]) -> None:
    """Run the request loop, with the database in separate threads.

    SQLite gets one thread, so that claims and stores take turns: two would wait for each other's write lock, which
    SQLite does by sleeping. Elsewhere no answer waits for a claim.
    """
    with ExitStack() as stack:
        to_store = stack.enter_context(ThreadPoolExecutor(1))
        to_claim = to_store if has_single_writer() else stack.enter_context(ThreadPoolExecutor(1))
        try:
            async with connect_llm(session_server(session)) as send:
                await LiveSession(session, CallRequester(session), to_store, to_claim, hand_over).run(send, until)
        finally:
            for thread in {to_store, to_claim}:
                await run_in_thread(thread, connections.close_all)


@dataclass(frozen=True)
class LiveSession:
    """A session's request loop and what it does in the database's threads."""

    session: WorkSession
    requester: CallRequester
    to_store: ThreadPoolExecutor
    to_claim: ThreadPoolExecutor
    hand_over: Callable[[], None]

    async def run(self, send: SendRequest, until: float) -> None:
        session, requester = self.session, self.requester
        user = await self.join_capacity()
        requester.probe.start_from_check(
            await run_in_thread(self.to_claim, find_latest_check_result, session.judge.endpoint, session.judge.model)
        )
        requester.truncation_watch = await run_in_thread(self.to_claim, watch_truncation, session)
        requester.has_answered = await run_in_thread(self.to_claim, has_proved_itself, session)
        assert session.judge.endpoint is not None
        requester.knows_endpoint = await run_in_thread(self.to_claim, has_endpoint_answered, session.judge.endpoint)
        loop = RequestLoop(
            claim=self.claim,
            request=lambda call: request_with_capacity(user, user.sent(time.monotonic()), requester, send, call),
            store=self.store,
            give_back=self.give_back,
            hand_over=lambda: run_in_thread(self.to_store, self.hand_over),
            clock=time.monotonic,
            work_until=until,
            slots=user,
            is_leaving=lambda: PROCESS_STOPPING.is_set() or session.batched,
        )
        user.wake = loop.wake
        heartbeat = asyncio.create_task(self.keep_leases_alive())
        try:
            await loop.run()
        finally:
            heartbeat.cancel()
            user.leave()

    async def join_capacity(self) -> CapacityUser:
        endpoint = self.session.judge.endpoint
        assert endpoint is not None
        slots = await run_in_thread(self.to_claim, endpoint_slots, endpoint)
        if slots is None:
            slots = await run_in_thread(self.to_claim, find_reported_slots, endpoint)
        return endpoint_capacity(endpoint, slots).join()

    async def claim(self, room: int, unstored: int) -> ClaimResult[ClaimedCall]:
        room = self.requester.room(room, unstored)
        if self.requester.is_endpoint_down:
            return ClaimResult()
        if room <= 0:
            return ClaimResult(wait=PROBE_CHECK_SECONDS)
        claimed = await run_in_thread(self.to_claim, claim_calls, self.session, room, unstored)
        self.requester.leases.update((call.call_id, call.lease) for call in claimed.calls)
        return claimed

    async def store(self, outcomes: Sequence[CallOutcome]) -> None:
        pause = await run_in_thread(self.to_store, store_with_retries, self.session, outcomes)
        for outcome in outcomes:
            self.requester.leases.pop(outcome.call.call_id, None)
        await asyncio.sleep(pause)

    async def give_back(self, unsent: Sequence[ClaimedCall]) -> None:
        for call in unsent:
            self.requester.leases.pop(call.call_id, None)
        with suppress(OperationalError, InterfaceError):  # their leases expire anyway
            await run_in_thread(self.to_claim, return_calls, unsent)

    async def keep_leases_alive(self) -> None:
        """Refresh the leases of calls in flight for as long as this process lives.

        Not in the thread that stores: it waits there while the database is away, longer than a lease lasts.
        """
        while True:
            await asyncio.sleep(settings.LEASE_SECONDS / 4)
            if self.requester.leases:
                with suppress(OperationalError, InterfaceError):  # the next one still comes in time
                    await run_in_thread(self.to_claim, refresh_leases, dict(self.requester.leases))


def has_proved_itself(session: WorkSession) -> bool:
    """Whether the run was answered, and its endpoint too since it was back from an outage."""
    assert session.judge.endpoint is not None
    return was_run_answered(session.run) and has_answered_since_probe(session.judge.endpoint)


REPORTED_SLOTS: Final[dict[tuple[int, str], int | None]] = {}


def find_reported_slots(endpoint: Endpoint) -> int | None:
    """How many requests a local server says it handles at once, requested once per process.

    Without it an endpoint that was never tested is overrun: no answer shows its slots.
    """
    key = (endpoint.pk, endpoint.base_url)
    if key not in REPORTED_SLOTS:
        get, is_local = server_getter(server_for_endpoint(endpoint)), is_local_address(endpoint.base_url)
        detected = detect_server(endpoint.base_url, get) if is_local else None
        REPORTED_SLOTS[key] = detected.slots if detected else None
    return REPORTED_SLOTS[key]


async def request_with_capacity(
    capacity_user: CapacityUser, sent: RequestInFlight, requester: CallRequester, send: SendRequest, call: ClaimedCall
) -> CallOutcome:
    """Send the request of one call in a reserved slot, and report its result to the capacity."""

    async def watched(request: Request) -> Answer:
        try:
            answer = await send(request)
        except LLMError as error:
            report_error_to_capacity(capacity_user, sent, error)
            raise
        capacity_user.capacity.answered(sent, time.monotonic(), answer_tokens(answer))
        return answer

    try:
        if requester.is_endpoint_down:  # since it was claimed
            return CallOutcome(call, CallState.PENDING, unsent=True)
        outcome = await request_verdict(requester, watched, call)
        requester.record_outcome(outcome)
        return outcome
    finally:
        capacity_user.ended()


def report_error_to_capacity(capacity_user: CapacityUser, sent: RequestInFlight, error: LLMError) -> None:
    if isinstance(error, RequestTimedOut):
        capacity_user.capacity.timed_out(sent, time.monotonic())
    elif isinstance(error, Retry) and error.busy:
        # The duration of a quota is stored on the endpoint, where it can be lifted.
        after = None if isinstance(error, QuotaExhausted) else error.after
        capacity_user.capacity.rejected(sent, time.monotonic(), after)


def answer_tokens(answer: Answer) -> int | None:
    if answer.tokens_in is None or answer.tokens_out is None:
        return None
    return answer.tokens_in + answer.tokens_out


async def run_in_thread(thread: ThreadPoolExecutor, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    def with_fresh_connection() -> T:
        close_old_connections()
        return function(*args, **kwargs)

    return await asyncio.get_running_loop().run_in_executor(thread, with_fresh_connection)


def store_with_retries(session: WorkSession, outcomes: Sequence[CallOutcome]) -> float:
    """Store the outcomes, retrying while the database is unreachable; returns seconds to pause."""
    for wait in STORE_RETRY_SECONDS:
        began = time.monotonic()
        try:
            store_outcomes(session, outcomes)
            return write_pause_seconds(time.monotonic() - began)
        except (OperationalError, InterfaceError) as error:
            reason = str(error).partition("\n")[0]
            logger.warning("run %s: %d answers not stored yet: %s", session.run.pk, len(outcomes), reason)
            time.sleep(wait)
            close_old_connections()
    try:
        store_outcomes(session, outcomes)
    except (OperationalError, InterfaceError) as error:
        reason = str(error).partition("\n")[0]
        raise AnswersNotStored(f"{len(outcomes)} answers could not be stored and were lost: {reason}.") from error
    return 0.0
