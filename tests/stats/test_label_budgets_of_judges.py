import numpy as np
import pytest

from evaluations.stats.estimates import Estimate, undefined_estimate
from evaluations.stats.items import Items
from evaluations.stats.label_budget import NO_CANDIDATE, EstimateVariance, label_budgets
from evaluations.stats.matches import Matches
from evaluations.stats.outcomes import JudgedMatches, ReviewedMatches
from evaluations.stats.win_rates import WinRates, estimate_win_rates

N, REVIEWED = 1_000, 200


def study() -> tuple[Items, np.ndarray, np.ndarray]:
    """A thousand comparisons of alpha and beta, each a cluster of its own; people on 200, a judge on all."""
    rng = np.random.default_rng(3)
    zeros = np.zeros(N, dtype=np.int64)
    items = Items(
        np.arange(N),
        zeros - 1,
        (),
        zeros,
        zeros + 1,
        ("alpha", "beta"),
        ("", ""),
        zeros,
        zeros,
        zeros,
        zeros,
        np.arange(N),
        zeros,
    )
    truth = rng.choice(3, N, p=[0.5, 0.3, 0.2]).astype(np.int8)
    people = np.where(np.arange(N) < REVIEWED, truth, -1).astype(np.int8)
    judge = np.where(rng.random(N) < 0.8, truth, rng.integers(0, 3, N)).astype(np.int8)
    return items, people, judge


def test_the_plan_follows_from_the_variance_of_the_number() -> None:
    items, people, judge = study()
    matches = Matches(items)
    reviewed = ReviewedMatches(matches, people)
    rates, variances = (
        estimate_win_rates(reviewed, JudgedMatches(matches, judge)),
        reviewed.candidates.means.variance.tolist(),
    )
    # The interval is cut off at 1; that its half width is .05 says nothing of the error.
    agreement = EstimateVariance(Estimate(0.96, REVIEWED).with_interval(0.9, 1.0, "by hand"), (0.06 / 1.959964) ** 2)
    constant = EstimateVariance(undefined_estimate("Constant.", REVIEWED), 0.0)
    found = label_budgets(agreement, constant, rates, variances, items, people, votes=REVIEWED)
    # ±.06 from 200 clusters; ±.03 takes four times as many: 600 more, and 800 are not reviewed yet.
    assert found.agreement.half_width == pytest.approx(0.06)
    by_width = {one.half_width: one for one in found.agreement.targets}
    assert (by_width[0.03].clusters, by_width[0.03].reviews_more, by_width[0.03].suffices) == (800, 600, True)
    assert not by_width[0.02].suffices
    assert (found.cohen_kappa.why, found.cohen_kappa.targets) == ("Constant.", ())
    assert found.candidate in ("alpha", "beta")
    candidate = list(rates.candidates).index(found.candidate)
    assert found.win_rate.half_width == pytest.approx(1.959964 * variances[candidate] ** 0.5)
    assert found.saving.share == pytest.approx(1 - (rates.candidates[found.candidate].width_ratio or 0) ** 2)


def test_without_a_candidate_there_is_no_win_rate_to_plan_for() -> None:
    items, people, _ = study()
    agreement = EstimateVariance(Estimate(0.7, REVIEWED).with_interval(0.64, 0.76, "by hand"), (0.06 / 1.959964) ** 2)
    found = label_budgets(agreement, agreement, WinRates({}, ()), (), items, people, votes=REVIEWED)
    assert (found.candidate, found.win_rate.why, found.win_rate.targets) == (None, NO_CANDIDATE, ())
    assert found.saving.share is None
