"""How many reviews a corrected win rate needs, worked by hand."""

import numpy as np
import pytest

from evaluations.stats.decisions.agreement_credits import judge_credits, reviewer_credits
from evaluations.stats.decisions.spot_checks import ReviewScores, review_scores, spot_checks
from tests.stats.decisions.study import poll_of, verdicts


def test_the_formula() -> None:
    """v = .2, ρ = .5, N = 1,000, h = .05: h²/(1.96² · .2 · .75) = .0043385; 1 ÷ (.001 + .0043385) = 187.3."""
    made = spot_checks([ReviewScores(0.2, 0.5)], 1_000, 0.05)
    assert made is not None
    assert (made.n, made.per_100) == (188, 19)
    assert made.reached == pytest.approx(1.96 * np.sqrt(0.2 / 1_000), abs=1e-4)


def test_the_most_demanding_aspect_counts() -> None:
    made = spot_checks([ReviewScores(0.2, 0.9), ReviewScores(0.2, 0.5)], 1_000, 0.05)
    assert made is not None
    assert made.n == 188


def test_too_few_comparisons_reach_no_half_width() -> None:
    """1.96 · √(.2 ÷ 300) = .0506."""
    made = spot_checks([ReviewScores(0.2, 0.5)], 300, 0.05)
    assert made is not None
    assert (made.n, made.per_100) == (None, None)
    assert made.reached == pytest.approx(0.0506, abs=1e-4)
    assert spot_checks([ReviewScores(0.2, 0.5)], 310, 0.05).n is not None  # type: ignore[union-attr]


def test_a_judge_that_always_agrees_needs_none_and_nothing_makes_no_plan() -> None:
    made = spot_checks([ReviewScores(0.2, 1.0)], 1_000, 0.05)
    assert made is not None
    assert made.n == 0
    assert spot_checks([], 1_000, 0.05) is None
    assert spot_checks([ReviewScores(0.2, 0.5)], 0, 0.05) is None


def test_scores_of_reviews_vary_and_go_along_with_the_judge() -> None:
    """Votes A A, B B, A B, B A: one vote has variance ¼. The judge is right on the first two, split on the others.

    Means of votes 1, 0, ½, ½; the judge's scores 1, 0, 1, 0. Covariance of both: (1 + 0 + ½ + 0) ÷ 4 − ½ · ½ = ⅛, so
    ρ = ⅛ ÷ √(¼ · ¼) = ½.
    """
    of_judge = judge_credits(verdicts("ABAB"), reviewer_credits(poll_of("ABAB", "ABBA")))
    made = review_scores(of_judge, np.arange(4))
    assert made is not None
    assert made.correlation == pytest.approx(0.5)
    # The means vary by ⅛, with 3 in place of 4 a third more: a design effect of 4/3.
    assert made.variance == pytest.approx(0.25 * 4 / 3)


def test_constant_votes_have_no_variance() -> None:
    assert review_scores(judge_credits(verdicts("AB"), reviewer_credits(poll_of("AA", "AA"))), np.arange(2)) is None
