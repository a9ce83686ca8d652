"""Working a run's calls over the network, with many requests in flight."""

import asyncio
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Final, ParamSpec, TypeVar

from django.conf import settings
from django.db import InterfaceError, OperationalError, close_old_connections, connections

from evaluations.domain import JudgeKind
from evaluations.judge.asking import Claimed, Loop
from evaluations.judge.retrying import Patience
from evaluations.outside.llm import Server, StopRun, connected
from evaluations.services.judging import claiming, running, storing, working
from evaluations.services.judging.conversing import Asker, put_to_judge
from evaluations.services.judging.probing import LOOK_AGAIN_SECONDS
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
    asker = Asker(bout)
    with ThreadPoolExecutor(1) as thread:

        async def claim(room: int, held: int) -> Claimed[Held]:
            room = asker.probe.room(room, held)
            if room <= 0:
                return Claimed(wait=LOOK_AGAIN_SECONDS)
            claimed = await in_thread(thread, claiming.claim, bout, room, held)
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
            storing.store(bout, outcomes)
            return rest_after(time.monotonic() - began)
        except (OperationalError, InterfaceError) as error:
            logger.warning("run %s: %d answers not stored yet: %s", bout.run.pk, len(outcomes), error)
            time.sleep(wait)
            close_old_connections()
    storing.store(bout, outcomes)
    return 0.0


async def keep_leases(asker: Asker, thread: ThreadPoolExecutor) -> None:
    """Calls in flight stay ours, however long the server takes, as long as this process lives."""
    while True:
        await asyncio.sleep(settings.LEASE_SECONDS / 4)
        if asker.leases:
            await in_thread(thread, claiming.refresh, dict(asker.leases))


def server_of(bout: Bout) -> Server:
    endpoint = bout.judge.endpoint
    if endpoint is None:
        raise StopRun("This judge has no endpoint to ask.")
    return Server(endpoint.base_url, endpoint.key_variable, settings.REQUEST_TIMEOUT_SECONDS)
