"""The share of entries that fall in some cells, with its interval."""

import numpy as np

from evaluations.stats.coding import BoolArray
from evaluations.stats.contributions import FloatArray
from evaluations.stats.intervals import SHARE, Spread, too_few
from evaluations.stats.numbers import Number, undefined
from evaluations.stats.slopes import Statistic, measured


def share_within(spread: Spread, part: BoolArray, whole: BoolArray, empty: str) -> Number:
    """How much of the whole, given as cells, is the part; where the whole is nothing, ``empty`` is the reason.

    Where few clusters lie in the part, or outside of it, the interval is Wilson's.
    """
    found = spread.contributions
    n = int(found.totals[whole].sum())
    if not n:
        return undefined(empty)
    number, ratio = Number(float(found.totals[part].sum()) / n, n), measured(ratios((part, whole)), found.totals)
    few = too_few(found, part, among=whole)
    return spread.hedged([number], ratio, [SHARE], [few], [whole])[0]


def ratios(*shares: tuple[BoolArray, BoolArray]) -> Statistic:
    """The share of each part in its whole, both given as cells."""

    def statistic(totals: FloatArray) -> FloatArray:
        found = [totals[..., part].sum(axis=-1) / totals[..., whole].sum(axis=-1) for part, whole in shares]
        return np.stack(found, axis=-1)

    return statistic
