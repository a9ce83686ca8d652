"""How long to wait before a call is asked again, and how often."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Patience:
    """Waits double from ``first_seconds`` up to ``most_seconds``, each drawn from half to one and a half.

    ``tries`` bounds the requests that met a fault, ``tries_when_busy`` those that a server turned
    away because there were too many: that says nothing against the call. ``tries_unreachable``
    bounds those that found nobody there: a person who mistyped an address is to hear of it soon.
    """

    first_seconds: float = 1.0
    most_seconds: float = 60.0
    tries: int = 8
    tries_when_busy: int = 60
    tries_unreachable: int = 5

    def wait(self, tried: int, asked_for: float | None, draw: float) -> float:
        """Seconds to wait after ``tried`` requests (at least one). ``draw`` is from 0 to 1.

        A wait that the server asked for is kept to the second, plus up to a tenth so that not
        all return at once.
        """
        if asked_for is not None:
            return asked_for * (1 + draw / 10)
        # The exponent is bounded: two to the power of sixty tries is no float worth having.
        return min(self.most_seconds, self.first_seconds * 2.0 ** min(tried - 1, 30)) * (0.5 + draw)

    def is_over(self, tried: int, *, busy: bool = False, unreachable: bool = False) -> bool:
        most = self.tries_when_busy if busy else self.tries_unreachable if unreachable else self.tries
        return tried >= most
