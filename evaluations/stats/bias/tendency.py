"""How often a judge shows a tendency, and how often people do on the same comparisons."""

from dataclasses import dataclass
from math import copysign, inf, isfinite, nan, sqrt
from typing import Final

import numpy as np

from evaluations.stats.bias.paired_sides import JudgeSides, PairedSides
from evaluations.stats.bias.strata import CountsByStratum, Strata
from evaluations.stats.bias.stratified_shares import (
    BOTH_RATERS_ALL,
    BOTH_RATERS_CELLS,
    DIFFERING,
    EVENT,
    JUDGE_EVENT,
    ONE_RATER_ALL,
    ONE_RATER_CELLS,
    PEOPLE_EVENT,
    judge_people_shares,
    linearised_interval,
    stratum_shares,
)
from evaluations.stats.coding import MISSING, NO_SIDE, BoolArray, FloatArray, IntArray, Sides, has_side
from evaluations.stats.confidence_intervals import Bounds, why_counts_withhold_interval
from evaluations.stats.estimates import Estimate, JudgeVersusPeople, undefined_estimate
from evaluations.stats.significance import t_quantile
from evaluations.stats.simultaneous_intervals import LEVEL, Claim

NO_VERDICT: Final = "The judge has no verdict here."
NO_VOTES: Final = "No comparison has both a verdict of the judge and a reviewer majority."
NO_CHOICE: Final = "The judge never prefers a side on these comparisons."
NO_CHOICES: Final = "On none of these comparisons did both the judge and reviewers prefer a side."
ONE_WAY: Final = "The majority is on the same side of all these comparisons."
ASYMMETRY: Final[Bounds] = (-1.0, 1.0)


@dataclass(frozen=True)
class BiasTendency:
    """How often a judge shows a tendency, alone and compared with people.

    ``judge``: over all its verdicts. ``majority``: compared with the majority of people on each comparison. ``votes``:
    compared with each single vote; a judge that knows more than a voter differs from it without any bias.
    ``given_majority``: how much more often the judge takes the favoured side against the majority than the other side,
    where two people or more voted; None for what is no preference. ``claim``: what is shown, over all claims at once.
    """

    judge: Estimate
    majority: JudgeVersusPeople
    votes: JudgeVersusPeople
    given_majority: Estimate | None = None
    claim: Claim = Claim.NONE


def side_preference(favoured: Sides, sides: JudgeSides, claims: int | None = None) -> BiasTendency:
    """P(the favoured side is chosen | a side is). ``favoured``: the side of each item, MISSING where there is none.

    ``claims``: how many claims the report may make; None where it makes none about this preference.
    """
    sided = sides.majority.sided
    backed = paired_preference_counts(sided.where(sides.has_two_votes[sided.item]), favoured)
    return BiasTendency(
        judge=preference_shares(sides.strata, favoured, sides.side)[0],
        majority=judge_people_shares(paired_preference_counts(sided, favoured), NO_CHOICES)[0],
        votes=judge_people_shares(paired_preference_counts(sides.votes.sided, favoured), NO_CHOICES)[0],
        given_majority=asymmetry_against_majority(backed),
        claim=Claim.NONE if claims is None else preference_claim(backed, claims),
    )


def asymmetry_against_majority(counts: CountsByStratum) -> Estimate:
    """P(judge favours | majority does not) − P(judge does not | majority favours), linearised."""
    value, slope = asymmetry_with_gradient(counts.totals[0])
    if not isfinite(value):
        return undefined_estimate(ONE_WAY)
    number = Estimate(value, int(counts.totals[0].sum()))
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

    The first alone holds for a noisy judge where the majority does not favour the side; the second for any judge where
    the side is better, because majorities err. Each is tested by t at the level of one of ``claims`` (Bonferroni).
    """
    if explain_no_asymmetry(counts):
        return Claim.NONE
    n = float(counts.totals[0].sum())
    level = t_quantile(1 - LEVEL / (2 * claims), float(counts.effective(BOTH_RATERS_ALL > 0)[0]) - 1)
    value, slope = asymmetry_with_gradient(counts.totals[0])
    more = float(counts.totals[0] @ (JUDGE_EVENT - PEOPLE_EVENT)) / n
    shares = ((more, (JUDGE_EVENT - PEOPLE_EVENT - more) / n), (value, slope))
    t = [t_statistic(share, gradient_variance(counts, u)) for share, u in shares]
    if min(t) > level:
        return Claim.ABOVE
    return Claim.BELOW if max(t) < -level else Claim.NONE


def t_statistic(value: float, variance: float) -> float:
    """The t statistic; without variance, infinite on the side of the value."""
    return value / sqrt(variance) if variance else copysign(inf, value) if value else 0.0


def explain_no_asymmetry(counts: CountsByStratum) -> str | None:
    effective, differing = float(counts.effective(BOTH_RATERS_ALL > 0)[0]), int(counts.clusters_with(DIFFERING)[0])
    if not np.isfinite(asymmetry_with_gradient(counts.totals[0])[0]):
        return ONE_WAY
    return why_counts_withhold_interval(effective, differing, clusters=int(counts.clusters[0]))


def gradient_variance(counts: CountsByStratum, u: FloatArray) -> float:
    return float(counts.variance(u[None, :], np.ones(1, dtype=np.int64), counts.clusters)[0])


def tie_tendency(sides: JudgeSides) -> BiasTendency:
    """The share of verdicts that choose no side: ties, and both bad."""
    majority, votes = (
        judge_people_shares(paired_tie_counts(pairs), NO_VOTES)[0] for pairs in (sides.majority.all, sides.votes.all)
    )
    return BiasTendency(tie_shares(sides.strata, sides.side)[0], majority, votes)


def unknown_tendency(why: str) -> BiasTendency:
    number = undefined_estimate(why)
    compared = JudgeVersusPeople(number, number, number)
    return BiasTendency(number, compared, compared)


def preference_shares(strata: Strata, favoured: Sides, judge: Sides) -> list[Estimate]:
    return event_shares(strata, judge == favoured, (favoured != MISSING) & has_side(judge), NO_CHOICE)


def tie_shares(strata: Strata, judge: Sides) -> list[Estimate]:
    return event_shares(strata, judge == NO_SIDE, judge != MISSING, NO_VERDICT)


def paired_preference_counts(sided: PairedSides, favoured: Sides) -> CountsByStratum:
    favoured_side = favoured[sided.item]
    return paired_event_counts(
        sided, sided.judge_side == favoured_side, sided.people_side == favoured_side, favoured_side != MISSING
    )


def paired_tie_counts(pairs: PairedSides) -> CountsByStratum:
    return paired_event_counts(
        pairs, pairs.judge_side == NO_SIDE, pairs.people_side == NO_SIDE, pairs.judge_side != MISSING
    )


def event_shares(strata: Strata, event: BoolArray, counted: BoolArray, empty: str) -> list[Estimate]:
    return stratum_shares(
        strata.counts(masked_cells(event.view(np.int8), counted), ONE_RATER_CELLS), EVENT, ONE_RATER_ALL, empty
    )


def paired_event_counts(pairs: PairedSides, judge: BoolArray, people: BoolArray, counted: BoolArray) -> CountsByStratum:
    return pairs.strata.counts(masked_cells(judge.view(np.int8) + 2 * people.view(np.int8), counted), BOTH_RATERS_CELLS)


def masked_cells(cell: Sides, counted: BoolArray) -> Sides:
    """The cell of each selected entry, MISSING elsewhere."""
    masked: Sides = (cell & -counted.view(np.int8)) - (~counted).view(np.int8)
    return masked
