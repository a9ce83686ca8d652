"""How much a judge has judged of what it was to judge."""

from dataclasses import dataclass
from typing import Final

import numpy as np

from evaluations.stats.coding import MISSING, BoolArray, IntArray
from evaluations.stats.consolidation import Consolidated

LEAST_COVERED: Final = 95  # percent
PARTLY_JUDGED: Final = (
    "The judge has a verdict on {} of {} comparisons. Corrected win rates and rankings need {}% of all of them, or of "
    "a random selection."
)


@dataclass(frozen=True)
class Coverage:
    """``selected``: all comparisons, or those of the random selection that the judge was sent through.

    ``why``: why there is no corrected win rate and no ranking; None where there may be.
    """

    judged: int
    selected: int
    comparisons: int
    why: str | None


def selection(own: Consolidated, shuffle: IntArray | None) -> BoolArray:
    """What the judge was to judge: the first comparisons of the random order where it was asked about just those.

    All comparisons where it was asked about any others. ``shuffle``: of each comparison its number in the random order
    in which judges and people meet them, or None for a judge whose verdicts came in files: nobody knows how they were
    chosen.
    """
    if shuffle is not None and own.asked.any() and not own.asked.all():
        in_order = own.asked[np.argsort(shuffle, kind="stable")]
        if in_order[: int(in_order.sum())].all():
            return own.asked
    return np.ones_like(own.asked)


def coverage(choice: IntArray, selected: BoolArray) -> Coverage:
    """``choice``: the judge's one verdict on each comparison, or MISSING."""
    judged = int(((choice != MISSING) & selected).sum())
    why = why_partial(judged, int(selected.sum()))
    return Coverage(judged=judged, selected=int(selected.sum()), comparisons=len(choice), why=why)


def why_partial(judged: int, selected: int) -> str | None:
    """Why what a judge says of so many is not taken for what it would say of all that were selected."""
    if 100 * judged >= LEAST_COVERED * selected:
        return None
    return PARTLY_JUDGED.format(f"{judged:,}", f"{selected:,}", LEAST_COVERED)
