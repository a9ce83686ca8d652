"""A number with what belongs to it: how many it rests on, its interval, and why either is missing where it is."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

DECIMALS: Final = 9
NO_INTERVAL: Final = "Nothing varies from cluster to cluster that an interval could be made of."
NO_VALUE: Final = "There is no value to put an interval around."


@dataclass(frozen=True)
class Number:
    """``value`` is None where it is undefined, and ``why`` says why; the same for the interval.

    ``ci95_rule``: how the interval was made, in words, with the number of clusters it rests on.
    """

    value: float | None
    n: int
    why: str | None = None
    ci95: tuple[float, float] | None = None
    ci95_why: str | None = NO_INTERVAL
    ci95_rule: str | None = None

    def within(self, low: float, high: float, rule: str) -> "Number":
        """The same with an interval."""
        return Number(self.value, self.n, self.why, (float(low), float(high)), None, rule)

    def without_interval(self, why: str) -> "Number":
        return Number(self.value, self.n, self.why, None, why)


def undefined(why: str, n: int = 0) -> Number:
    return Number(None, n, why=why, ci95_why=NO_VALUE)


def share(part: int, whole: int, empty: str) -> Number:
    """part ÷ whole; where the whole is nothing, ``empty`` is the reason."""
    return Number(part / whole, whole) if whole else undefined(empty)


def settled(values: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.float64]:
    """Without what sums of decimals leave behind: (.1 + .2) − .1 is the same as .2."""
    return np.asarray(np.round(values, DECIMALS), dtype=np.float64)
