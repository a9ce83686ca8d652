"""Two judges held against the same majority of people on the same items."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.stats.coding import MISSING, BoolArray, IntArray
from evaluations.stats.contributions import Contributions, FloatArray
from evaluations.stats.intervals import CORRELATION, SHARE, Spread, Statistic, too_few, wilson
from evaluations.stats.numbers import Number, undefined
from evaluations.stats.paired_tests import FLIPS, mcnemar, sign_flip

# What becomes of an item: both judges right, one of them, neither. The code is the place.
BOTH, ONLY_FIRST, ONLY_SECOND, NEITHER = range(4)
OUTCOMES: Final = 4
ALL: Final[BoolArray] = np.ones(OUTCOMES, dtype=bool)
DISCORDANT: Final[BoolArray] = np.array([False, True, True, False])
FIRST_WRONG: Final[BoolArray] = np.array([False, False, True, True])
SECOND_WRONG: Final[BoolArray] = np.array([False, True, False, True])

NOTHING_SHARED: Final = "On no comparison do both judges have a verdict and people a majority."
EXACT_MCNEMAR: Final = "exact McNemar"
SIGN_FLIP: Final = f"sign-flip permutation by cluster, {FLIPS:,} flips"


@dataclass(frozen=True)
class Comparison:
    """First and second judge on the ``n`` items that both have a verdict and people one majority on.

    ``difference``: agreement of the first less that of the second. ``only_…``: the items on which that one alone
    agrees with the majority. ``clusters_differing``: those in which one judge agrees more often than the other.
    ``p``: two-sided, of H0 that neither agrees more often, by ``test``; None where ``why`` says why.
    """

    n: int
    clusters: int
    first: Number
    second: Number
    difference: Number
    only_first: int
    only_second: int
    clusters_differing: int
    p: float | None
    test: str | None
    why: str | None = None


def compare(first: IntArray, second: IntArray, reference: IntArray, cluster: IntArray) -> Comparison:
    """All four: one entry for each item, MISSING where there is no choice.

    ``reference``: the majority of people with splits dropped (`majority` with SplitRule.DROP). Ties are choices.
    """
    held = (first != MISSING) & (second != MISSING) & (reference != MISSING)
    if not held.any():
        nothing = undefined(NOTHING_SHARED)
        return Comparison(0, 0, nothing, nothing, nothing, 0, 0, 0, None, None, NOTHING_SHARED)
    majority = reference[held]
    outcome = 2 * (first[held] != majority) + (second[held] != majority)
    found = Contributions(cluster[held], outcome, OUTCOMES)
    spread, counts = Spread(found), found.totals.astype(int).tolist()
    ahead = ahead_by_cluster(found)
    p, test = tested(counts, ahead)
    return Comparison(
        n=len(outcome),
        clusters=found.clusters,
        first=agreement(spread, right_first, FIRST_WRONG),
        second=agreement(spread, right_second, SECOND_WRONG),
        difference=difference(spread),
        only_first=counts[ONLY_FIRST],
        only_second=counts[ONLY_SECOND],
        clusters_differing=int(np.count_nonzero(ahead)),
        p=p,
        test=test,
    )


def right_first(totals: FloatArray) -> FloatArray:
    return np.asarray((totals[..., BOTH] + totals[..., ONLY_FIRST]) / totals.sum(axis=-1))


def right_second(totals: FloatArray) -> FloatArray:
    return np.asarray((totals[..., BOTH] + totals[..., ONLY_SECOND]) / totals.sum(axis=-1))


def first_less_second(totals: FloatArray) -> FloatArray:
    return np.asarray((totals[..., ONLY_FIRST] - totals[..., ONLY_SECOND]) / totals.sum(axis=-1))


def agreement(spread: Spread, statistic: Statistic, wrong: BoolArray) -> Number:
    """A judge's share of items; by Wilson where there are too few clusters. ``wrong``: the outcomes against it."""
    number = of_all(spread, statistic)
    if too_few(spread.contributions, wrong, among=ALL):
        return wilson(number, spread, statistic)
    return spread.interval(number, statistic, SHARE)


def difference(spread: Spread) -> Number:
    """Of the two shares: the items are the same, so what makes both judges right or wrong falls out.

    Concordant items are not asked for: it varies in full where there is none.
    """
    number = of_all(spread, first_less_second)
    reason = too_few(spread.contributions, DISCORDANT)
    return number.without_interval(reason) if reason else spread.interval(number, first_less_second, CORRELATION)


def of_all(spread: Spread, statistic: Statistic) -> Number:
    totals = spread.contributions.totals
    return Number(float(statistic(totals)), int(totals.sum()))


def ahead_by_cluster(found: Contributions) -> IntArray:
    """In each cluster on how many items more the first judge alone is right than the second alone."""
    lead = (found.cell == ONLY_FIRST).astype(np.float64) - (found.cell == ONLY_SECOND)
    return np.bincount(found.numbered, lead, found.clusters).astype(np.int64)


def tested(counts: list[int], ahead: IntArray) -> tuple[float, str]:
    """Items of one cluster lean the same way, so McNemar, who takes them for independent, would reject too often."""
    if len(ahead) == sum(counts):
        return mcnemar(counts[ONLY_FIRST], counts[ONLY_SECOND]), EXACT_MCNEMAR
    return sign_flip(ahead), SIGN_FLIP
