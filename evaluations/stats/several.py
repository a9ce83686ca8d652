"""Agreement of any number of raters, from the votes counted per item.

``counts[i, c]`` is how many votes item i has for choice c; the number of votes may differ.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.stats.agreement import ONE_CHOICE, SIDES
from evaluations.stats.coding import IntArray
from evaluations.stats.numbers import Number, undefined

TOO_FEW_VOTES: Final = "No comparison has two votes."
NO_VARIATION: Final = "Every vote is for the same choice: there is no variation that agreement could explain."


@dataclass(frozen=True)
class Several:
    """``units``: the items with two votes or more."""

    krippendorff_alpha: Number
    fleiss_kappa: Number
    gwet_ac1: Number
    units: int

    @property
    def numbers(self) -> tuple[Number, ...]:
        return self.krippendorff_alpha, self.fleiss_kappa, self.gwet_ac1


def several(counts: IntArray, q: int) -> Several:
    occurring = int(np.count_nonzero(counts.sum(axis=0)))
    return Several(
        krippendorff_alpha=krippendorff_alpha(counts),
        fleiss_kappa=fleiss_kappa(counts),
        gwet_ac1=gwet_ac1_of_several(counts, max(q, occurring)),
        units=int((counts.sum(axis=1) >= SIDES).sum()),
    )


def krippendorff_alpha(counts: IntArray) -> Number:
    """1 − observed ÷ expected disagreement, nominal (Krippendorff 2004); items with one vote say nothing."""
    votes = counts.sum(axis=1)
    counts, votes = counts[votes >= SIDES], votes[votes >= SIDES]
    units, total = len(votes), int(votes.sum())
    if not units:
        return undefined(TOO_FEW_VOTES)
    of_choice = counts.sum(axis=0)
    expected = (total * total - int(of_choice @ of_choice)) / (total - 1)
    if not expected:
        return undefined(NO_VARIATION, units)
    observed = float(((votes * votes - (counts * counts).sum(axis=1)) / (votes - 1)).sum())
    return Number(1 - observed / expected, units)


def fleiss_kappa(counts: IntArray) -> Number:
    """Fleiss' kappa (Fleiss 1971). It asks for the same number of votes, two or more, on every item."""
    votes = counts.sum(axis=1)
    counts, votes = counts[votes > 0], votes[votes > 0]
    if not len(votes) or votes.max() < SIDES:
        return undefined(TOO_FEW_VOTES)
    units, each = len(votes), int(votes.max())
    if votes.min() != each:
        return undefined(f"It needs equally many votes on every comparison; here they have {votes.min()} to {each}.")
    of_choice = counts.sum(axis=0)
    by_chance = int(of_choice @ of_choice) / (units * each) ** 2
    if np.count_nonzero(of_choice) == 1:
        return undefined(NO_VARIATION, units)
    observed = int((counts * (counts - 1)).sum()) / (units * each * (each - 1))
    return Number((observed - by_chance) / (1 - by_chance), units)


def gwet_ac1_of_several(counts: IntArray, q: int) -> Number:
    """Gwet's AC1 of several raters (Gwet 2008): items with two votes weigh 1, prevalence is over all items."""
    votes = counts.sum(axis=1)
    counts, votes = counts[votes > 0], votes[votes > 0]
    shared = votes >= SIDES
    units = int(shared.sum())
    if not units:
        return undefined(TOO_FEW_VOTES)
    if q < SIDES:
        return undefined(ONE_CHOICE, units)
    same = (counts * (counts - 1)).sum(axis=1)[shared] / (votes * (votes - 1))[shared]
    prevalence = (counts / votes[:, None]).mean(axis=0)
    by_chance = float((prevalence * (1 - prevalence)).sum()) / (q - 1)
    return Number((float(same.mean()) - by_chance) / (1 - by_chance), units)
