"""The asking loop with a clock and a world of its own: no network, no database."""

import asyncio
import selectors
from collections.abc import Coroutine, Sequence
from dataclasses import dataclass, field

import pytest

from evaluations.llm.request_loop import ClaimResult, RequestLoop


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
class Places:
    """So many requests at once, and none before a moment."""

    most: int
    in_flight: int = 0
    closed_until: float = 0.0
    ahead: int = 0

    def room(self, now: float) -> int:
        return self.most - self.in_flight

    def wait(self, now: float) -> float:
        return max(self.closed_until - now, 0)

    def expected_room(self, now: float) -> int:
        return self.room(now) + self.ahead if self.wait(now) <= 0 else 0

    def want(self, more: bool) -> None:
        pass


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
    most_flying: int = 0
    handed_over: int = 0
    store_fails: bool = False
    leaves_after: float | None = None
    back: set[int] = field(default_factory=set)
    ahead: int = 0
    given_back: list[int] = field(default_factory=list)
    claims: int = 0
    paused_after: float | None = None
    claim_takes: float = 0.0
    asked_at: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.waiting = list(range(self.questions))
        self.places = Places(self.in_flight, ahead=self.ahead)

    async def claim(self, room: int, held: int) -> ClaimResult[int]:
        self.claims += 1
        if self.paused_after is not None and now() >= self.paused_after:
            return ClaimResult()
        taken, self.waiting = self.waiting[:room], self.waiting[room:]
        await asyncio.sleep(self.claim_takes)  # written down, and not known here yet
        return ClaimResult(taken)

    def ask(self, question: int) -> Coroutine[None, None, int]:
        self.asked.append(question)
        self.asked_at.append(now())
        self.places.in_flight += 1
        self.most_flying = max(self.most_flying, self.places.in_flight)
        return self.answer(question)

    async def answer(self, question: int) -> int:
        await asyncio.sleep(self.latency)
        self.places.in_flight -= 1
        self.arrived_at[question] = now()
        return question

    async def store(self, answers: Sequence[int]) -> None:
        if self.store_fails:
            raise OSError("disk full")
        self.lags += [now() - self.arrived_at[answer] for answer in answers]
        self.batches.append(list(answers))
        self.waiting += [answer for answer in answers if answer in self.back]
        self.back -= set(answers)

    async def give_back(self, questions: Sequence[int]) -> None:
        self.given_back += questions
        self.waiting += questions

    async def hand_over(self) -> None:
        self.handed_over += 1

    def run(self) -> None:
        async def main() -> None:
            loop = RequestLoop(
                claim=self.claim,
                request=self.ask,
                store=self.store,
                hand_over=self.hand_over,
                clock=now,
                work_until=now() + self.seconds,
                is_leaving=lambda: self.leaves_after is not None and now() >= self.leaves_after,
                slots=self.places,
                give_back=self.give_back,
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


def test_nothing_more_is_sent_while_a_commit_does_not_end_and_all_goes_on_once_it_has() -> None:
    # From 0.02 s the first four answers are being stored, until 30 s. Sent until 0.52 s: four every 0.1 s.
    world = World(100, in_flight=4, latency=0.1)

    async def store_slowly(answers: Sequence[int]) -> None:
        if not world.batches:
            await asyncio.sleep(30)
        await World.store(world, answers)

    world.store = store_slowly  # type: ignore[method-assign]
    world.run()
    assert len([at for at in world.asked_at if at < 29]) <= 4 * 7
    assert world.stored == list(range(100))


def test_what_lies_ready_is_given_back_where_answers_cannot_be_stored() -> None:
    world = World(100, in_flight=4, latency=0.1, store_fails=True, ahead=4)
    with pytest.raises(OSError, match="disk full"):
        world.run()
    assert sorted([*world.asked, *world.waiting]) == list(range(100))


def test_what_is_being_claimed_when_answers_cannot_be_stored_is_given_back() -> None:
    world = World(100, in_flight=4, latency=0.1, store_fails=True, claim_takes=0.05)
    with pytest.raises(OSError, match="disk full"):
        world.run()
    assert world.given_back
    assert sorted([*world.asked, *world.waiting]) == list(range(100))


def test_a_claim_that_fails_still_lets_what_flies_be_stored() -> None:
    world = World(4, in_flight=8, latency=0.05)

    async def claim_once(room: int, held: int) -> ClaimResult[int]:
        if held:
            raise ConnectionError("database gone")
        return await World.claim(world, room, held)

    world.claim = claim_once  # type: ignore[method-assign]
    with pytest.raises(ConnectionError):
        world.run()
    assert world.stored == [0, 1, 2, 3]


def test_a_place_that_becomes_free_waits_for_no_claim_while_questions_lie_ready() -> None:
    world = World(400, in_flight=8, latency=0.1, ahead=4)
    claim = world.claim

    async def slow_claim(room: int, held: int) -> ClaimResult[int]:
        await asyncio.sleep(0.03)
        return await claim(room, held)

    world.claim = slow_claim  # type: ignore[method-assign]
    world.run()
    assert world.most_flying == 8
    assert world.asked_at[-1] < 400 / 8 * 0.1 + 1


def test_a_pause_takes_effect_within_two_seconds_however_long_the_server_takes() -> None:
    world = World(1000, in_flight=4, latency=30.0, ahead=4, paused_after=0.5)
    world.run()
    assert len(world.asked) == 4
    assert sorted(world.asked + world.waiting) == list(range(1000))
    assert world.given_back
    assert max(world.asked_at) < 2.5


def test_what_lies_ready_when_time_is_up_is_given_back_unsent() -> None:
    world = World(100, in_flight=2, latency=5.0, ahead=4, seconds=0.5)
    world.run()
    assert sorted(world.asked) == sorted(world.stored)
    assert len(world.given_back) == 4
    assert world.handed_over == 1


def test_nothing_is_sent_before_the_pace_allows_it() -> None:
    world = World(3, in_flight=4)
    world.places.closed_until = 2.0
    world.run()
    assert min(world.asked_at) >= 2.0
    assert world.stored == [0, 1, 2]


def test_a_silence_of_minutes_is_left_to_the_sweep() -> None:
    world = World(3, in_flight=4)
    world.places.closed_until = 300.0
    world.run()
    assert not world.asked
    assert not world.claims
