"""What a number does when the totals it is made of move a little."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.stats.contributions import FloatArray

Statistic = Callable[[FloatArray], FloatArray]

STEP: Final = 1e-8  # of the slopes, as a share of the sum of all totals: small beside a cell that holds few of many


@dataclass(frozen=True)
class Measured:
    """A statistic with its values at some totals and its slopes there: cells × numbers, 0 where it has none."""

    statistic: Statistic
    values: FloatArray
    slopes: FloatArray


def measured(statistic: Statistic, totals: FloatArray) -> Measured:
    """The slopes by central differences."""
    step = STEP * max(float(np.abs(totals).sum()), 1.0)
    moves = np.eye(len(totals)) * step
    with np.errstate(all="ignore"):
        found = statistic(np.concatenate([totals[None], totals + moves, totals - moves]))
        raised, lowered = found[1 : len(totals) + 1], found[len(totals) + 1 :]
        slopes = (raised - lowered) / (2 * step)
    return Measured(statistic, found[0], np.where(np.isfinite(slopes), slopes, 0.0))
