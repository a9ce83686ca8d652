"""The asking loop: many requests in flight, every answer stored soon after it came.

Pure: what is asked next, how it is asked, where answers go and what time it is come in as
functions. The loop knows neither database nor network.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass, field
from typing import Final, Generic, TypeVar

Q = TypeVar("Q")
A = TypeVar("A")

# Leaves the commit 30 ms of the 50 within which an answer is to be stored.
STORE_WITHIN_SECONDS: Final = 0.02
STORE_AT_MOST: Final = 64
# Requests that end close together are replaced by one claim.
GATHER_SECONDS: Final = 0.01


@dataclass(frozen=True)
class Claimed(Generic[Q]):
    """What to ask now. With no questions, ``wait`` says in how many seconds there may be some:
    None means that nothing is left."""

    questions: Sequence[Q] = ()
    wait: float | None = None


@dataclass
class Loop(Generic[Q, A]):
    """One bout of asking.

    ``claim(room, held)`` takes up to ``room`` questions; ``held`` are those claimed before whose
    answers are not stored yet. ``ask`` answers one and raises nothing. ``store`` takes up to 64
    answers. After ``work_until``, or once ``is_leaving``, no more is claimed: ``hand_over`` is
    told, and the loop drains.
    """

    claim: Callable[[int, int], Awaitable[Claimed[Q]]]
    ask: Callable[[Q], Awaitable[A]]
    store: Callable[[Sequence[A]], Awaitable[None]]
    hand_over: Callable[[], Awaitable[None]]
    clock: Callable[[], float]
    work_until: float
    in_flight: int
    is_leaving: Callable[[], bool]
    flying: set["asyncio.Task[None]"] = field(default_factory=set)
    arrived: "asyncio.Queue[tuple[float, A]]" = field(default_factory=asyncio.Queue)
    held: int = 0

    async def run(self) -> None:
        """Ask until nothing is left or time is up; return when every answer is stored."""
        storing = asyncio.create_task(self.store_what_arrives())
        try:
            await self.while_storing(storing, self.ask_what_waits())
        finally:
            await self.while_storing(storing, self.drain())
            storing.cancel()

    async def while_storing(self, storing: "asyncio.Task[None]", work: Coroutine[None, None, None]) -> None:
        """Do this as long as answers can be stored: what cannot be kept must not be bought."""
        working = asyncio.create_task(work)
        await asyncio.wait((storing, working), return_when=asyncio.FIRST_COMPLETED)
        if storing.done():
            for task in (working, *self.flying):
                task.cancel()
            storing.result()
        working.result()

    async def ask_what_waits(self) -> None:
        while self.clock() < self.work_until and not self.is_leaving():
            self.land()
            # An answer not stored when the claim was made may put its call back to be asked again.
            unstored = self.held
            claimed = await self.fill()
            if self.flying or claimed.wait is not None:
                await self.until_something_ends(claimed.wait)
            elif unstored:
                await self.arrived.join()
            else:
                return
        await self.hand_over()

    async def drain(self) -> None:
        if self.flying:
            await asyncio.wait(self.flying)
        await self.arrived.join()
        self.land()

    def land(self) -> None:
        """Forget the requests that ended; a fault of ours in one of them comes up here."""
        landed = {task for task in self.flying if task.done()}
        self.flying -= landed
        for task in landed:
            task.result()

    async def fill(self) -> Claimed[Q]:
        room = self.in_flight - len(self.flying)
        if room <= 0:
            return Claimed()
        claimed = await self.claim(room, self.held)
        self.held += len(claimed.questions)
        for question in claimed.questions:
            self.flying.add(asyncio.create_task(self.ask_one(question)))
        return claimed

    async def ask_one(self, question: Q) -> None:
        answer = await self.ask(question)
        self.arrived.put_nowait((self.clock(), answer))

    async def until_something_ends(self, wait: float | None) -> None:
        left = max(self.work_until - self.clock(), 0)
        pause = min(left, left if wait is None else wait)
        if self.flying:
            await asyncio.wait(self.flying, timeout=pause, return_when=asyncio.FIRST_COMPLETED)
            await asyncio.sleep(GATHER_SECONDS)
        else:
            await asyncio.sleep(pause)

    async def store_what_arrives(self) -> None:
        while True:
            arrived_at, first = await self.arrived.get()
            await asyncio.sleep(arrived_at + STORE_WITHIN_SECONDS - self.clock())
            batch = [first]
            while len(batch) < STORE_AT_MOST and not self.arrived.empty():
                batch.append(self.arrived.get_nowait()[1])
            await self.store(batch)
            self.held -= len(batch)
            for _ in batch:
                self.arrived.task_done()
