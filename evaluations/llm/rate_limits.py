"""The rate of requests to one endpoint: token buckets for limits, an adaptive rate after a 429."""

import math
from collections import deque
from dataclasses import dataclass, field
from typing import Final

from evaluations.llm.concurrency_window import DEFAULT_START, RequestInFlight

SAFE_SHARE: Final = 0.96  # of the rate at which the server refused
BACK_OFF_SHARE: Final = 0.97
LARGE_RISE: Final = 1.06  # a trial that rises so far has found a new limit
CLIMB_SECONDS: Final = 3.0  # from half the rate back to all of it
TRIAL_AFTER_SECONDS: Final = 15.0  # doubled after each failed trial
MAX_TRIAL_AFTER_SECONDS: Final = 300.0
EARLY_TRIAL_SECONDS: Final = 3.0  # while the rate is only half known
TRIAL_GROWTH_PER_SECOND: Final = 0.03
BACK_OFF_SECONDS: Final = 0.5  # of silence after a refusal without a time; doubled while it does not help
MAX_BACK_OFF_SECONDS: Final = 32.0
MEASURE_SECONDS: Final = 1.0  # a rate measured over less says nothing
BURST_SECONDS: Final = 0.01  # of requests sent at once if the loop was late
LIMIT_SECONDS: Final = 60.0


@dataclass(frozen=True)
class RateLimits:
    """The limits set by an administrator, or a process's share of them. None: no limit.

    ``slots``: how many requests the server says it works on at once, which no share divides.
    """

    max_in_flight: int | None = None
    requests_per_minute: float | None = None
    tokens_per_minute: float | None = None
    slots: int | None = None

    @property
    def begin_with(self) -> int | None:
        """How many requests at once are known to be right, by the configured limit or the server's report."""
        return self.slots if self.max_in_flight is None else self.max_in_flight


@dataclass
class TokenBucket:
    """A bucket that fills by ``rate`` a second up to ``most``; sending empties it, down to a debt."""

    rate: float
    most: float
    level: float = 0.0
    filled_at: float = -math.inf

    def fill(self, now: float) -> None:
        if now > self.filled_at:
            gained = (now - self.filled_at) * self.rate if self.rate else 0.0
            self.level, self.filled_at = min(self.most, self.level + gained), now

    def wait(self, now: float, amount: float) -> float:
        """Seconds until the amount is available; a full bucket is enough for any amount."""
        self.fill(now)
        missing = min(amount, self.most) - self.level
        if missing <= 1e-9:
            return 0.0
        return missing / self.rate if self.rate else math.inf

    def change(self, rate: float, most: float, now: float) -> None:
        self.fill(now)
        self.rate, self.most = rate, most
        self.level = min(self.level, most)


@dataclass
class AdaptiveRate:
    """The rate of requests. ``limit``: the rate at which the server refused; None until it did."""

    limit: float | None = None
    bucket: TokenBucket = field(default_factory=lambda: TokenBucket(math.inf, math.inf))
    changed_at: float = 0.0
    steady_since: float = 0.0
    trial_after: float = EARLY_TRIAL_SECONDS
    is_trial: bool = False
    silent_until: float = -math.inf
    back_off_seconds: float = BACK_OFF_SECONDS
    recent: deque[tuple[float, int]] = field(default_factory=deque)  # time and number of requests
    refused: int = 0
    # When the server was last full, and how many requests it had accepted by then.
    last_full: tuple[float, int] | None = None

    @property
    def rate(self) -> float:
        return self.bucket.rate if self.limit is not None else math.inf

    @property
    def aim(self) -> float:
        return SAFE_SHARE * self.limit if self.limit is not None else math.inf

    def wait(self, now: float) -> float:
        silence = max(self.silent_until - now, 0.0)
        if self.limit is None:
            return silence
        self.raise_rate(now)
        return max(silence, self.bucket.wait(now, 1))

    def sent(self, now: float, number: int) -> None:
        if self.limit is None:
            self.recent.append((now, number))
            while self.recent[0][0] < now - 2 * MEASURE_SECONDS:
                self.recent.popleft()
        else:
            self.bucket.level -= 1

    def raise_rate(self, now: float) -> None:
        """Return to just under the limit; after a steady time at it, try a little beyond."""
        assert self.limit is not None
        seconds, self.changed_at = max(now - self.changed_at, 0.0), max(now, self.changed_at)
        if now < self.silent_until:
            self.steady_since = now
        elif self.rate < self.aim:
            self.set_rate(min(self.aim, self.rate + self.limit / 2 / CLIMB_SECONDS * seconds), now)
            self.steady_since = now
        elif now - self.steady_since >= self.trial_after and self.bucket.level < 1:
            self.is_trial = True
            self.set_rate(self.rate * (1 + TRIAL_GROWTH_PER_SECOND * seconds), now)

    def set_rate(self, rate: float, now: float) -> None:
        self.bucket.change(rate, 1 + rate * BURST_SECONDS, now)

    def refuse(self, sent: RequestInFlight) -> None:
        """Count one refusal, before or after the server was last full."""
        self.refused += 1
        if self.last_full is not None and sent.at <= self.last_full[0]:
            self.last_full = (self.last_full[0], self.last_full[1] - 1)

    def slow_down(self, sent: RequestInFlight, now: float, after: float | None) -> None:
        """Learn the rate from the first refusal of a burst, and pause for a moment."""
        helped = sent.at > self.silent_until + MEASURE_SECONDS
        self.back_off_seconds = BACK_OFF_SECONDS if helped else min(self.back_off_seconds * 2, MAX_BACK_OFF_SECONDS)
        self.silent_until = now + (self.back_off_seconds if after is None else after)
        taken = sent.number - self.refused
        if self.last_full is None or self.limit is None:
            self.limit = self.estimate_accepted_rate(sent)
            self.set_rate(self.limit / 2, now)
        elif taken <= self.last_full[1]:
            self.set_rate(self.limit / 2, now)  # no requests accepted, no rate learned: the silence grows instead
        elif sent.at - self.last_full[0] >= MEASURE_SECONDS:
            self.learn((taken - self.last_full[1]) / (sent.at - self.last_full[0]), now)
        else:
            self.set_rate(self.rate / 2, now)
        self.last_full = (self.silent_until, taken)
        self.steady_since = self.changed_at = self.silent_until

    def estimate_accepted_rate(self, sent: RequestInFlight) -> float:
        """The requests accepted within the last second: the first guess at the limit."""
        recent = [number for at, number in self.recent if at >= sent.at - MEASURE_SECONDS and number < sent.number]
        return max(len(recent) / MEASURE_SECONDS, DEFAULT_START)

    def learn(self, sustained: float, now: float) -> None:
        """Learn from the rate between two bursts: the server can sustain it, or more if it was idle."""
        assert self.limit is not None
        if not self.is_trial:
            between = (min(sustained, self.rate) + self.rate) / 2
            self.limit, self.trial_after = max(between * BACK_OFF_SHARE, 1 / LIMIT_SECONDS), EARLY_TRIAL_SECONDS
        elif self.rate > LARGE_RISE * self.limit:
            self.limit, self.trial_after = BACK_OFF_SHARE * self.rate, TRIAL_AFTER_SECONDS
        else:
            self.trial_after = min(max(self.trial_after * 2, TRIAL_AFTER_SECONDS), MAX_TRIAL_AFTER_SECONDS)
        self.is_trial = False
        self.set_rate(min(self.rate, self.aim), now)


def change_bucket(bucket: TokenBucket | None, per_minute: float | None, now: float, least: float) -> TokenBucket | None:
    """A bucket that lets at most so many through in any minute."""
    if per_minute is None:
        return None
    most = least + per_minute / LIMIT_SECONDS * BURST_SECONDS
    rate = max(per_minute - most + least, 0) / LIMIT_SECONDS
    if bucket is None:
        return TokenBucket(rate, most, most, now)
    bucket.change(rate, most, now)
    return bucket
