"""How often a judge preferred each candidate on one aspect, and how often its orders disagree."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evaluations.stats.coding import MISSING
from evaluations.stats.estimates import Estimate
from evaluations.stats.group_means import GroupMeans
from evaluations.stats.judge_verdicts import ConsolidatedVerdicts
from evaluations.stats.matches import LOST, TIED, WON, Matches
from evaluations.stats.outcomes import JudgedMatches
from evaluations.stats.win_rates import NOT_JUDGED, mean_estimate


@dataclass(frozen=True)
class Standing:
    """The outcomes of a candidate against ``versus``, or against all others where that is empty.

    ``rate``: the win rate, a mean over queries in which a tie counts as half a win.
    """

    candidate: str
    versus: str
    won: int
    tied: int
    lost: int
    rate: Estimate

    @property
    def n(self) -> int:
        return self.won + self.tied + self.lost

    def turned(self) -> "Standing":
        """The same outcomes, as the other candidate of a pair has them."""
        rate = self.rate
        value = None if rate.value is None else 1 - rate.value
        ci95 = None if rate.ci95 is None else (1 - rate.ci95[1], 1 - rate.ci95[0])
        turned = Estimate(value, rate.n, rate.why, ci95, rate.ci95_why, rate.ci95_rule)
        return Standing(self.versus, self.candidate, self.lost, self.tied, self.won, turned)


@dataclass(frozen=True)
class JudgeTally:
    """``n``: comparisons with a verdict. ``inconsistent``: how many of those judged ``in_both_orders`` differ."""

    standings: tuple[Standing, ...] = ()
    n: int = 0
    in_both_orders: int = 0
    inconsistent: int = 0

    @property
    def inconsistent_share(self) -> float | None:
        return self.inconsistent / self.in_both_orders if self.in_both_orders else None


def tally_judge(matches: Matches, own: ConsolidatedVerdicts) -> JudgeTally:
    """One standing where two candidates were compared, else one for each candidate, the best win rate first."""
    judged = own.choice != MISSING
    in_both_orders = judged & (own.as_stored != MISSING) & (own.swapped != MISSING)
    standings = tally_standings(matches if judged.all() else matches.restricted_to(judged), own.choice[judged])
    return JudgeTally(
        tuple(standings),
        int(judged.sum()),
        int(in_both_orders.sum()),
        int((own.inconsistent & in_both_orders).sum()),
    )


def tally_standings(matches: Matches, choice: np.ndarray[tuple[int], np.dtype[np.int8]]) -> list[Standing]:
    if not len(choice):
        return []
    judgement, names = JudgedMatches(matches, choice), matches.items.candidates
    if len(matches.compared_pairs) == 1:
        pair = [(names[int(matches.first[0])], names[int(matches.second[0])])]
        return build_standings(pair, judgement.pairs.counts.tolist(), judgement.pairs.means)
    outcomes = judgement.candidates
    rows = build_standings([(name, "") for name in names], outcomes.counts.tolist(), outcomes.means)
    return sorted((row for row in rows if row.n), key=lambda row: (-(row.rate.value or 0.0), row.candidate))


def build_standings(
    rows: Sequence[tuple[str, str]], counts: Sequence[Sequence[int]], means: GroupMeans
) -> list[Standing]:
    return [
        Standing(name, versus, count[WON], count[TIED], count[LOST], mean_estimate(means, group, NOT_JUDGED))
        for group, ((name, versus), count) in enumerate(zip(rows, counts, strict=True))
    ]
