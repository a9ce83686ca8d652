"""The number of requests in flight at one endpoint, found by measurement.

It grows while it is full and more requests bring more answers, halves when the server is overloaded, shrinks when
latency grew in proportion.
"""

import math
from dataclasses import dataclass, field
from typing import Final, Literal

MAX_IN_FLIGHT: Final = 256  # requests at once from one process, if no limit is set
# Before the first answer, and after it unless it was quick: a slow server may work on one request at a time.
CAUTIOUS_START: Final = 2
DEFAULT_START: Final = 8
QUICK_ANSWER_SECONDS: Final = 2.0
# Before the first trouble the window grows by this much per second, and at most doubles per round trip.
GROWTH_PER_SECOND: Final = 1.0
# How far it may grow before the gain is known: at first, and after it has shrunk once.
REACH: Final = 2.0
REDUCED_REACH: Final = 1.5
WORTH_TRYING: Final = 1.25
# Of the growth of answers that proportional growth of requests would bring without waiting: what is
# worth it, and what is worth it beyond doubt.
MIN_GAIN: Final = 0.25
CLEAR_GAIN: Final = 0.5
GAIN_T: Final = 2.0  # log odds from which it keeps growing
REPEATED_GAIN_T: Final = 3.0  # after it has shrunk once
NO_GAIN_T: Final = -3.0  # log odds below which it shrinks
UNCERTAIN_T: Final = -1.0
FEW_ANSWERS: Final = 4  # baseline answers: more answers above do not help to decide
SAMPLE_SIZE: Final = 64  # answers after which it decides even without certainty
# The prior variance of log latencies, and the number of answers that it counts for.
PRIOR_VARIANCE: Final = 0.2**2
PRIOR_WEIGHT: Final = 3
SPARE_SHARE: Final = 1.25  # of what a server works on at once, so that it never waits for requests
MAX_SPARE_SHARE: Final = 2.0
MAX_LOG_WAIT: Final = math.log(3.0)  # beyond three times the least latency nothing grows
# After so long and so many answers the server or its prompts may have changed.
MIN_LATENCY_SECONDS: Final = 600.0
MIN_LATENCY_ANSWERS: Final = 1000
PLATEAU_SECONDS: Final = 30.0
MAX_PLATEAU_SECONDS: Final = 240.0


@dataclass(frozen=True)
class RequestInFlight:
    """The ``number``-th request, sent with ``in_flight`` others. ``tokens`` were taken from the bucket for it."""

    at: float
    number: int
    in_flight: int
    tokens: float


@dataclass
class LatencyLevel:
    """Answers to requests sent with about as many in flight: the means of the logarithms of both.

    ``top``: the logarithm of the most in flight that still counts for this level.
    """

    top: float = 0.0
    count: int = 0
    in_flight: float = 0.0
    seconds: float = 0.0
    spread: float = 0.0  # the variance of the latencies' logarithms

    def add(self, in_flight: float, seconds: float) -> None:
        """Add one answer; the latest 64 dominate."""
        self.count = min(self.count + 1, SAMPLE_SIZE)
        apart = seconds - self.seconds
        self.in_flight += (in_flight - self.in_flight) / self.count
        self.seconds += apart / self.count
        self.spread += (apart**2 * (1 - 1 / self.count) - self.spread) / self.count

    @property
    def mean_seconds(self) -> float:
        """The logarithm of the mean latency, which exceeds the mean of logarithms."""
        return self.seconds + self.spread / 2


@dataclass
class ConcurrencyWindow:
    """The number of requests at once.

    A server with free capacity has the same latency for any number of requests; in a full one, more requests wait
    longer in proportion. So the latencies at two sizes, a quarter or more apart, show whether the larger brings more
    answers. Single latencies show little, since replies differ in length: their logarithms are compared, and
    ``spread`` tells how many are needed.

    ``baseline``: answers at the last size that was worth it. ``above``: answers at a larger size since.
    ``reach``: the limit of growth meanwhile. ``sharers``: processes with requests in flight, this one included. If two
    share a full server, the one that doubles its requests takes a third more from the other.
    """

    size: float = CAUTIOUS_START
    most: float = MAX_IN_FLIGHT
    threshold: float = math.inf  # from here on it grows by one per round trip
    cut_at: float = -math.inf
    full_at: float = -math.inf
    reach: float = CAUTIOUS_START
    earned: float = 0.0  # growth held back by its reach
    baseline: LatencyLevel = field(default_factory=LatencyLevel)
    above: LatencyLevel = field(default_factory=LatencyLevel)
    least: LatencyLevel | None = None  # the answers with the least latency
    least_at: float = -math.inf
    since_least: int = 0
    known_spread: float = PRIOR_VARIANCE
    counted_from: float = -math.inf
    hold_until: float = -math.inf
    failed_increases: int = 0
    sharers: int = 1

    def begin(self, size: float) -> None:
        self.size, self.reach = size, max(size, CAUTIOUS_START)

    def begin_quickly(self, took: float) -> None:
        """Start larger after a quick first answer: as if that many requests had been in flight with it."""
        if self.size < DEFAULT_START and self.cut_at == -math.inf:
            self.begin(DEFAULT_START)
            self.earned = DEFAULT_START * min(1.0, took * GROWTH_PER_SECOND)

    def grow(self, sent: RequestInFlight, now: float) -> None:
        """Grow after an answer if the window was full meanwhile: by one per round trip, up to double before the first
        trouble."""
        if self.full_at < sent.at or sent.at < max(self.cut_at, self.counted_from):
            return
        took = now - sent.at
        early = min(1.0, took * GROWTH_PER_SECOND)
        if self.count(sent, now) and took > QUICK_ANSWER_SECONDS and self.size < self.threshold:
            self.earned = max(self.earned, self.size)  # the rest of these answers may take seconds
        if now >= max(self.hold_until, self.counted_from):
            self.earned += early if self.size < self.threshold else 1 / self.size
            more = max(min(self.earned, min(self.most, self.reach) - self.size), 0.0)
            self.size += more
            self.earned = min(self.earned - more, self.size)

    def cut(self, sent: RequestInFlight, now: float, back_to: float) -> bool:
        """Halve; requests sent before the last cut belong to the same burst and cut nothing."""
        if sent.at < self.cut_at:
            return False
        self.threshold = max(1.0, self.size * back_to)
        self.reach = max(self.size, CAUTIOUS_START)
        self.size, self.cut_at = max(1.0, self.size / 2), now
        self.failed_increases = 0
        self.begin_count(now)
        return True

    def begin_count(self, now: float) -> None:
        self.known_spread = self.spread
        self.baseline, self.above = LatencyLevel(math.log(self.size)), LatencyLevel()
        self.earned, self.counted_from = 0.0, now

    def count(self, sent: RequestInFlight, now: float) -> bool:
        """Count an answer at its level; returns whether more requests were shown to bring more answers."""
        self.since_least += 1
        in_flight, seconds = math.log(sent.in_flight), math.log(max(now - sent.at, 1e-6))
        baseline = self.baseline.in_flight if self.baseline.count else self.baseline.top
        if in_flight <= self.baseline.top:
            self.baseline.add(in_flight, seconds)
        elif in_flight >= baseline + math.log(WORTH_TRYING):
            self.above.top = max(self.above.top, in_flight)
            self.above.add(in_flight, seconds)
        return self.above.count > 0 and now >= self.hold_until and self.decide(now)

    @property
    def spread(self) -> float:
        """The variance within both levels, with a few answers of usual variance added."""
        counts = self.baseline.count + self.above.count
        within = self.baseline.count * self.baseline.spread + self.above.count * self.above.spread
        return (within + PRIOR_WEIGHT * self.known_spread) / (max(counts - 2, 0) + PRIOR_WEIGHT)

    def decide(self, now: float) -> bool:
        """Go on (True), go back, or wait for more answers."""
        has_enough, is_known = self.above.count >= self.enough_answers(), self.above.count >= SAMPLE_SIZE
        if not self.baseline.count:
            return has_enough and self.go_on()
        self.note_least(now)
        log_odds, required = self.log_odds(), REPEATED_GAIN_T if self.failed_increases else GAIN_T
        if has_enough and self.waits_long():
            return self.go_back(now)
        is_baseline_small = self.baseline.count < FEW_ANSWERS
        if is_baseline_small and self.above.count >= 2 * FEW_ANSWERS * self.baseline.count and log_odds > UNCERTAIN_T:
            return self.go_on()
        if has_enough and (log_odds >= required or (is_known and log_odds > 0)):
            return self.go_on()
        return (log_odds <= NO_GAIN_T or is_known) and self.go_back(now)

    def waits_long(self) -> bool:
        """Whether answers above surely take several times the least latency, even if they are more."""
        doubt = math.sqrt(self.spread / self.above.count)
        return self.least is not None and self.above.mean_seconds - doubt > self.at_least(self.least) + MAX_LOG_WAIT

    def enough_answers(self) -> float:
        """How many answers above are enough: of requests sent together, those that waited least come first."""
        at_mark = math.exp(self.baseline.top)
        within = min(self.size, REACH * at_mark)
        return min(max(within / 4, min(within - at_mark, 3)), SAMPLE_SIZE)

    def log_odds(self) -> float:
        """The log odds that more requests at once brought more answers."""
        more = self.above.in_flight - self.baseline.in_flight
        gain = more - (self.above.seconds - self.baseline.seconds)
        doubt = self.spread * (1 / self.above.count + 1 / self.baseline.count)
        worth = 1 - (1 - MIN_GAIN) / self.sharers
        return (gain - worth * more) * CLEAR_GAIN * more / max(doubt, 1e-9)

    def go_on(self) -> Literal[True]:
        if self.failed_increases:
            self.threshold, self.failed_increases = math.inf, 0  # the server's capacity has grown
        self.known_spread = self.spread
        self.baseline, self.above = self.above, LatencyLevel()
        self.reach = max(self.reach, REACH * self.size)
        return True

    def note_least(self, now: float) -> None:
        """Keep the baseline as the level without waiting, if its latency is the least or the known one is out of date.

        The known one is out of date after a while, and when more requests at once do not explain a longer latency: then
        the server gets other prompts, or has become slower.
        """
        is_old = now > self.least_at + MIN_LATENCY_SECONDS and self.since_least > MIN_LATENCY_ANSWERS
        if is_old or self.least is None or self.at_least(self.baseline) < self.at_least(self.least):
            self.least, self.least_at, self.since_least = self.baseline, now, 0
        doubt = math.sqrt(self.spread / self.baseline.count)
        explained = max(self.baseline.in_flight - self.least.in_flight, 0.0) + math.log(2 * self.sharers)
        if self.baseline.seconds - doubt > self.at_least(self.least) + explained:
            self.least, self.least_at, self.since_least = self.baseline, now, 0

    def at_least(self, level: LatencyLevel) -> float:
        """The logarithm of a level's mean latency, at the cautious end of its uncertainty."""
        return level.seconds + self.spread / 2 + math.sqrt(self.spread / max(level.count, 1))

    def go_back(self, now: float) -> Literal[False]:
        """Return to slightly more than the server works on at once, or to where a failed increase began."""
        least = self.at_least(self.least or self.baseline)
        works_on = math.exp(self.above.in_flight - self.above.mean_seconds + least)
        at_mark = math.exp(self.baseline.top)
        size = max(works_on * SPARE_SHARE, works_on + 1, at_mark / 2)
        if self.log_odds() > 0 or (self.failed_increases and at_mark <= MAX_SPARE_SHARE * works_on):
            size = at_mark
        wait = SAMPLE_SIZE / size * math.exp(self.baseline.seconds)
        if self.failed_increases:
            wait = max(wait, min(PLATEAU_SECONDS * 2 ** (self.failed_increases - 1), MAX_PLATEAU_SECONDS))
        self.size = self.threshold = min(self.size, size)
        self.reach = max(REDUCED_REACH * self.size, self.size + 1)
        self.hold_until, self.failed_increases = now + wait, self.failed_increases + 1
        self.begin_count(now)
        return False
