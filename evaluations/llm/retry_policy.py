"""The retry policy: how long to wait before a request is repeated, and how often."""

from dataclasses import dataclass


@dataclass(frozen=True)
class RetryPolicy:
    """Waits double from ``first_seconds`` up to ``most_seconds``, each drawn from half to one and a half of it.

    ``tries`` bounds failed requests, ``tries_when_busy`` those rejected because there were too many, which says
    nothing against the call. ``tries_unreachable`` bounds those that reached no server: a mistyped address should be
    reported soon. ``tries_timed_out`` bounds those that a slow server did not answer in time and may still work on.
    """

    first_seconds: float = 1.0
    most_seconds: float = 60.0
    tries: int = 8
    tries_when_busy: int = 60
    tries_unreachable: int = 5
    tries_timed_out: int = 3
    most_seconds_timed_out: float = 600.0

    def wait(self, requests: int, asked_for: float | None, draw: float) -> float:
        """Seconds to wait after ``requests`` requests (at least one). ``draw`` is from 0 to 1.

        A wait that the server asked for is kept, plus up to a tenth so that not all return at once.
        """
        if asked_for is not None:
            return asked_for * (1 + draw / 10)
        # The exponent is bounded to keep the float finite.
        return min(self.most_seconds, self.first_seconds * 2.0 ** min(requests - 1, 30)) * (0.5 + draw)

    def wait_after_timeout(self, timed_out: int, timeout_seconds: float, draw: float) -> float:
        """Seconds to wait after so many timeouts at a slow server, plus up to a tenth.

        A server that does not notice the closed connection has finished by then: the wait is as long as the timeout, or
        as its bound, and doubles each time.
        """
        first = min(timeout_seconds, self.most_seconds_timed_out)
        return first * 2.0 ** min(timed_out - 1, 30) * (1 + draw / 10)

    def is_over(self, requests: int, *, busy: bool = False, unreachable: bool = False, timed_out: bool = False) -> bool:
        if timed_out:
            return requests >= self.tries_timed_out
        return requests >= (self.tries_when_busy if busy else self.tries_unreachable if unreachable else self.tries)
