"""Agreement of any number of raters, from the votes of a poll; how many an item has may differ."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.stats.agreement import ALL, CELLS, CONSTANT_RATER, SAME, SAME_IN_ORDER, SIDES, side_by_side
from evaluations.stats.alpha import alpha_nominal, alpha_ordinal
from evaluations.stats.cluster_sums import cluster_sums, numbered
from evaluations.stats.coding import CHOICES, MISSING, IntArray
from evaluations.stats.coefficients import IN_ORDER, Tables, scott_pi
from evaluations.stats.contributions import Contributions, FloatArray
from evaluations.stats.intervals import CORRELATION, LEAST_DISAGREEING, Spread, too_few
from evaluations.stats.majority import every_tally
from evaluations.stats.numbers import Number, undefined
from evaluations.stats.polls import Poll
from evaluations.stats.slopes import Statistic, measured

TOO_FEW_VOTES: Final = "No comparison has two votes."
NO_VARIATION: Final = "Every vote is for the same choice: there is no variation that agreement could explain."

MOST_KINDS: Final = 256  # of tallies; with more it is no quicker to count them
OF_PAIRS: Final = (CORRELATION,) * 3


@dataclass(frozen=True)
class Several:
    """``units``: the items with two votes or more. Ordinal is on A – tie – B, both bad as tie."""

    krippendorff_alpha: Number
    krippendorff_alpha_ordinal: Number
    fleiss_kappa: Number
    gwet_ac1: Number
    units: int

    @property
    def numbers(self) -> tuple[Number, ...]:
        return self.krippendorff_alpha, self.krippendorff_alpha_ordinal, self.fleiss_kappa, self.gwet_ac1


def several(poll: Poll, q: int) -> Several:
    """``q``: how many choices the rubric offers."""
    units = int((poll.given >= SIDES).sum())
    why = CONSTANT_RATER if units and is_pair_with_constant(poll) else TOO_FEW_VOTES
    if not units or why is CONSTANT_RATER:
        nothing = undefined(why, units)
        return Several(nothing, nothing, nothing, nothing, units)
    pairs = coincidences(poll)
    nominal, ordinal, fleiss = of_pairs(Spread(pairs), poll.given, units)
    few = too_few(pairs, ~SAME, among=ALL)
    return Several(nominal, ordinal, fleiss, ac1_of_several(poll, max(q, SIDES), units, few), units)


def is_pair_with_constant(poll: Poll) -> bool:
    """Whether there are two raters, of whom one alone makes the same choice on all the comparisons that they share.

    On a few it may well: there are no intervals then that could claim anything.
    """
    each = poll.each
    if len(each.turnout.by_rater) != SIDES:
        return False
    shared = (poll.given >= SIDES)[each.turnout.unit] & (each.choice != MISSING)
    one, other = (each.choice[entries][shared[entries]] for entries in each.turnout.by_rater.values())
    if len(one) < LEAST_DISAGREEING:
        return False
    constant = [int(np.ptp(chosen)) == 0 for chosen in (one, other)]
    return any(constant) and not (all(constant) and one[0] == other[0])


def coincidences(poll: Poll) -> Contributions:
    """Every pair of votes on an item of m votes, weighing 1 ÷ (m − 1): choice by choice, each pair one way round."""
    one, other = poll.turnout.pairs
    both = (poll.choice[one] != MISSING) & (poll.choice[other] != MISSING)
    if not both.all():
        one, other = one[both], other[both]
    votes = poll.given[poll.turnout.unit[one]]
    weight = None if (votes == SIDES).all() else 1 / (votes - 1)
    cell = poll.choice[one].astype(np.int64) * len(CHOICES) + poll.choice[other]
    return Contributions(poll.cluster[one], cell, CELLS, weight)


def pair_statistic(totals: FloatArray) -> FloatArray:
    """Alpha nominal and ordinal, and Fleiss' kappa, which is Scott's pi of coincidences (Fleiss 1971)."""
    table = totals.reshape(*totals.shape[:-1], len(CHOICES), len(CHOICES))
    both_ways = table + np.swapaxes(table, -1, -2)
    in_order = IN_ORDER @ both_ways @ IN_ORDER.T
    return side_by_side(alpha_nominal(both_ways), alpha_ordinal(in_order), scott_pi(Tables(table)))


def of_pairs(spread: Spread, given: IntArray, units: int) -> list[Number]:
    found = measured(pair_statistic, spread.contributions.totals)
    values = found.values.tolist()
    numbers = [Number(value, units) if np.isfinite(value) else undefined(NO_VARIATION, units) for value in values]
    fewest, most = int(given[given > 0].min()), int(given.max())
    if fewest != most:
        why = f"It needs equally many votes on every comparison; here they have {fewest} to {most}."
        numbers[-1] = undefined(why, units)
    few = [too_few(spread.contributions, ~same, among=ALL) for same in (SAME, SAME_IN_ORDER, SAME)]
    return spread.hedged(numbers, found, OF_PAIRS, few, (ALL,) * len(few))


def ac1_of_several(poll: Poll, q: int, units: int, few: str | None) -> Number:
    counted = tallies_by_cluster(poll)
    if counted is None:
        spread, statistic = by_item(poll, q)
    else:
        spread, statistic = by_tally(*counted, q)
    number = Number(float(statistic(spread.contributions.totals)), units)
    return number.without_interval(few) if few else spread.interval(number, statistic, CORRELATION)


def by_item(poll: Poll, q: int) -> tuple[Spread, Statistic]:
    """AC1, and what it varies with: what each item adds."""
    (voted,) = np.nonzero(poll.given)
    values = votes_shared_out(poll.tally[:, voted].astype(np.float64))
    return Spread(cluster_sums(numbered(poll.cluster_of_items[voted]), *values)), gwet_ac1_of_several(q)


def by_tally(counted: Contributions, tallies: IntArray, q: int) -> tuple[Spread, Statistic]:
    """The same from how many items have each tally."""
    values = np.stack([np.ones(counted.cells), *votes_shared_out(tallies.astype(np.float64))], axis=1)
    ac1 = gwet_ac1_of_several(q)
    return Spread(counted), lambda totals: ac1(totals @ values)


def tallies_by_cluster(poll: Poll) -> tuple[Contributions, IntArray] | None:
    """How often each tally of votes occurs, and the tallies, choices × kinds; None where there are too many kinds."""
    if not poll.is_coded:
        return None
    (voted,) = np.nonzero(poll.given)
    kind = numbered(poll.code[voted])
    if kind.count > MOST_KINDS:
        return None
    present = np.flatnonzero(np.bincount(poll.code[voted]))
    return Contributions(poll.cluster_of_items[voted], kind.of, kind.count), every_tally(poll.most)[:, present]


def votes_shared_out(tally: FloatArray) -> list[FloatArray]:
    """Of each item with a vote: what of its pairs agrees, whether it has a pair, and what of its votes each choice has.

    ``tally``: choices × items.
    """
    votes = tally.sum(axis=0)
    alike = (tally * (tally - 1)).sum(axis=0) / np.maximum(votes * (votes - 1), 1)
    return [alike, (votes >= SIDES).astype(np.float64), *(tally / votes)]


def gwet_ac1_of_several(q: int) -> Statistic:
    """Gwet's AC1 of several raters (Gwet 2008): items with two votes or more weigh 1, prevalence is over all items.

    From the number of items and the sums over them of `votes_shared_out`: … × (3 + choices) → ….
    """

    def statistic(totals: FloatArray) -> FloatArray:
        items, agreeing, shared = (totals[..., cell] for cell in (0, 1, 2))
        prevalence = totals[..., 3:] / items[..., None]
        by_chance = (prevalence * (1 - prevalence)).sum(axis=-1) / (q - 1)
        return np.asarray((agreeing / shared - by_chance) / (1 - by_chance))

    return statistic
