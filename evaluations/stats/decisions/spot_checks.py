"""How many of the next comparisons reviewers must check, so that win rates corrected by them are exact enough."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, sqrt

import numpy as np

from evaluations.stats.coding import IntArray
from evaluations.stats.decisions.agreement_credits import JudgeCredits
from evaluations.stats.decisions.contrasts import contrast
from evaluations.stats.significance import Z_975


@dataclass(frozen=True)
class SpotChecks:
    """Reviews among the next ``comparisons``. ``half_width``: of the 95% CI of a win rate of each aspect.

    ``n``: how many of them to review; None where not even all of them reach the half-width, and ``reached`` is what
    reviewing all would give.
    """

    comparisons: int
    n: int | None
    half_width: float
    reached: float

    @property
    def per_100(self) -> int | None:
        return None if self.n is None else ceil(100 * self.n / self.comparisons)


@dataclass(frozen=True)
class ReviewScores:
    """Of one aspect: ``variance`` of one review's score with its design effect; ``correlation`` with the judge's."""

    variance: float
    correlation: float


def review_scores(of_judge: JudgeCredits, cluster: IntArray) -> ReviewScores | None:
    """The variance of one review's score, and its correlation with the judge's; None if constant.

    Every item counts once, however many reviews it has. ``cluster``: of every comparison.
    """
    answered = ~np.isnan(of_judge.judge_score)
    if not answered.any():
        return None
    mean, judge = of_judge.score[answered], of_judge.judge_score[answered]
    of_items = contrast(mean, cluster[of_judge.item[answered]])
    variance = float(of_judge.square[answered].mean() - mean.mean() ** 2)
    if of_items is None or variance <= 0:
        return None
    by_chance = float(mean.var()) / len(mean)
    design_effect = max(of_items.standard_error**2 / by_chance, 1.0) if by_chance else 1.0
    covariance, of_judge_alone = float(np.mean(mean * judge) - mean.mean() * judge.mean()), float(judge.var())
    correlation = covariance / sqrt(variance * of_judge_alone) if of_judge_alone else 0.0
    return ReviewScores(variance * design_effect, correlation)


def spot_checks(scores: Sequence[ReviewScores], comparisons: int, half_width: float) -> SpotChecks | None:
    """The checks that the most demanding aspect needs: n = 1 ÷ (1/N + h² ÷ (1.96² · v · (1 − ρ²))).

    ``comparisons``: N, the next ones. Where one review each of all N leaves a wider interval, no number is enough.
    """
    if not scores or not comparisons:
        return None
    reached = Z_975 * sqrt(max(score.variance for score in scores) / comparisons)
    if reached > half_width:
        return SpotChecks(comparisons, None, half_width, reached)
    left = max(score.variance * (1 - score.correlation**2) for score in scores)
    n = 1 / (1 / comparisons + half_width**2 / (Z_975**2 * left)) if left > 0 else 0.0
    return SpotChecks(comparisons, min(ceil(n), comparisons), half_width, reached)
