"""What a process finds out about a server, in a world with a clock of its own."""

import heapq
import math
import random
from collections import Counter, deque
from dataclasses import dataclass, field

import pytest

from evaluations.llm.capacity import Capacity
from evaluations.llm.concurrency_window import (
    CAUTIOUS_START,
    DEFAULT_START,
    MAX_IN_FLIGHT,
    ConcurrencyWindow,
    LatencyLevel,
    RequestInFlight,
)
from evaluations.llm.rate_limits import RateLimits

PER_SECOND = 50


@dataclass
class Server:
    """One that takes so many a second, or at once, or works on so many at a time.

    Latencies are within a tenth of ``latency``, or lognormal around it with this ``spread`` of their logarithms.
    """

    per_second: int | None = None
    at_once: int | None = None
    workers: int | None = None
    latency: float = 0.2
    spread: float | None = None
    retry_after: float | None = None
    taken: deque[float] = field(default_factory=deque)
    free_at: list[float] = field(default_factory=list)
    in_flight: int = 0

    def takes(self, now: float) -> bool:
        while self.taken and self.taken[0] <= now - 1:
            self.taken.popleft()
        if self.per_second is not None and len(self.taken) >= self.per_second:
            return False
        if self.at_once is not None and self.in_flight >= self.at_once:
            return False
        self.taken.append(now)
        return True

    def done_at(self, now: float, seconds: float) -> float:
        if self.workers is None:
            return now + seconds
        begins = max(now, heapq.heappop(self.free_at)) if len(self.free_at) >= self.workers else now
        heapq.heappush(self.free_at, begins + seconds)
        return begins + seconds


@dataclass
class World:
    """Sends all that may be sent; counts answers and refusals by the second in which they came."""

    server: Server
    limits: RateLimits = field(default_factory=RateLimits)
    now: float = 0.0
    answers: Counter[int] = field(default_factory=Counter)
    refusals: Counter[int] = field(default_factory=Counter)
    sends: list[float] = field(default_factory=list)
    coming: list[tuple[float, int, bool, RequestInFlight]] = field(default_factory=list)
    most_in_flight: int = 0
    took: list[tuple[float, float]] = field(default_factory=list)  # when an answer came, and after how long
    spells: list[tuple[float, float, int]] = field(default_factory=list)  # from when, for how long, how many

    def __post_init__(self) -> None:
        self.capacity = Capacity()
        self.capacity.set_limits(self.limits, 0.0)
        self.chance = random.Random(1)

    def run(self, until: float) -> "World":
        capacity = self.capacity
        while self.now < until:
            while capacity.in_flight < capacity.max_in_flight_now and capacity.wait(self.now) <= 0:
                self.send()
            paced = capacity.wait(self.now) if capacity.in_flight < capacity.max_in_flight_now else math.inf
            answered = self.coming[0][0] if self.coming else math.inf
            later = min(answered, self.now + max(paced, 1e-4))
            self.spells.append((self.now, later - self.now, capacity.in_flight))
            self.now = later
            while self.coming and self.coming[0][0] <= self.now:
                self.receive()
        return self

    def send(self) -> None:
        sent = self.capacity.sent(self.now)
        self.sends.append(self.now)
        self.most_in_flight = max(self.most_in_flight, self.capacity.in_flight)
        is_taken = self.server.takes(self.now)
        self.server.in_flight += is_taken
        seconds = self.server.latency * self.chance.uniform(0.9, 1.1)
        if spread := self.server.spread:
            seconds = self.server.latency * self.chance.lognormvariate(-(spread**2) / 2, spread)
        at = self.server.done_at(self.now, seconds) if is_taken else self.now + 0.01
        heapq.heappush(self.coming, (at, sent.number, is_taken, sent))

    def receive(self) -> None:
        _, _, is_taken, sent = heapq.heappop(self.coming)
        if is_taken:
            self.server.in_flight -= 1
            self.answers[int(self.now)] += 1
            self.took.append((self.now, self.now - sent.at))
            self.capacity.answered(sent, self.now, 1000)
        else:
            self.refusals[int(self.now)] += 1
            self.capacity.rejected(sent, self.now, self.server.retry_after)
        self.capacity.end()

    def per_second(self, first: int, last: int) -> float:
        return sum(self.answers[second] for second in range(first, last)) / (last - first)

    def in_flight(self, first: float, last: float) -> float:
        """The mean over this time."""
        spells = [(seconds, number) for at, seconds, number in self.spells if first <= at < last]
        return sum(seconds * number for seconds, number in spells) / sum(seconds for seconds, _ in spells)

    def slower_than(self, seconds: float, first: float) -> float:
        """The share of the answers since then that took longer."""
        took = [took for at, took in self.took if at >= first]
        return sum(one > seconds for one in took) / len(took)

    def refused(self, last: int) -> float:
        refused = sum(self.refusals[second] for second in range(last))
        return refused / (refused + sum(self.answers[second] for second in range(last)))


# ---- a rate that nobody told ---------------------------------------------------------------


@pytest.mark.parametrize("retry_after", [None, 1.0])
@pytest.mark.parametrize("latency", [0.2, 1.0])
def test_a_rate_limit_is_found_and_kept_almost_without_refusals(latency: float, retry_after: float | None) -> None:
    world = World(Server(per_second=PER_SECOND, latency=latency, retry_after=retry_after)).run(120)
    late = round(latency)  # it begins with two until it knows that the server is quick
    assert world.per_second(15 + late, 20 + late) >= 0.9 * PER_SECOND
    assert world.refused(20) < 0.03
    assert world.per_second(20, 120) >= 0.9 * PER_SECOND
    assert world.refused(120) < 0.01


def test_it_is_found_from_a_stated_number_of_requests_at_once_as_well() -> None:
    world = World(Server(per_second=PER_SECOND), RateLimits(max_in_flight=64)).run(40)
    assert world.per_second(15, 40) >= 0.9 * PER_SECOND
    assert world.refused(20) < 0.03


def test_tries_for_more_become_rarer_while_they_are_vain() -> None:
    world = World(Server(per_second=PER_SECOND)).run(300)
    bursts = sorted(world.refusals)
    assert len(bursts) <= 8
    assert bursts[-1] - bursts[-2] > bursts[3] - bursts[2]


def test_a_limit_that_was_raised_is_found_again() -> None:
    world = World(Server(per_second=PER_SECOND)).run(30)
    world.server.per_second = 2 * PER_SECOND
    world.run(150)
    assert world.per_second(140, 150) >= 0.85 * 2 * PER_SECOND


def test_a_limit_that_was_lowered_is_found_again() -> None:
    world = World(Server(per_second=PER_SECOND)).run(30)
    world.server.per_second = PER_SECOND // 2
    world.run(80)
    assert world.per_second(60, 80) >= 0.85 * PER_SECOND / 2
    assert world.refused(80) < 0.03


def test_a_limit_on_requests_at_once_is_found_by_the_same_means() -> None:
    world = World(Server(at_once=20)).run(60)
    assert world.per_second(30, 60) >= 0.8 * 20 / 0.2
    assert world.refused(60) < 0.03


def test_after_retry_after_nobody_sends_before_that_time() -> None:
    world = World(Server(per_second=PER_SECOND, retry_after=7.0)).run(20)
    first = min(world.refusals)
    assert not [at for at in world.sends if first + 1 < at < first + 7]


# ---- requests at once ----------------------------------------------------------------------


def test_a_server_that_keeps_up_gets_as_many_as_one_process_ever_sends() -> None:
    world = World(Server()).run(20)
    assert world.most_in_flight == MAX_IN_FLIGHT
    assert world.per_second(0, 1) < 100  # and begins low
    assert Capacity().max_in_flight_now == CAUTIOUS_START


def test_a_slow_server_is_found_within_a_few_round_trips() -> None:
    world = World(Server(latency=5.0)).run(40)
    assert world.most_in_flight == MAX_IN_FLIGHT


def test_a_stated_number_is_where_it_begins_and_never_exceeded() -> None:
    world = World(Server(), RateLimits(max_in_flight=128)).run(5)
    assert world.most_in_flight == 128
    assert world.per_second(1, 5) >= 0.9 * 128 / 0.2


def test_one_burst_of_refusals_halves_once() -> None:
    capacity = Capacity()
    capacity.set_limits(RateLimits(max_in_flight=64), 0.0)
    burst = [capacity.sent(0.0) for _ in range(10)]
    for sent in burst:
        capacity.rejected(sent, 0.1)
        capacity.end()
    assert capacity.max_in_flight_now == 32
    later = capacity.sent(5.0)
    capacity.rejected(later, 5.1)
    assert capacity.max_in_flight_now == 16


def test_timeouts_halve_once_a_round_trip_and_nothing_is_learnt_of_a_rate() -> None:
    capacity = Capacity()
    capacity.set_limits(RateLimits(max_in_flight=64), 0.0)
    for sent in [capacity.sent(0.0) for _ in range(10)]:
        capacity.timed_out(sent, 60.0)
        capacity.end()
    assert capacity.max_in_flight_now == 32
    assert capacity.wait(60.0) == 0


def test_a_window_that_is_not_full_does_not_grow() -> None:
    capacity = Capacity()
    for number in range(100):
        capacity.answered(capacity.sent(float(number)), number + 0.2)
        capacity.end()
    assert capacity.max_in_flight_now == DEFAULT_START


def test_more_at_once_is_given_up_where_it_brings_longer_waits_and_no_more_answers() -> None:
    """Thirty-two are worked on at a time: 160 a second. The rest of 256 would only wait."""
    world = World(Server(workers=32)).run(60)
    assert world.per_second(20, 60) >= 0.95 * 32 / 0.2
    waiting = [world.capacity.max_in_flight_now]
    for second in range(61, 120):
        world.run(second)
        waiting.append(world.capacity.max_in_flight_now)
    assert sorted(waiting)[len(waiting) // 2] <= 4 * 32


# ---- a server that works on few at once ----------------------------------------------------


@pytest.mark.parametrize(
    ("slots", "latency", "settled_by", "until"),
    [(4, 5.0, 120, 900), (1, 20.0, 200, 3000), (8, 0.5, 30, 300), (32, 0.2, 20, 120)],
)
def test_no_more_are_in_flight_than_keep_a_slow_server_busy(
    slots: int, latency: float, settled_by: int, until: int
) -> None:
    """Slots ÷ latency a second is all that it can answer: beyond its slots, requests only wait.

    With up to as many waiting as are worked on, an answer takes up to twice as long as alone; tries for more, three
    times at most but for a few.
    """
    world = World(Server(workers=slots, latency=latency)).run(until)
    assert world.per_second(settled_by, until) >= 0.95 * slots / latency
    assert slots <= world.in_flight(settled_by, until) <= max(2 * slots, 2.2)
    assert world.slower_than(3 * latency, settled_by) <= 0.05
    assert world.most_in_flight <= 4 * max(slots, CAUTIOUS_START)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("slots", "latency", "settled_by", "until"), [(4, 5.0, 300, 3000), (8, 0.5, 30, 300)])
def test_the_same_is_found_where_replies_differ_in_length(
    seed: int, slots: int, latency: float, settled_by: int, until: int
) -> None:
    """Nineteen of twenty latencies lie between a third and three times the middle one: a spread of 0.55."""
    world = World(Server(workers=slots, latency=latency, spread=0.55))
    world.chance = random.Random(seed)
    world.run(until)
    assert world.per_second(settled_by, until) >= 0.85 * slots / latency
    assert world.in_flight(settled_by, until) <= 2.5 * slots


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("spread", [0.55, 1.1])
@pytest.mark.parametrize(("latency", "full_by"), [(0.2, 6), (5.0, 120)])
def test_latencies_that_only_vary_hold_nothing_back(latency: float, full_by: int, spread: float, seed: int) -> None:
    """A spread of 1.1: two of three lie between a third and three times the middle one."""
    world = World(Server(latency=latency, spread=spread))
    world.chance = random.Random(seed)
    world.run(full_by + 5 * latency)
    assert world.most_in_flight == MAX_IN_FLIGHT
    assert world.in_flight(full_by, full_by + 5 * latency) >= 0.9 * MAX_IN_FLIGHT


def test_a_server_that_became_larger_is_used_in_full_within_minutes() -> None:
    """Four slots of five seconds answer 0.8 a second, eight 1.6."""
    world = World(Server(workers=4, latency=5.0)).run(400)
    assert world.in_flight(120, 400) <= 8
    world.server.workers = 8
    world.run(1200)
    assert world.per_second(700, 1200) >= 0.95 * 1.6
    assert 8 <= world.in_flight(700, 1200) <= 16


def test_a_judge_whose_replies_take_longer_is_not_taken_for_a_server_that_is_full() -> None:
    world = World(Server(latency=0.2)).run(2)
    world.server.latency = 5.0
    world.run(180)
    assert world.in_flight(150, 180) >= 0.9 * MAX_IN_FLIGHT


def test_where_two_share_a_server_a_larger_part_of_the_same_answers_is_no_gain() -> None:
    """Each had four in flight at five seconds, 0.8 a second. With eight of twelve it has two thirds of 1.6: 1.07."""
    window = ConcurrencyWindow(baseline=level(in_flight=4, seconds=5.0), above=level(in_flight=8, seconds=7.5))
    assert window.log_odds() > 0
    window.sharers = 2
    assert window.log_odds() < 0


def level(in_flight: int, seconds: float) -> LatencyLevel:
    return LatencyLevel(math.log(in_flight), count=20, in_flight=math.log(in_flight), seconds=math.log(seconds))


@pytest.mark.parametrize("latency", [0.2, 1.9, 2.1, 60.0])
def test_two_are_in_flight_until_it_is_known_whether_the_server_is_quick(latency: float) -> None:
    capacity = Capacity()
    assert capacity.max_in_flight_now == CAUTIOUS_START == 2
    first, _second = capacity.sent(0.0), capacity.sent(0.0)
    assert capacity.max_in_flight_now == 2
    capacity.answered(first, latency)
    assert (capacity.max_in_flight_now >= DEFAULT_START) == (latency <= 2)


def test_a_server_that_refused_one_of_the_first_two_is_not_hurried() -> None:
    capacity = Capacity()
    first, second = capacity.sent(0.0), capacity.sent(0.0)
    capacity.rejected(second, 0.1)
    capacity.answered(first, 0.2)
    assert capacity.max_in_flight_now == 1


def test_slots_that_the_server_told_of_are_where_it_begins_and_ends() -> None:
    world = World(Server(workers=4, latency=5.0), RateLimits(slots=4)).run(300)
    assert world.most_in_flight == 4
    assert world.per_second(5, 300) >= 0.95 * 4 / 5


def test_each_worker_begins_with_its_part_of_the_slots_and_may_have_all() -> None:
    capacity = Capacity()
    capacity.set_limits(RateLimits(slots=5), 0.0, workers=2)
    assert (capacity.max_in_flight_now, capacity.window.most) == (3, 5)


def test_a_limit_that_was_set_goes_before_the_slots() -> None:
    capacity = Capacity()
    capacity.set_limits(RateLimits(max_in_flight=12, slots=4), 0.0, workers=2)
    assert capacity.max_in_flight_now == 12


def test_a_share_of_one_that_becomes_larger_is_used() -> None:
    world = World(Server(), RateLimits(max_in_flight=1)).run(2)
    world.capacity.set_limits(RateLimits(), 2.0)
    world.run(15)
    assert world.most_in_flight == MAX_IN_FLIGHT


# ---- limits that were set ------------------------------------------------------------------


@pytest.mark.parametrize("per_minute", [6, 60, 600, 6000])
def test_in_no_minute_more_is_sent_than_is_allowed(per_minute: int) -> None:
    world = World(Server(), RateLimits(requests_per_minute=per_minute)).run(200)
    for begin in range(140):
        sent = sum(begin <= at < begin + 60 for at in world.sends)
        assert sent <= per_minute
    assert len(world.sends) / 200 * 60 >= 0.95 * per_minute


def test_tokens_are_taken_out_before_and_corrected_after() -> None:
    """A thousand tokens a call, 60,000 a minute: one call a second, however many might fly."""
    world = World(Server(), RateLimits(tokens_per_minute=60_000)).run(200)
    assert 0.9 <= world.per_second(60, 200) <= 1.0


def test_a_share_that_shrinks_lets_nothing_more_fly_until_it_fits() -> None:
    capacity = Capacity()
    capacity.set_limits(RateLimits(max_in_flight=10), 0.0)
    taker = capacity.join()
    in_flight = [taker.sent(0.0) for _ in range(10)]
    capacity.set_limits(RateLimits(max_in_flight=5), 1.0)
    assert taker.room(1.0) == 0
    for sent in in_flight[:6]:
        capacity.answered(sent, 2.0)
        taker.ended()
    assert taker.room(2.0) == 1


# ---- several bouts -------------------------------------------------------------------------


def test_two_bouts_at_one_endpoint_have_half_each_and_one_that_wants_nothing_leaves_its_part() -> None:
    capacity = Capacity()
    capacity.set_limits(RateLimits(max_in_flight=10), 0.0)
    one, two = capacity.join(), capacity.join()
    assert one.room(0.0) == two.room(0.0) == 5
    two.want(False)
    assert one.room(0.0) == 10


def test_a_successor_goes_on_with_what_its_predecessor_found() -> None:
    world = World(Server(per_second=PER_SECOND)).run(20)
    taker = world.capacity.join()
    assert world.capacity.rate.limit == pytest.approx(PER_SECOND, rel=0.05)
    taker.leave()
    assert not world.capacity.users


def test_from_refusals_alone_no_rate_is_learned() -> None:
    # Twelve lone requests in a row are refused with a wait of 0: the first guess of 8 a second stays, and half is kept.
    capacity = Capacity()
    now = 0.0
    for _ in range(12):
        now += capacity.wait(now)
        sent = capacity.sent(now)
        now += 0.2
        capacity.rejected(sent, now, after=0.0)
        capacity.end()
    assert capacity.rate.limit == 8
    assert capacity.wait(now) <= 1 / 4
