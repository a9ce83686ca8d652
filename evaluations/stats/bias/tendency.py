"""How often a judge shows a tendency, and how often people do on the same comparisons."""

from dataclasses import dataclass
from math import copysign, inf, isfinite, nan, sqrt
from typing import Final

import numpy as np

from evaluations.stats.bias.paired_sides import JudgeSides, PairedSides
from evaluations.stats.bias.strata import CountsByStratum, Strata
from evaluations.stats.bias.stratified_shares import (
    BOTH,
    DID,
    DIFFERING,
    JUDGE_DID,
    OF_BOTH,
    OF_ONE,
    ONE,
    PEOPLE_DID,
    JudgeVersusPeopleShares,
    judge_people_shares,
    linearised_interval,
    stratum_shares,
)
from evaluations.stats.coding import MISSING, NO_SIDE, BoolArray, FloatArray, IntArray, Sides, has_side
from evaluations.stats.confidence_intervals import Bounds, why_counts_withhold_interval
from evaluations.stats.distributions import t_quantile
from evaluations.stats.estimates import Estimate, undefined_estimate
from evaluations.stats.simultaneous_intervals import LEVEL, Claim

NO_VERDICT: Final = "The judge has no verdict here."
NO_VOTES: Final = "The judge has a verdict on nothing that people have one on."
NO_CHOICE: Final = "The judge chose a side on no such comparison."
NO_CHOICES: Final = "On no such comparison did both the judge and people choose a side."
ONE_WAY: Final = "The majority is on one side of these comparisons throughout."
ASYMMETRY: Final[Bounds] = (-1.0, 1.0)


@dataclass(frozen=True)
class BiasTendency:
    """``judge``: over all that it has a say on. ``majority``: beside the majority of people on each comparison.
    ``votes``: beside each single vote, of which a judge that knows more than a voter differs without any leaning.
    ``given_majority``: how much more often the judge takes the favoured side against the majority than the other side,
    where two people or more voted; None of what is no preference. ``claim``: what is shown over all claims at once.
    """

    judge: Estimate
    majority: JudgeVersusPeopleShares
    votes: JudgeVersusPeopleShares
    given_majority: Estimate | None = None
    claim: Claim = Claim.NONE


def side_preference(favoured: Sides, of: JudgeSides, claims: int | None = None) -> BiasTendency:
    """P(the favoured side is chosen | a side is). ``favoured``: one for each item, MISSING where none is.

    ``claims``: how many a report may make; None where it makes none of this preference.
    """
    sided = of.majority.sided
    backed = paired_preference_counts(sided.where(of.backed[sided.item]), favoured)
    return BiasTendency(
        judge=preference_shares(of.strata, favoured, of.side)[0],
        majority=judge_people_shares(paired_preference_counts(sided, favoured), NO_CHOICES)[0],
        votes=judge_people_shares(paired_preference_counts(of.votes.sided, favoured), NO_CHOICES)[0],
        given_majority=asymmetry_against_majority(backed),
        claim=Claim.NONE if claims is None else preference_claim(backed, claims),
    )


# ---- what is shown of a preference -----------------------------------------------------------


def asymmetry_against_majority(counts: CountsByStratum) -> Estimate:
    """P(judge favours | majority does not) − P(judge does not | majority favours), linearised."""
    value, slope = asymmetry_with_gradient(counts.totals[0])
    number = Estimate(value, int(counts.totals[0].sum())) if isfinite(value) else undefined_estimate(ONE_WAY)
    if number.value is None:
        return number
    if why := explain_no_asymmetry(counts):
        return number.without_interval(why)
    return linearised_interval(number, int(counts.clusters[0]), gradient_variance(counts, slope), ASYMMETRY)


def asymmetry_with_gradient(cells: IntArray) -> tuple[float, FloatArray]:
    """The asymmetry of the cells of judge and majority, with its gradient; NaN where the majority never varies."""
    neither, judge, people, both = (float(cell) for cell in cells)
    without, within = neither + judge, people + both
    if not without or not within:
        return nan, np.zeros(len(cells))
    slope = np.array([-judge / without**2, neither / without**2, -both / within**2, people / within**2])
    return judge / without - people / within, slope


def preference_claim(counts: CountsByStratum, claims: int) -> Claim:
    """A claim where the judge favours a side more often than the majority and also disagrees more in its favour.

    The first alone is true of a noisy judge where the majority does not favour it; the second of any judge where it is
    better, for a majority errs. Each at the level of one of so many claims (Bonferroni), by t.
    """
    if explain_no_asymmetry(counts):
        return Claim.NONE
    n = float(counts.totals[0].sum())
    level = t_quantile(1 - LEVEL / (2 * claims), float(counts.effective(OF_BOTH > 0)[0]) - 1)
    value, slope = asymmetry_with_gradient(counts.totals[0])
    more = float(counts.totals[0] @ (JUDGE_DID - PEOPLE_DID)) / n
    shares = ((more, (JUDGE_DID - PEOPLE_DID - more) / n), (value, slope))
    t = [t_statistic(share, gradient_variance(counts, u)) for share, u in shares]
    if min(t) > level:
        return Claim.ABOVE
    return Claim.BELOW if max(t) < -level else Claim.NONE


def t_statistic(value: float, variance: float) -> float:
    """The t statistic; without variance, infinite on the side of the value."""
    return value / sqrt(variance) if variance else copysign(inf, value) if value else 0.0


def explain_no_asymmetry(counts: CountsByStratum) -> str | None:
    effective, differing = float(counts.effective(OF_BOTH > 0)[0]), int(counts.clusters_with(DIFFERING)[0])
    if not np.isfinite(asymmetry_with_gradient(counts.totals[0])[0]):
        return ONE_WAY
    return why_counts_withhold_interval(effective, differing, clusters=int(counts.clusters[0]))


def gradient_variance(counts: CountsByStratum, u: FloatArray) -> float:
    return float(counts.variance(u[None, :], np.ones(1, dtype=np.int64), counts.clusters)[0])


def tie_tendency(of: JudgeSides) -> BiasTendency:
    """The share of verdicts that choose no side: ties, and both bad."""
    majority, votes = (
        judge_people_shares(paired_tie_counts(met), NO_VOTES)[0] for met in (of.majority.all, of.votes.all)
    )
    return BiasTendency(tie_shares(of.strata, of.side)[0], majority, votes)


def unknown_tendency(why: str) -> BiasTendency:
    number = undefined_estimate(why)
    return BiasTendency(
        number, JudgeVersusPeopleShares(number, number, number), JudgeVersusPeopleShares(number, number, number)
    )


def preference_shares(strata: Strata, favoured: Sides, judge: Sides) -> list[Estimate]:
    return event_shares(strata, judge == favoured, (favoured != MISSING) & has_side(judge), NO_CHOICE)


def tie_shares(strata: Strata, judge: Sides) -> list[Estimate]:
    return event_shares(strata, judge == NO_SIDE, judge != MISSING, NO_VERDICT)


def paired_preference_counts(sided: PairedSides, favoured: Sides) -> CountsByStratum:
    of = favoured[sided.item]
    return paired_event_counts(sided, sided.judge == of, sided.people == of, of != MISSING)


def paired_tie_counts(met: PairedSides) -> CountsByStratum:
    return paired_event_counts(met, met.judge == NO_SIDE, met.people == NO_SIDE, met.judge != MISSING)


def event_shares(strata: Strata, it: BoolArray, of: BoolArray, empty: str) -> list[Estimate]:
    return stratum_shares(strata.counts(masked_cells(it.view(np.int8), of), ONE), DID, OF_ONE, empty)


def paired_event_counts(met: PairedSides, judge: BoolArray, people: BoolArray, of: BoolArray) -> CountsByStratum:
    return met.strata.counts(masked_cells(judge.view(np.int8) + 2 * people.view(np.int8), of), BOTH)


def masked_cells(cell: Sides, of: BoolArray) -> Sides:
    """The cell of each selected entry, MISSING elsewhere."""
    found: Sides = (cell & -of.view(np.int8)) - (~of).view(np.int8)
    return found
