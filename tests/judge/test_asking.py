"""The asking loop with a clock and a world of its own: no network, no database."""

import asyncio
import selectors
from collections.abc import Sequence
from dataclasses import dataclass, field

import pytest

from evaluations.judge.asking import Claimed, Loop


class Jumping(selectors.SelectSelector):
    """Waiting for time to pass, it has passed: what is tested is the loop, not this machine's hurry."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        assert timeout is not None, "everybody waits, and nothing is to come"
        self.now += timeout
        return super().select(0)


class JumpingLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self.jumping = Jumping()
        super().__init__(self.jumping)

    def time(self) -> float:
        return self.jumping.now


def now() -> float:
    return asyncio.get_running_loop().time()


@dataclass
class World:
    """Questions 0 … n-1, asked in turn; what was asked and stored is written down."""

    questions: int
    in_flight: int = 4
    seconds: float = 60.0
    latency: float = 0.0
    waiting: list[int] = field(default_factory=list)
    asked: list[int] = field(default_factory=list)
    arrived_at: dict[int, float] = field(default_factory=dict)
    lags: list[float] = field(default_factory=list)
    batches: list[list[int]] = field(default_factory=list)
    flying: int = 0
    most_flying: int = 0
    handed_over: int = 0
    store_fails: bool = False
    leaves_after: float | None = None
    back: set[int] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.waiting = list(range(self.questions))

    async def claim(self, room: int, held: int) -> Claimed[int]:
        taken, self.waiting = self.waiting[:room], self.waiting[room:]
        return Claimed(taken)

    async def ask(self, question: int) -> int:
        self.asked.append(question)
        self.flying += 1
        self.most_flying = max(self.most_flying, self.flying)
        await asyncio.sleep(self.latency)
        self.flying -= 1
        self.arrived_at[question] = now()
        return question

    async def store(self, answers: Sequence[int]) -> None:
        if self.store_fails:
            raise OSError("disk full")
        self.lags += [now() - self.arrived_at[answer] for answer in answers]
        self.batches.append(list(answers))
        self.waiting += [answer for answer in answers if answer in self.back]
        self.back -= set(answers)

    async def hand_over(self) -> None:
        self.handed_over += 1

    def run(self) -> None:
        async def main() -> None:
            loop = Loop(
                claim=self.claim,
                ask=self.ask,
                store=self.store,
                hand_over=self.hand_over,
                clock=now,
                work_until=now() + self.seconds,
                is_leaving=lambda: self.leaves_after is not None and now() >= self.leaves_after,
                in_flight=self.in_flight,
            )
            await loop.run()

        with asyncio.Runner(loop_factory=JumpingLoop) as runner:
            runner.run(main())

    @property
    def stored(self) -> list[int]:
        return sorted(answer for batch in self.batches for answer in batch)


def test_every_question_is_asked_and_stored_once() -> None:
    world = World(200, in_flight=16)
    world.run()
    assert world.stored == list(range(200))
    assert sorted(world.asked) == list(range(200))
    assert world.handed_over == 0


def test_as_many_requests_are_in_flight_as_allowed_and_never_more() -> None:
    world = World(60, in_flight=8, latency=0.02)
    world.run()
    assert world.most_flying == 8


def test_an_answer_is_stored_within_fifty_milliseconds_in_batches_of_at_most_64() -> None:
    world = World(400, in_flight=200, latency=0.01)
    world.run()
    assert max(len(batch) for batch in world.batches) <= 64
    assert 0 < max(world.lags) < 0.05


def test_a_question_that_went_back_to_wait_is_asked_again_in_the_same_bout() -> None:
    world = World(3, back={1})
    world.run()
    assert world.asked.count(1) == 2
    assert world.stored == [0, 1, 1, 2]


def test_when_time_is_up_the_work_is_handed_over_and_what_flies_is_still_stored() -> None:
    world = World(1000, in_flight=4, latency=0.1, seconds=0.15)
    world.run()
    assert world.handed_over == 1
    assert world.stored == sorted(world.asked)
    assert 4 <= len(world.stored) < 1000


def test_a_worker_that_is_told_to_leave_asks_no_more_and_stores_what_flies() -> None:
    world = World(1000, in_flight=4, latency=0.1, leaves_after=0.25)
    world.run()
    assert world.handed_over == 1
    assert world.stored == sorted(world.asked)
    assert len(world.stored) == 4 * 3


def test_nothing_more_is_bought_once_answers_cannot_be_stored() -> None:
    world = World(1000, in_flight=4, latency=0.01, store_fails=True)
    with pytest.raises(OSError, match="disk full"):
        world.run()
    assert len(world.asked) < 50


def test_a_claim_that_fails_still_lets_what_flies_be_stored() -> None:
    world = World(4, in_flight=8, latency=0.05)

    async def claim_once(room: int, held: int) -> Claimed[int]:
        if held:
            raise ConnectionError("database gone")
        return await World.claim(world, room, held)

    world.claim = claim_once  # type: ignore[method-assign]
    with pytest.raises(ConnectionError):
        world.run()
    assert world.stored == [0, 1, 2, 3]
