"""Choices that nobody was asked for: from the scores of two responses, and from the judges of a panel."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from evaluations.domain import Rules
from evaluations.stats.coding import CHOICES, FOLDED, TIE, A, B, BoolArray, IntArray
from evaluations.stats.consolidation import Unanswered, Verdicts, consolidate

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
    verdicts: Verdicts
    unanswered: Unanswered


@dataclass(frozen=True)
class Panel:
    verdicts: Verdicts
    unanswered: Unanswered
    derived: Derived


def folded(item: IntArray, choice: IntArray) -> Verdicts:
    """One choice each, of no order: position and the coding by place have nothing to say of them."""
    zeros = np.zeros(len(item), dtype=np.int64)
    return Verdicts(item, zeros + FOLDED, zeros, choice, zeros.astype(bool))


def means(unit: IntArray, value: FloatArray, units: int) -> FloatArray:
    """The mean value per unit; NaN where there is none."""
    count = np.bincount(unit, minlength=units)
    total = np.bincount(unit, weights=value, minlength=units)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)


def from_scores(a: FloatArray, b: FloatArray, margin: float) -> Verdicts:
    """Per comparison the side with the higher mean score, a tie within the margin; none where either is missing.

    The equal of `domain.derived_choice`.
    """
    (item,) = np.nonzero(~np.isnan(a) & ~np.isnan(b))
    return folded(item, choice_of_scores(a[item], b[item], margin))


def choice_of_scores(a: FloatArray, b: FloatArray, margin: float | FloatArray) -> IntArray:
    """The same where both scores are there, as the codes of choices."""
    apart = np.round(a - b, 9)  # 0.3 - 0.2 is not to be more than 0.1
    return np.where(np.abs(apart) <= margin, TIE, np.where(apart > 0, A, B))


def panel_of(members: Sequence[Member], items: int, rules: Rules) -> Panel:
    """The choice of more than half of the judges that have one, else a tie; none where fewer than half of them have."""
    open_calls = [one.unanswered.without(one.verdicts) for one in members]
    own = np.array(
        [
            consolidate(one.verdicts, waiting, items, rules.failed).choice
            for one, waiting in zip(members, open_calls, strict=True)
        ]
    )
    votes = np.array([(own == code).sum(axis=0) for code in range(len(CHOICES))])
    answered = votes.sum(axis=0)
    heard = (answered > 0) & (2 * answered >= len(members))
    agreed = 2 * votes.max(axis=0) > answered
    choice = np.where(agreed, votes.argmax(axis=0), TIE)
    (decided,) = np.nonzero(heard)
    asked = np.logical_and.reduce([was_asked(one, items) for one in members])
    return Panel(
        folded(decided, choice[decided]),
        together(open_calls, asked & ~heard),
        Derived("panel", judges=tuple(one.name for one in members), n_split=int((heard & ~agreed).sum())),
    )


def was_asked(member: Member, items: int) -> BoolArray:
    """The comparisons that this judge was asked about, answered or not."""
    asked = np.zeros(items, dtype=bool)
    asked[member.verdicts.item] = asked[member.unanswered.item] = True
    return asked


def together(calls: Sequence[Unanswered], kept: BoolArray) -> Unanswered:
    """The calls without an answer on these comparisons, as calls of one judge of no order."""
    item, sample, state = (
        np.concatenate([getattr(one, column) for one in calls]) for column in ("item", "sample", "state")
    )
    wanted = kept[item]
    return Unanswered(item[wanted], np.full(int(wanted.sum()), FOLDED), sample[wanted], state[wanted])
