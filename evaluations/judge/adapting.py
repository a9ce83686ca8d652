"""How many requests a process has at one endpoint, and how fast it sends them: found out, not told.

Pure: every function is told what time it is. Three things decide together, the lowest counts:

- ``Window``: requests at once. It grows while it is full and more at once brings more answers, halves when
  the server is overrun, and goes back where latency grew in proportion to the requests in flight.
- ``Pace``: requests a second. Unbounded until the server turns requests away (429). It then stays
  just under the rate at which that began, and seldom tries a little more.
- ``Bucket``: the limits that the endpoint's administrator set, or this process's share of them.
"""

import math
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Literal

CEILING: Final = 256  # requests at once from one process, where no limit is set
# Before the first answer, and after it where it was not quick: a slow server may work on one at a time.
BEGIN_SLOWLY_WITH: Final = 2
BEGIN_WITH: Final = 8
QUICK_SECONDS: Final = 2.0
# Before the first sign of trouble the window grows by as much a second, at most by itself a round trip.
GROWTH_A_SECOND: Final = 1.0
# How far it may grow before it is known whether that was worth it: at first, and once it has gone back.
REACH: Final = 2.0
REACH_AGAIN: Final = 1.5
WORTH_TRYING: Final = 1.25
# Of the growth of answers that as much growth of requests at once would bring where nobody waits: what is
# worth it, and what is worth it beyond doubt.
WORTH_MORE: Final = 0.25
WELL_WORTH: Final = 0.5
SURE_OF_MORE: Final = 2.0  # the logarithm of the odds from which it goes on growing
SURE_OF_MORE_AGAIN: Final = 3.0  # once it has gone back
SURE_OF_NO_MORE: Final = -3.0  # and that from which it goes back
UNSURE: Final = -1.0
FEW: Final = 4  # answers at the mark: more of them above do not help to decide
JUDGED_BY: Final = 64  # answers decide without being sure
# How far the logarithms of latencies are spread, as long as few are known: as if so many had shown it.
SPREAD: Final = 0.2**2
SPREAD_COUNTS: Final = 3
SPARE: Final = 1.25  # of what a server works on at once: it never waits for us
MOST_SPARE: Final = 2.0
LONGEST_WAIT: Final = math.log(3.0)  # beyond three times the least latency nothing grows
# The server and what it is asked may have changed after so long and so many answers.
LEAST_FOR_SECONDS: Final = 600.0
LEAST_FOR_ANSWERS: Final = 1000
PLATEAU_SECONDS: Final = 30.0
LONGEST_PLATEAU_SECONDS: Final = 240.0

STAY_UNDER: Final = 0.96  # of the rate at which the server began to refuse
STEP_BACK: Final = 0.97
MUCH_MORE: Final = 1.06  # a try that came so far has found a new limit
CLIMB_SECONDS: Final = 3.0  # from half the rate back to all of it
TRY_AFTER_SECONDS: Final = 15.0  # doubled after each vain try
TRY_AT_MOST_SECONDS: Final = 300.0
TRY_SOON_SECONDS: Final = 3.0  # where the rate was but half known
TRY_GROWTH_A_SECOND: Final = 0.03
BREATH_SECONDS: Final = 0.5  # of silence after a refusal that names no time; doubled while it does not help
LONGEST_BREATH_SECONDS: Final = 32.0
MEASURE_SECONDS: Final = 1.0  # a rate measured over less says nothing
BURST_SECONDS: Final = 0.01  # of sending at once, where the loop was late
LIMIT_SECONDS: Final = 60.0
AHEAD_SECONDS: Final = 0.15  # longer than a claim takes, on a busy machine too
HELD_SECONDS: Final = 0.25  # until a share that had run out is looked at again


@dataclass(frozen=True)
class Limits:
    """What an administrator allows, or a process's share of it. None: as much as the server takes.

    ``slots``: how many requests the server says it works on at once, which no share divides.
    """

    max_in_flight: int | None = None
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    slots: int | None = None

    @property
    def begin_with(self) -> int | None:
        """How many requests at once are known to be right, by whoever set the limit or by the server itself."""
        return self.slots if self.max_in_flight is None else self.max_in_flight


@dataclass(frozen=True)
class Sent:
    """A request on its way: the ``number``-th, with so many ``flying``. ``tokens`` were taken out for it."""

    at: float
    number: int
    flying: int
    tokens: float


@dataclass
class Bucket:
    """Fills by ``rate`` a second up to ``most``; what is sent is taken out, and may leave a debt."""

    rate: float
    most: float
    level: float = 0.0
    filled_at: float = -math.inf

    def fill(self, now: float) -> None:
        if now > self.filled_at:
            gained = (now - self.filled_at) * self.rate if self.rate else 0.0
            self.level, self.filled_at = min(self.most, self.level + gained), now

    def wait(self, now: float, amount: float) -> float:
        """Seconds until so much is there; more than it holds is there when it is full."""
        self.fill(now)
        missing = min(amount, self.most) - self.level
        if missing <= 1e-9:
            return 0.0
        return missing / self.rate if self.rate else math.inf

    def change(self, rate: float, most: float, now: float) -> None:
        self.fill(now)
        self.rate, self.most = rate, most
        self.level = min(self.level, most)


# ---- requests at once ----------------------------------------------------------------------


@dataclass
class Level:
    """Answers to requests that were sent while about as many were in flight: the means of both logarithms.

    ``top``: the logarithm of the most in flight at which an answer belongs here.
    """

    top: float = 0.0
    count: int = 0
    flying: float = 0.0
    seconds: float = 0.0
    spread: float = 0.0  # the variance of the latencies' logarithms

    def add(self, flying: float, seconds: float) -> None:
        """Take one more into account, the latest 64 above all."""
        self.count = min(self.count + 1, JUDGED_BY)
        apart = seconds - self.seconds
        self.flying += (flying - self.flying) / self.count
        self.seconds += apart / self.count
        self.spread += (apart**2 * (1 - 1 / self.count) - self.spread) / self.count

    @property
    def mean_seconds(self) -> float:
        """The logarithm of the mean, which the mean of logarithms is below."""
        return self.seconds + self.spread / 2


@dataclass
class Window:
    """Requests at once.

    In a server that works on all at once latency does not depend on how many there are; in one that has as many
    as it can work on, more at once wait longer in proportion. So the latencies at two sizes, a quarter or more
    apart, show whether the larger brings more answers. Single latencies show little, for replies differ in
    length: their logarithms are compared, and ``spread`` tells how many are needed.

    ``mark``: the answers at the size that was last worth it. ``above``: those at a larger size since.
    ``reach``: how far it may grow meanwhile. ``sharers``: how many processes have requests in flight, this one
    included. Where a full server has two, the one that doubles its requests takes a third more from the other.
    """

    size: float = BEGIN_SLOWLY_WITH
    most: float = CEILING
    threshold: float = math.inf  # from here on it grows by one a round trip
    cut_at: float = -math.inf
    full_at: float = -math.inf
    reach: float = BEGIN_SLOWLY_WITH
    earned: float = 0.0  # what it would have grown by beyond its reach
    mark: Level = field(default_factory=Level)
    above: Level = field(default_factory=Level)
    least: Level | None = None  # the answers with the least latency
    least_at: float = -math.inf
    since_least: int = 0
    known_spread: float = SPREAD
    counted_from: float = -math.inf
    held_until: float = -math.inf
    vain: int = 0
    sharers: int = 1

    def begin(self, size: float) -> None:
        self.size, self.reach = size, max(size, BEGIN_SLOWLY_WITH)

    def begin_quickly(self, took: float) -> None:
        """After a first answer that was quick: as many as those would have earned that could have flown with it."""
        if self.size < BEGIN_WITH and self.cut_at == -math.inf:
            self.begin(BEGIN_WITH)
            self.earned = BEGIN_WITH * min(1.0, took * GROWTH_A_SECOND)

    def grow(self, sent: Sent, now: float) -> None:
        """After an answer, if it was full meanwhile: by one a round trip, before the first trouble by up to double."""
        if self.full_at < sent.at or sent.at < max(self.cut_at, self.counted_from):
            return
        took = now - sent.at
        early = min(1.0, took * GROWTH_A_SECOND)
        if self.count(sent, now) and took > QUICK_SECONDS and self.size < self.threshold:
            self.earned = max(self.earned, self.size)  # the rest of these answers may take seconds
        if now >= max(self.held_until, self.counted_from):
            self.earned += early if self.size < self.threshold else 1 / self.size
            more = max(min(self.earned, min(self.most, self.reach) - self.size), 0.0)
            self.size += more
            self.earned = min(self.earned - more, self.size)

    def cut(self, sent: Sent, now: float, back_to: float) -> bool:
        """Halve; what was sent before the last cut belongs to the same burst, and cuts nothing."""
        if sent.at < self.cut_at:
            return False
        self.threshold = max(1.0, self.size * back_to)
        self.reach = max(self.size, BEGIN_SLOWLY_WITH)
        self.size, self.cut_at = max(1.0, self.size / 2), now
        self.vain = 0
        self.begin_count(now)
        return True

    def begin_count(self, now: float) -> None:
        self.known_spread = self.spread
        self.mark, self.above, self.earned, self.counted_from = Level(math.log(self.size)), Level(), 0.0, now

    def count(self, sent: Sent, now: float) -> bool:
        """Count an answer at its level. Whether it shows that more at once brought more answers."""
        self.since_least += 1
        flying, seconds = math.log(sent.flying), math.log(max(now - sent.at, 1e-6))
        if flying <= self.mark.top:
            self.mark.add(flying, seconds)
        elif flying >= (self.mark.flying if self.mark.count else self.mark.top) + math.log(WORTH_TRYING):
            self.above.top = max(self.above.top, flying)
            self.above.add(flying, seconds)
        return self.above.count > 0 and now >= self.held_until and self.judge(now)

    @property
    def spread(self) -> float:
        """The variance within both levels, as if a few answers more had shown a usual one."""
        counts = self.mark.count + self.above.count
        within = self.mark.count * self.mark.spread + self.above.count * self.above.spread
        return (within + SPREAD_COUNTS * self.known_spread) / (max(counts - 2, 0) + SPREAD_COUNTS)

    def judge(self, now: float) -> bool:
        """Go on, go back, or wait for more answers. True where it goes on."""
        is_wave, is_known = self.above.count >= self.wave(), self.above.count >= JUDGED_BY
        if not self.mark.count:
            return is_wave and self.go_on()
        self.note_least(now)
        odds = self.odds()
        if is_wave and self.waits_long():
            return self.go_back(now)
        if self.mark.count < FEW and self.above.count >= 2 * FEW * self.mark.count and odds > UNSURE:
            return self.go_on()
        if is_wave and (odds >= (SURE_OF_MORE_AGAIN if self.vain else SURE_OF_MORE) or (is_known and odds > 0)):
            return self.go_on()
        return (odds <= SURE_OF_NO_MORE or is_known) and self.go_back(now)

    def waits_long(self) -> bool:
        """Whether answers above surely take several times the least latency, though there may be more of them."""
        doubt = math.sqrt(self.spread / self.above.count)
        return self.least is not None and self.above.mean_seconds - doubt > self.at_least(self.least) + LONGEST_WAIT

    def wave(self) -> float:
        """How many answers above are enough: of requests sent together those come first that waited least."""
        at_mark = math.exp(self.mark.top)
        within = min(self.size, REACH * at_mark)
        return min(max(within / 4, min(within - at_mark, 3)), JUDGED_BY)

    def odds(self) -> float:
        """The logarithm of the odds that more at once brought more answers, against no more."""
        more = self.above.flying - self.mark.flying
        gain = more - (self.above.seconds - self.mark.seconds)
        doubt = self.spread * (1 / self.above.count + 1 / self.mark.count)
        worth = 1 - (1 - WORTH_MORE) / self.sharers
        return (gain - worth * more) * WELL_WORTH * more / max(doubt, 1e-9)

    def go_on(self) -> Literal[True]:
        if self.vain:
            self.threshold, self.vain = math.inf, 0  # the server has become larger
        self.known_spread = self.spread
        self.mark, self.above = self.above, Level()
        self.reach = max(self.reach, REACH * self.size)
        return True

    def note_least(self, now: float) -> None:
        """Keep the mark as the level at which nobody waits: if its latency is the least, or the known one out of date.

        It is after a while, and where more requests at once do not explain a longer latency: then the server
        is asked something else, or has become slower.
        """
        if not self.mark.count:
            return
        is_old = now > self.least_at + LEAST_FOR_SECONDS and self.since_least > LEAST_FOR_ANSWERS
        if is_old or self.least is None or self.at_least(self.mark) < self.at_least(self.least):
            self.least, self.least_at, self.since_least = self.mark, now, 0
        doubt = math.sqrt(self.spread / self.mark.count)
        explained = max(self.mark.flying - self.least.flying, 0.0) + math.log(2 * self.sharers)
        if self.mark.seconds - doubt > self.at_least(self.least) + explained:
            self.least, self.least_at, self.since_least = self.mark, now, 0

    def at_least(self, level: Level) -> float:
        """The logarithm of a level's mean latency, no less than is likely by what is known of it."""
        return level.seconds + self.spread / 2 + math.sqrt(self.spread / max(level.count, 1))

    def go_back(self, now: float) -> Literal[False]:
        """To what the server works on at once and a little more, or to where a vain try began."""
        least = self.at_least(self.least or self.mark)
        works_on = math.exp(self.above.flying - self.above.mean_seconds + least)
        at_mark = math.exp(self.mark.top)
        size = max(works_on * SPARE, works_on + 1, at_mark / 2)
        if self.odds() > 0 or (self.vain and at_mark <= MOST_SPARE * works_on):
            size = at_mark
        wait = JUDGED_BY / size * math.exp(self.mark.seconds)
        if self.vain:
            wait = max(wait, min(PLATEAU_SECONDS * 2 ** (self.vain - 1), LONGEST_PLATEAU_SECONDS))
        self.size = self.threshold = min(self.size, size)
        self.reach = max(REACH_AGAIN * self.size, self.size + 1)
        self.held_until, self.vain = now + wait, self.vain + 1
        self.begin_count(now)
        return False


# ---- requests a second ---------------------------------------------------------------------


@dataclass
class Pace:
    """``limit`` is the rate at which the server was found to refuse; None until it did."""

    limit: float | None = None
    bucket: Bucket = field(default_factory=lambda: Bucket(math.inf, math.inf))
    changed_at: float = 0.0
    held_since: float = 0.0
    try_after: float = TRY_SOON_SECONDS
    trying: bool = False
    silent_until: float = -math.inf
    breath: float = BREATH_SECONDS
    lately: deque[tuple[float, int]] = field(default_factory=deque)  # when, and which
    refused: int = 0
    mark: tuple[float, int] | None = None  # when the server was last full, and how many it had taken by then

    @property
    def rate(self) -> float:
        return self.bucket.rate if self.limit is not None else math.inf

    @property
    def aim(self) -> float:
        return STAY_UNDER * self.limit if self.limit is not None else math.inf

    def wait(self, now: float) -> float:
        silence = max(self.silent_until - now, 0.0)
        if self.limit is None:
            return silence
        self.climb(now)
        return max(silence, self.bucket.wait(now, 1))

    def sent(self, now: float, number: int) -> None:
        if self.limit is None:
            self.lately.append((now, number))
            while self.lately[0][0] < now - 2 * MEASURE_SECONDS:
                self.lately.popleft()
        else:
            self.bucket.level -= 1

    def climb(self, now: float) -> None:
        """Back to just under the limit; after a while there, and if it is what holds us back, a little beyond."""
        assert self.limit is not None
        seconds, self.changed_at = max(now - self.changed_at, 0.0), max(now, self.changed_at)
        if now < self.silent_until:
            self.held_since = now
        elif self.rate < self.aim:
            self.set_rate(min(self.aim, self.rate + self.limit / 2 / CLIMB_SECONDS * seconds), now)
            self.held_since = now
        elif now - self.held_since >= self.try_after and self.bucket.level < 1:
            self.trying = True
            self.set_rate(self.rate * (1 + TRY_GROWTH_A_SECOND * seconds), now)

    def set_rate(self, rate: float, now: float) -> None:
        self.bucket.change(rate, 1 + rate * BURST_SECONDS, now)

    def refuse(self, sent: Sent) -> None:
        """Count one refusal, with those before the mark or after it."""
        self.refused += 1
        if self.mark is not None and sent.at <= self.mark[0]:
            self.mark = (self.mark[0], self.mark[1] - 1)

    def slow_down(self, sent: Sent, now: float, after: float | None) -> None:
        """A burst of refusals began with this request: learn the rate, and be silent for a moment."""
        helped = sent.at > self.silent_until + MEASURE_SECONDS
        self.breath = BREATH_SECONDS if helped else min(self.breath * 2, LONGEST_BREATH_SECONDS)
        self.silent_until = now + (self.breath if after is None else after)
        taken = sent.number - self.refused
        if self.mark is None or self.limit is None:
            self.limit = self.taken_before(sent)
            self.set_rate(self.limit / 2, now)
        elif taken <= self.mark[1]:
            self.set_rate(self.limit / 2, now)  # from nothing no rate is learned: the silence grows instead
        elif sent.at - self.mark[0] >= MEASURE_SECONDS:
            self.learn((taken - self.mark[1]) / (sent.at - self.mark[0]), now)
        else:
            self.set_rate(self.rate / 2, now)
        self.mark = (self.silent_until, taken)
        self.held_since = self.changed_at = self.silent_until

    def taken_before(self, sent: Sent) -> float:
        """How many were taken within the last second before this one: the first guess at the limit."""
        lately = [number for at, number in self.lately if at >= sent.at - MEASURE_SECONDS and number < sent.number]
        return max(len(lately) / MEASURE_SECONDS, BEGIN_WITH)

    def learn(self, sustained: float, now: float) -> None:
        """What the server took from one burst to the next is what it can sustain, or less where it was left idle."""
        assert self.limit is not None
        if not self.trying:
            between = (min(sustained, self.rate) + self.rate) / 2
            self.limit, self.try_after = max(between * STEP_BACK, 1 / LIMIT_SECONDS), TRY_SOON_SECONDS
        elif self.rate > MUCH_MORE * self.limit:
            self.limit, self.try_after = STEP_BACK * self.rate, TRY_AFTER_SECONDS
        else:
            self.try_after = min(max(self.try_after * 2, TRY_AFTER_SECONDS), TRY_AT_MOST_SECONDS)
        self.trying = False
        self.set_rate(min(self.rate, self.aim), now)


# ---- all together --------------------------------------------------------------------------


@dataclass
class Capacity:
    """One endpoint as one process finds it. ``takers``: who asks there, and how many each has in flight.

    ``valid_until``: from then on nothing is sent, for others may have taken this process's share of the limits.
    """

    limits: Limits = field(default_factory=Limits)
    window: Window = field(default_factory=Window)
    pace: Pace = field(default_factory=Pace)
    requests: Bucket | None = None
    tokens: Bucket | None = None
    takers: "list[Taker]" = field(default_factory=list)
    in_flight: int = 0
    number: int = 0
    latency: float = 0.0
    tokens_a_call: float = 0.0
    valid_until: float = math.inf

    def set_limits(
        self, limits: Limits, now: float, valid_until: float = math.inf, *, workers: int = 1, busy: int = 1
    ) -> None:
        """Keep to these limits from now on.

        A stated number of requests at once is where it begins, too: whoever set it knows the server. Of the slots
        that the server told of, each of the ``workers`` begins with its part, and may have all where the others
        have nothing in flight. ``busy`` are those that have, this one included.
        """
        self.valid_until = valid_until
        most = CEILING if limits.begin_with is None else limits.begin_with
        if self.number == 0 and limits.begin_with is not None:
            self.window.begin(max(most if limits.max_in_flight is not None else math.ceil(most / workers), 1))
        self.window.most, self.window.sharers, self.limits = most, busy, limits
        self.requests = changed(self.requests, limits.requests_per_minute, now, 1)
        self.tokens = changed(self.tokens, limits.tokens_per_minute, now, 0)

    def join(self) -> "Taker":
        taker = Taker(self)
        self.takers.append(taker)
        return taker

    @property
    def at_once(self) -> int:
        return int(min(self.window.size, self.window.most))

    def wait(self, now: float) -> float:
        """Seconds until time alone allows one more request, or until that is to be asked again."""
        waits = [self.pace.wait(now), HELD_SECONDS if now >= self.valid_until else 0.0]
        if self.requests is not None:
            waits.append(self.requests.wait(now, 1))
        if self.tokens is not None:
            waits.append(self.tokens.wait(now, self.tokens_a_call))
        return max(waits)

    def sent(self, now: float) -> Sent:
        self.in_flight += 1
        self.number += 1
        if self.in_flight >= self.at_once:
            self.window.full_at = now
        self.pace.sent(now, self.number)
        if self.requests is not None:
            self.requests.level -= 1
        if self.tokens is not None:
            self.tokens.level -= self.tokens_a_call
        return Sent(now, self.number, self.in_flight, self.tokens_a_call)

    def may_send(self, now: float, seconds: float) -> int:
        """How many the pace and the limits a minute allow by then."""
        buckets = [self.requests] if self.requests is not None else []
        if self.pace.limit is not None:
            buckets.append(self.pace.bucket)
        return int(min((bucket.level + bucket.rate * seconds for bucket in buckets), default=self.at_once) + 1e-6)

    def end(self) -> None:
        self.in_flight -= 1
        self.wake_all()

    def wake_all(self) -> None:
        for taker in self.takers:
            taker.wake()

    def answered(self, sent: Sent, now: float, tokens: int | None = None) -> None:
        """The server kept up. What it counted corrects what was taken out for this request."""
        took = now - sent.at
        if not self.latency and took <= QUICK_SECONDS and self.limits.begin_with is None:
            self.window.begin_quickly(took)
        self.latency += (took - self.latency) / (8 if self.latency else 1)
        if tokens is not None:
            self.tokens_a_call += (tokens - self.tokens_a_call) / (8 if self.tokens_a_call else 1)
            if self.tokens is not None:
                self.tokens.level += sent.tokens - tokens
        self.window.grow(sent, now)

    def turned_away(self, sent: Sent, now: float, after: float | None = None) -> None:
        """429: too many, or too fast. One burst counts once; the time that the server named is kept."""
        self.pace.refuse(sent)
        if self.window.cut(sent, now, back_to=1):
            self.pace.slow_down(sent, now, after)
        elif after is not None:
            self.pace.silent_until = max(self.pace.silent_until, now + after)

    def timed_out(self, sent: Sent, now: float) -> None:
        self.window.cut(sent, now, back_to=0.5)


@dataclass(eq=False)
class Taker:
    """One bout at an endpoint that it may share with others; ``hungry`` while it has more to send."""

    capacity: Capacity
    wake: Callable[[], None] = lambda: None
    in_flight: int = 0
    hungry: bool = True

    def room(self, now: float) -> int:
        """How many it may have more in flight, whatever the pace: its part, and what others leave."""
        capacity = self.capacity
        others = sum(taker.hungry for taker in capacity.takers if taker is not self)
        part = math.ceil(capacity.at_once / (1 + others))
        return max(min(capacity.at_once - capacity.in_flight, part - self.in_flight), 0)

    def wait(self, now: float) -> float:
        return self.capacity.wait(now)

    def soon(self, now: float) -> int:
        """Its free places, those that will become free in a moment, and no more than the pace allows by then."""
        capacity = self.capacity
        wait = capacity.wait(now)
        if wait > AHEAD_SECONDS:
            return 0
        ending = int(AHEAD_SECONDS * self.in_flight / capacity.latency) if capacity.latency else 0
        return min(self.room(now) + ending, capacity.may_send(now, AHEAD_SECONDS))

    def want(self, more: bool) -> None:
        self.hungry = more

    def sent(self, now: float) -> Sent:
        self.in_flight += 1
        return self.capacity.sent(now)

    def ended(self) -> None:
        """After what became of it was told to the capacity: its place is free for anybody."""
        self.in_flight -= 1
        self.capacity.end()

    def leave(self) -> None:
        self.capacity.takers.remove(self)
        self.capacity.wake_all()


def changed(bucket: Bucket | None, per_minute: float | None, now: float, least: float) -> Bucket | None:
    """A bucket that in no minute lets through more than so many."""
    if per_minute is None:
        return None
    most = least + per_minute / LIMIT_SECONDS * BURST_SECONDS
    rate = max(per_minute - most + least, 0) / LIMIT_SECONDS
    if bucket is None:
        return Bucket(rate, most, most, now)
    bucket.change(rate, most, now)
    return bucket
