"""How often a judge does something, and how often people do it on the same entries."""

from dataclasses import dataclass
from math import copysign, inf, isfinite, nan, sqrt
from typing import Final

import numpy as np

from evaluations.stats.bias.counts import CountsByStratum
from evaluations.stats.bias.people import Judged, Met
from evaluations.stats.bias.shares import (
    BOTH,
    DID,
    DIFFERING,
    JUDGE_DID,
    OF_BOTH,
    OF_ONE,
    ONE,
    PEOPLE_DID,
    Beside,
    beside,
    linearised,
    shares,
)
from evaluations.stats.bias.sides import NO_SIDE, Sides, has_side
from evaluations.stats.bias.strata import Strata
from evaluations.stats.coding import MISSING, BoolArray, IntArray
from evaluations.stats.contributions import FloatArray
from evaluations.stats.distributions import t_quantile
from evaluations.stats.intervals import Bounds, too_few_of
from evaluations.stats.numbers import Number, undefined
from evaluations.stats.simultaneous import LEVEL, Claim

NO_VERDICT: Final = "The judge has no verdict here."
NOBODY: Final = "The judge has a verdict on nothing that people have one on."
NO_CHOICE: Final = "The judge chose a side on no such comparison."
NO_CHOICES: Final = "On no such comparison did both the judge and people choose a side."
ONE_WAY: Final = "The majority is on one side of these comparisons throughout."
ASYMMETRY: Final[Bounds] = (-1.0, 1.0)


@dataclass(frozen=True)
class Tendency:
    """``judge``: over all that it has a say on. ``majority``: beside the majority of people on each comparison.
    ``votes``: beside each single vote, of which a judge that knows more than a voter differs without any leaning.
    ``given_majority``: how much more often the judge takes the favoured side against the majority than the other side,
    where two people or more voted; None of what is no preference. ``claim``: what is shown over all claims at once.
    """

    judge: Number
    majority: Beside
    votes: Beside
    given_majority: Number | None = None
    claim: Claim = Claim.NONE


def preference(favoured: Sides, of: Judged, claims: int | None = None) -> Tendency:
    """P(the favoured side is chosen | a side is). ``favoured``: one for each item, MISSING where none is.

    ``claims``: how many a report may make; None where it makes none of this preference.
    """
    sided = of.majority.sided
    backed = both_preferring(sided.where(of.backed[sided.item]), favoured)
    return Tendency(
        judge=preferring(of.strata, favoured, of.side)[0],
        majority=beside(both_preferring(sided, favoured), NO_CHOICES)[0],
        votes=beside(both_preferring(of.votes.sided, favoured), NO_CHOICES)[0],
        given_majority=against_majority(backed),
        claim=Claim.NONE if claims is None else leaning(backed, claims),
    )


# ---- what is shown of a preference -----------------------------------------------------------


def against_majority(counts: CountsByStratum) -> Number:
    """P(judge favours | majority does not) − P(judge does not | majority favours), linearised."""
    value, slope = asymmetry(counts.totals[0])
    number = Number(value, int(counts.totals[0].sum())) if isfinite(value) else undefined(ONE_WAY)
    if number.value is None:
        return number
    if why := too_little(counts):
        return number.without_interval(why)
    return linearised(number, int(counts.clusters[0]), variance_of(counts, slope), ASYMMETRY)


def asymmetry(cells: IntArray) -> tuple[float, FloatArray]:
    """Of the four cells of judge and majority, and its slopes; NaN where the majority is on one side throughout."""
    neither, judge, people, both = (float(cell) for cell in cells)
    without, within = neither + judge, people + both
    if not without or not within:
        return nan, np.zeros(len(cells))
    slope = np.array([-judge / without**2, neither / without**2, -both / within**2, people / within**2])
    return judge / without - people / within, slope


def leaning(counts: CountsByStratum, claims: int) -> Claim:
    """Shown where the judge favours a side more often than the majority *and* more against it than the other side.

    The first alone is true of a noisy judge where the majority does not favour it; the second of any judge where it is
    better, for a majority errs. Each at the level of one of so many claims (Bonferroni), by t.
    """
    if too_little(counts):
        return Claim.NONE
    n = float(counts.totals[0].sum())
    level = t_quantile(1 - LEVEL / (2 * claims), float(counts.effective(OF_BOTH > 0)[0]) - 1)
    value, slope = asymmetry(counts.totals[0])
    more = float(counts.totals[0] @ (JUDGE_DID - PEOPLE_DID)) / n
    shares = ((more, (JUDGE_DID - PEOPLE_DID - more) / n), (value, slope))
    t = [t_of(share, variance_of(counts, u)) for share, u in shares]
    if min(t) > level:
        return Claim.ABOVE
    return Claim.BELOW if max(t) < -level else Claim.NONE


def t_of(value: float, variance: float) -> float:
    """Without variance, where a judge goes one way throughout, beyond all bounds on that side."""
    return value / sqrt(variance) if variance else copysign(inf, value) if value else 0.0


def too_little(counts: CountsByStratum) -> str | None:
    effective, differing = float(counts.effective(OF_BOTH > 0)[0]), int(counts.clusters_with(DIFFERING)[0])
    if not np.isfinite(asymmetry(counts.totals[0])[0]):
        return ONE_WAY
    return too_few_of(effective, differing, clusters=int(counts.clusters[0]))


def variance_of(counts: CountsByStratum, u: FloatArray) -> float:
    return float(counts.variance(u[None, :], np.ones(1, dtype=np.int64), counts.clusters)[0])


def tie_rate(of: Judged) -> Tendency:
    """The share of verdicts that choose no side: ties, and both bad."""
    majority, votes = (beside(both_tying(met), NOBODY)[0] for met in (of.majority.all, of.votes.all))
    return Tendency(tying(of.strata, of.side)[0], majority, votes)


def unknown(why: str) -> Tendency:
    number = undefined(why)
    return Tendency(number, Beside(number, number, number), Beside(number, number, number))


def preferring(strata: Strata, favoured: Sides, judge: Sides) -> list[Number]:
    return did(strata, judge == favoured, (favoured != MISSING) & has_side(judge), NO_CHOICE)


def tying(strata: Strata, judge: Sides) -> list[Number]:
    return did(strata, judge == NO_SIDE, judge != MISSING, NO_VERDICT)


def both_preferring(sided: Met, favoured: Sides) -> CountsByStratum:
    of = favoured[sided.item]
    return both_did(sided, sided.judge == of, sided.people == of, of != MISSING)


def both_tying(met: Met) -> CountsByStratum:
    return both_did(met, met.judge == NO_SIDE, met.people == NO_SIDE, met.judge != MISSING)


def did(strata: Strata, it: BoolArray, of: BoolArray, empty: str) -> list[Number]:
    return shares(strata.counts(cell_of(it.view(np.int8), of), ONE), DID, OF_ONE, empty)


def both_did(met: Met, judge: BoolArray, people: BoolArray, of: BoolArray) -> CountsByStratum:
    return met.strata.counts(cell_of(judge.view(np.int8) + 2 * people.view(np.int8), of), BOTH)


def cell_of(cell: Sides, of: BoolArray) -> Sides:
    """The cell where the entry is one of those asked of, else MISSING."""
    found: Sides = (cell & -of.view(np.int8)) - (~of).view(np.int8)
    return found
