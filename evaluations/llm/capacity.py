"""What one process may send to one endpoint: the lowest of concurrency window, adaptive rate, configured limits.

Pure: every function is given the time."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from evaluations.llm.concurrency_window import MAX_IN_FLIGHT, QUICK_ANSWER_SECONDS, ConcurrencyWindow, RequestInFlight
from evaluations.llm.rate_limits import AdaptiveRate, RateLimits, TokenBucket, change_bucket

LOOKAHEAD_SECONDS: Final = 0.15  # longer than a claim takes, on a busy machine too
EXPIRED_SHARE_SECONDS: Final = 0.25  # until an expired share is checked again


@dataclass
class Capacity:
    """The capacity of one endpoint, as found by one process. ``users``: its work sessions.

    ``valid_until``: after it nothing is sent, since others may have taken this process's share of the limits.
    """

    limits: RateLimits = field(default_factory=RateLimits)
    window: ConcurrencyWindow = field(default_factory=ConcurrencyWindow)
    rate: AdaptiveRate = field(default_factory=AdaptiveRate)
    requests: TokenBucket | None = None
    tokens: TokenBucket | None = None
    users: "list[CapacityUser]" = field(default_factory=list)
    in_flight: int = 0
    number: int = 0
    latency: float = 0.0
    tokens_a_call: float = 0.0
    valid_until: float = math.inf

    def set_limits(
        self, limits: RateLimits, now: float, valid_until: float = math.inf, *, workers: int = 1, busy: int = 1
    ) -> None:
        """Keep to these limits from now on.

        A configured number of requests at once is also the starting size. Of the slots that the server reported, each
        of the ``workers`` starts with its share, and may use all while the others have nothing in flight. ``busy``:
        workers with requests in flight, this one included.
        """
        self.valid_until = valid_until
        highest = MAX_IN_FLIGHT if limits.begin_with is None else limits.begin_with
        if self.number == 0 and limits.begin_with is not None:
            self.window.begin(max(highest if limits.max_in_flight is not None else math.ceil(highest / workers), 1))
        self.window.most, self.window.sharers, self.limits = highest, busy, limits
        self.requests = change_bucket(self.requests, limits.requests_per_minute, now, 1)
        self.tokens = change_bucket(self.tokens, limits.tokens_per_minute, now, 0)

    def join(self) -> "CapacityUser":
        user = CapacityUser(self)
        self.users.append(user)
        return user

    @property
    def max_in_flight_now(self) -> int:
        return int(min(self.window.size, self.window.most))

    def wait(self, now: float) -> float:
        """Seconds until time alone allows one more request, or until the next check."""
        waits = [self.rate.wait(now), EXPIRED_SHARE_SECONDS if now >= self.valid_until else 0.0]
        if self.requests is not None:
            waits.append(self.requests.wait(now, 1))
        if self.tokens is not None:
            waits.append(self.tokens.wait(now, self.tokens_a_call))
        return max(waits)

    def sent(self, now: float) -> RequestInFlight:
        self.in_flight += 1
        self.number += 1
        if self.in_flight >= self.max_in_flight_now:
            self.window.full_at = now
        self.rate.sent(now, self.number)
        if self.requests is not None:
            self.requests.level -= 1
        if self.tokens is not None:
            self.tokens.level -= self.tokens_a_call
        return RequestInFlight(now, self.number, self.in_flight, self.tokens_a_call)

    def requests_allowed(self, now: float, seconds: float) -> int:
        """How many requests the rate and the limits per minute allow within these seconds."""
        buckets = [self.requests] if self.requests is not None else []
        if self.rate.limit is not None:
            buckets.append(self.rate.bucket)
        levels = (bucket.level + bucket.rate * seconds for bucket in buckets)
        return int(min(levels, default=self.max_in_flight_now) + 1e-6)

    def end(self) -> None:
        self.in_flight -= 1
        self.wake_all()

    def wake_all(self) -> None:
        for user in self.users:
            user.wake()

    def answered(self, sent: RequestInFlight, now: float, tokens: int | None = None) -> None:
        """The server kept up; its token count corrects the tokens taken for this request."""
        took = now - sent.at
        if not self.latency and took <= QUICK_ANSWER_SECONDS and self.limits.begin_with is None:
            self.window.begin_quickly(took)
        self.latency += (took - self.latency) / (8 if self.latency else 1)
        if tokens is not None:
            self.tokens_a_call += (tokens - self.tokens_a_call) / (8 if self.tokens_a_call else 1)
            if self.tokens is not None:
                self.tokens.level += sent.tokens - tokens
        self.window.grow(sent, now)

    def rejected(self, sent: RequestInFlight, now: float, after: float | None = None) -> None:
        """Status 429: too many requests, or too fast. A burst counts once; the time that the server named is kept."""
        self.rate.refuse(sent)
        if self.window.cut(sent, now, back_to=1):
            self.rate.slow_down(sent, now, after)
        elif after is not None:
            self.rate.silent_until = max(self.rate.silent_until, now + after)

    def timed_out(self, sent: RequestInFlight, now: float) -> None:
        self.window.cut(sent, now, back_to=0.5)


@dataclass(eq=False)
class CapacityUser:
    """One work session at an endpoint, which others may share; ``wants_more`` while it has more to send."""

    capacity: Capacity
    wake: Callable[[], None] = lambda: None
    in_flight: int = 0
    wants_more: bool = True

    def room(self, now: float) -> int:
        """How many more it may have in flight, whatever the rate: its share, and what others leave."""
        capacity = self.capacity
        others = sum(user.wants_more for user in capacity.users if user is not self)
        part = math.ceil(capacity.max_in_flight_now / (1 + others))
        return max(min(capacity.max_in_flight_now - capacity.in_flight, part - self.in_flight), 0)

    def wait(self, now: float) -> float:
        return self.capacity.wait(now)

    def expected_room(self, now: float) -> int:
        """Its free slots and those soon to be free, as far as the rate allows."""
        capacity = self.capacity
        wait = capacity.wait(now)
        if wait > LOOKAHEAD_SECONDS:
            return 0
        ending = int(LOOKAHEAD_SECONDS * self.in_flight / capacity.latency) if capacity.latency else 0
        return min(self.room(now) + ending, capacity.requests_allowed(now, LOOKAHEAD_SECONDS))

    def want(self, more: bool) -> None:
        self.wants_more = more

    def sent(self, now: float) -> RequestInFlight:
        self.in_flight += 1
        return self.capacity.sent(now)

    def ended(self) -> None:
        """Free the slot, after the result was reported to the capacity."""
        self.in_flight -= 1
        self.capacity.end()

    def leave(self) -> None:
        self.capacity.users.remove(self)
        self.capacity.wake_all()
