"""The request loop: many requests in flight, every answer stored soon after it came.

Pure: database, network and clock are passed in as functions.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, Protocol, TypeVar

Q = TypeVar("Q")
A = TypeVar("A")
# Leaves 30 ms for the commit, since answers must be stored within 50 ms.
STORE_WITHIN_SECONDS: Final = 0.02
MAX_STORE_BATCH: Final = 64
# Requests that end close together are replaced by one claim.
COALESCE_SECONDS: Final = 0.01
# Calls not sent so long after their claim are given back: the run may have been paused meanwhile.
MAX_READY_SECONDS: Final = 1.0
MAX_SILENT_SECONDS: Final = 5.0
# While a commit takes longer, nothing is sent: what cannot be stored must not be bought.
MAX_STORING_SECONDS: Final = 0.5


@dataclass(frozen=True)
class ClaimResult(Generic[Q]):
    """Claimed calls. If there are none, ``wait`` says in how many seconds there may be some; None: nothing is left."""

    calls: Sequence[Q] = ()
    wait: float | None = None


class RequestSlots(Protocol):
    """How many requests may be in flight. ``CapacityUser`` is one."""

    def room(self, now: float) -> int:
        """How many may be sent now, by free slots."""

    def wait(self, now: float) -> float:
        """Seconds until the rate allows the next one."""

    def expected_room(self, now: float) -> int:
        """How many are likely to be sent now or in a moment, and so worth claiming."""

    def want(self, more: bool) -> None:
        """Whether there is more to send, so that others keep a share free."""


@dataclass
class RequestLoop(Generic[Q, A]):
    """One session of sending requests.

    ``claim(room, unstored)`` takes up to ``room`` calls; ``unstored`` are those claimed before whose answers are not
    stored yet. ``request`` takes one of the ``slots`` when called, returns it at the end, and raises nothing.
    ``store`` takes up to 64 answers. Claimed calls that cannot be sent soon go to ``give_back``. After ``work_until``,
    or once ``is_leaving``, nothing more is claimed or sent: the loop calls ``hand_over`` and drains.
    """

    claim: Callable[[int, int], Awaitable[ClaimResult[Q]]]
    request: Callable[[Q], Coroutine[None, None, A]]
    store: Callable[[Sequence[A]], Awaitable[None]]
    give_back: Callable[[Sequence[Q]], Awaitable[None]]
    hand_over: Callable[[], Awaitable[None]]
    clock: Callable[[], float]
    work_until: float
    slots: RequestSlots
    is_leaving: Callable[[], bool]
    changed: asyncio.Event = field(default_factory=asyncio.Event)
    ready: "deque[tuple[float, Q]]" = field(default_factory=deque)
    in_flight: set["asyncio.Task[None]"] = field(default_factory=set)
    arrived: "asyncio.Queue[tuple[float, A]]" = field(default_factory=asyncio.Queue)
    faults: list[BaseException] = field(default_factory=list)
    unstored: int = 0
    is_sending: bool = True
    storing_since: float | None = None

    async def run(self) -> None:
        """Send until nothing is left or time is up; return when every answer is stored."""
        storing = asyncio.create_task(self.store_arrivals())
        try:
            await self.run_while_storing(storing, self.send_pending())
        finally:
            await self.run_while_storing(storing, self.drain())
            storing.cancel()

    async def run_while_storing(self, storing: "asyncio.Task[None]", work: Coroutine[None, None, None]) -> None:
        """Work as long as answers can be stored: what cannot be stored must not be bought."""
        working = asyncio.create_task(work)
        await asyncio.wait((storing, working), return_when=asyncio.FIRST_COMPLETED)
        if storing.done():
            self.is_sending = False
            for task in (working, *self.in_flight):
                task.cancel()
            await asyncio.wait([working])
            await self.put_back(len(self.ready))
            storing.result()
        working.result()

    async def send_pending(self) -> None:
        while not self.is_over():
            self.raise_fault()
            self.changed.clear()
            # An answer that was not stored before the claim may make its call pending again.
            unstored = self.unstored
            claimed = await self.fill()
            if claimed.calls:
                continue  # until enough is ready
            if self.in_flight or self.ready or claimed.wait is not None:
                await self.wait_for_change(claimed.wait)
            elif unstored:
                await self.arrived.join()
            else:
                return
        await self.hand_over()

    def is_over(self) -> bool:
        return self.clock() >= self.work_until or self.is_leaving()

    async def drain(self) -> None:
        self.is_sending = False
        self.slots.want(False)
        await self.put_back(len(self.ready))
        while self.in_flight:
            await asyncio.wait(set(self.in_flight))
        await self.arrived.join()
        self.raise_fault()

    def raise_fault(self) -> None:
        """Raise our own errors that happened in a request."""
        if self.faults:
            raise self.faults[0]

    async def fill(self) -> ClaimResult[Q]:
        """Claim what can be sent soon, unless half of it is ready already."""
        await self.put_back(sum(at < self.clock() - MAX_READY_SECONDS for at, _ in self.ready))
        expected_room = 0 if self.is_storing_stuck() else self.slots.expected_room(self.clock())
        if expected_room <= 2 * len(self.ready):
            self.send()
            # A long silence is left to the sweeper: no task idles for it.
            is_near = self.slots.wait(self.clock()) <= MAX_SILENT_SECONDS
            return ClaimResult(wait=MAX_READY_SECONDS if is_near else None)
        claimed = await self.claim_or_give_back(expected_room - len(self.ready))
        self.unstored += len(claimed.calls)
        self.ready.extend((self.clock(), call) for call in claimed.calls)
        self.slots.want(bool(claimed.calls))
        self.send()
        return claimed

    async def claim_or_give_back(self, room: int) -> ClaimResult[Q]:
        """Give back what a cancelled claim took, since its transaction may have been committed."""
        claiming = asyncio.ensure_future(self.claim(room, self.unstored))
        try:
            return await asyncio.shield(claiming)
        except asyncio.CancelledError:
            claimed = await claiming
            if claimed.calls:
                await self.give_back(claimed.calls)
            raise

    def send(self) -> None:
        """Send as many as allowed now; called whenever a request ends, so that no slot waits for a claim."""
        now = self.clock()
        can_send = self.is_sending and not self.is_storing_stuck()
        while self.ready and can_send and self.slots.room(now) > 0 and self.slots.wait(now) <= 0:
            task = asyncio.create_task(self.send_one(self.request(self.ready.popleft()[1])))
            self.in_flight.add(task)
            task.add_done_callback(self.end)

    def is_storing_stuck(self) -> bool:
        return self.storing_since is not None and self.clock() - self.storing_since > MAX_STORING_SECONDS

    async def send_one(self, sending: Coroutine[None, None, A]) -> None:
        answer = await sending
        self.arrived.put_nowait((self.clock(), answer))

    def end(self, task: "asyncio.Task[None]") -> None:
        self.in_flight.discard(task)
        if not task.cancelled() and (fault := task.exception()):
            self.faults.append(fault)
        self.wake()

    def wake(self) -> None:
        """A slot may have become free, here or in another session that shares the slots."""
        self.changed.set()
        self.send()

    async def put_back(self, count: int) -> None:
        if count:
            calls = [self.ready.popleft()[1] for _ in range(count)]
            await self.give_back(calls)
            self.unstored -= count

    async def wait_for_change(self, wait: float | None) -> None:
        now = self.clock()
        pause = min(self.work_until - now, MAX_READY_SECONDS if wait is None else wait)
        if (paced := self.slots.wait(now)) > 0:
            pause = min(pause, paced)
        try:
            async with asyncio.timeout(max(pause, 0)):
                await self.changed.wait()
        except TimeoutError:
            self.send()
        else:
            await asyncio.sleep(COALESCE_SECONDS)

    async def store_arrivals(self) -> None:
        while True:
            arrived_at, first = await self.arrived.get()
            await asyncio.sleep(arrived_at + STORE_WITHIN_SECONDS - self.clock())
            batch = [first]
            while len(batch) < MAX_STORE_BATCH and not self.arrived.empty():
                batch.append(self.arrived.get_nowait()[1])
            self.storing_since = self.clock()
            await self.store(batch)
            self.storing_since = None
            self.unstored -= len(batch)
            for _ in batch:
                self.arrived.task_done()
