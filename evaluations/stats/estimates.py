"""An estimate with its sample size, its confidence interval or the reason why either is missing."""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

DECIMALS: Final = 9
NO_INTERVAL: Final = "There is no variation between clusters."
NO_VALUE: Final = "There is no value."


@dataclass(frozen=True)
class Estimate:
    """A number with its sample size ``n`` and its 95% interval.

    ``value`` and ``ci95`` are None where they are undefined; ``why`` and ``ci95_why`` then have the reason.
    ``ci95_rule``: how the interval was made, in words, with the number of clusters behind it.
    """

    value: float | None
    n: int
    why: str | None = None
    ci95: tuple[float, float] | None = None
    ci95_why: str | None = NO_INTERVAL
    ci95_rule: str | None = None

    def with_interval(self, low: float, high: float, rule: str) -> "Estimate":
        """The estimate with a 95% interval from ``low`` to ``high``, made by ``rule``."""
        return Estimate(self.value, self.n, self.why, (float(low), float(high)), None, rule)

    def with_margin(self, margin: float, bounds: tuple[float, float], rule: str) -> "Estimate":
        """The estimate with the interval value ± margin, cut off at the bounds."""
        assert self.value is not None
        return self.with_interval(max(self.value - margin, bounds[0]), min(self.value + margin, bounds[1]), rule)

    def without_interval(self, why: str) -> "Estimate":
        return Estimate(self.value, self.n, self.why, None, why)


@dataclass(frozen=True)
class JudgeVersusPeople:
    """A number of the judge and of people on the same items; ``difference``: judge − people."""

    judge: Estimate
    people: Estimate
    difference: Estimate


def undefined_estimate(why: str, n: int = 0) -> Estimate:
    return Estimate(None, n, why=why, ci95_why=NO_VALUE)


def share_estimate(part: int, whole: int, empty: str) -> Estimate:
    """part ÷ whole; undefined for the reason ``empty`` where the whole is 0."""
    return Estimate(part / whole, whole) if whole else undefined_estimate(empty)


def drop_rounding_noise(values: npt.NDArray[np.floating[Any]]) -> npt.NDArray[np.float64]:
    """Values without the rounding noise of decimal sums: (.1 + .2) − .1 equals .2."""
    return np.asarray(np.round(values, DECIMALS), dtype=np.float64)
