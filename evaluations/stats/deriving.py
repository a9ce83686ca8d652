"""Choices that nobody was asked for: from the scores of two responses, and from the judges of a panel."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evaluations.stats.coding import CHOICES, FOLDED, MISSING, ORDERS, TIE, A, B, IntArray
from evaluations.stats.consolidation import Answers, Consolidated, Verdicts
from evaluations.stats.numbers import settled

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Derived:
    """Where choices come from that no call gave: from ``scores`` with a margin, or a ``panel`` of judges."""

    source: str
    margin: float | None = None
    judges: tuple[str, ...] = ()
    n_split: int | None = None


@dataclass(frozen=True)
class Member:
    """What one judge of a panel said on one aspect."""

    name: str
    own: Consolidated


def folded(item: IntArray, choice: IntArray) -> Verdicts:
    """One choice each, of no order: position and the coding by place have nothing to say of them."""
    return Verdicts((Answers(FOLDED, item, choice.astype(np.int8), is_single=True),))


def means(unit: IntArray, value: FloatArray, units: int) -> FloatArray:
    """The mean value per unit; NaN where there is none."""
    count = np.bincount(unit, minlength=units)
    total = np.bincount(unit, weights=value, minlength=units)
    return settled(np.where(count > 0, total / np.maximum(count, 1), np.nan))


def from_scores(a: FloatArray, b: FloatArray, margin: float) -> Verdicts:
    """Per comparison the side with the higher mean score, a tie within the margin; none where either is missing.

    The equal of `domain.derived_choice`.
    """
    (item,) = np.nonzero(~np.isnan(a) & ~np.isnan(b))
    return folded(item, choice_of_scores(a[item], b[item], margin))


def choice_of_scores(a: FloatArray, b: FloatArray, margin: float | FloatArray) -> IntArray:
    """The same where both scores are there, as the codes of choices."""
    apart = settled(a - b)  # 0.3 - 0.2 is not to be more than 0.1
    return np.where(np.abs(apart) <= margin, TIE, np.where(apart > 0, A, B))


def panel_of(members: Sequence[Member], items: int) -> tuple[Consolidated, Derived]:
    """The choice of more than half of the judges that have one, else a tie; none where fewer than half of them have.

    Incomplete is what every judge was asked about and fewer than half could answer.
    """
    own = np.array([one.own.choice for one in members])
    votes = np.array([(own == code).sum(axis=0) for code in range(len(CHOICES))])
    answered = votes.sum(axis=0)
    heard = (answered > 0) & (2 * answered >= len(members))
    agreed = 2 * votes.max(axis=0) > answered
    choice = np.where(heard, np.where(agreed, votes.argmax(axis=0), TIE), MISSING).astype(np.int8)
    asked = np.logical_and.reduce([one.own.asked for one in members])
    lacking = np.logical_or.reduce([one.own.incomplete for one in members])
    n_split = int((heard & ~agreed).sum())
    return (
        Consolidated(choice, np.zeros(items, dtype=bool), asked & ~heard & lacking, asked, (None,) * len(ORDERS)),
        Derived("panel", judges=tuple(one.name for one in members), n_split=n_split),
    )
