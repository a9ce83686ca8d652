import numpy as np
import pytest
import statsmodels.api as sm
from scipy.stats import norm
from scipy.stats import t as student

from evaluations.stats.bias.length_slope import NO_CHOICE, NO_SLOPE, length_slope
from evaluations.stats.bias.strata import single_stratum
from evaluations.stats.bias.traits import FINENESS, LengthTraits, length_traits
from evaluations.stats.coding import MISSING, A, B, IntArray, Sides
from evaluations.stats.estimates import Estimate


def slope_of(lengths: LengthTraits, side: Sides, cluster: IntArray) -> Estimate:
    return length_slope(lengths, single_stratum(cluster), np.arange(len(side)), side)


def chosen(seed: int, n: int, clusters: int) -> tuple[IntArray, IntArray, Sides, IntArray]:
    """Characters of A and of B, sides, and clusters that lean either way."""
    rng = np.random.default_rng(seed)
    a, b = np.exp(rng.normal(6, 0.7, (2, n))).astype(np.int64)
    cluster = rng.integers(clusters, size=n)
    log_odds = 0.4 + 0.6 * np.log1p(a) - 0.6 * np.log1p(b) + rng.normal(0, 0.8, clusters)[cluster]
    side = np.where(rng.random(n) < 1 / (1 + np.exp(-log_odds)), A, B).astype(np.int8)
    return a, b, side, cluster


def test_with_many_choices_it_is_the_logistic_regression_of_statsmodels_robust_by_cluster() -> None:
    # Firth's penalty and the rounding of the lengths are worth next to nothing at 20,000 choices.
    a, b, side, cluster = chosen(1, 20_000, 60)
    kept = a != b
    design = sm.add_constant((np.log1p(a) - np.log1p(b))[kept])
    fit = sm.GLM((side == A)[kept].astype(float), design, family=sm.families.Binomial()).fit(
        cov_type="cluster", cov_kwds={"groups": cluster[kept]}
    )
    found = slope_of(length_traits(a, b), side, cluster)
    assert found.n == int(kept.sum())
    assert found.value == pytest.approx(fit.params[1], abs=2e-3)
    low, high = fit.conf_int()[1]
    wider = student.ppf(0.975, 59) / norm.ppf(0.975)
    assert found.ci95 is not None
    assert found.ci95[1] - found.ci95[0] == pytest.approx((high - low) * wider, rel=0.01)


def test_lengths_are_rounded_to_a_percent_of_themselves() -> None:
    a, b = np.array([99, 999, 10]), np.array([0, 998, 10])
    lengths = length_traits(a, b)
    assert np.abs(lengths.log_ratios[lengths.ratio] - np.log((a + 1) / (b + 1))).max() <= 0.5 / FINENESS
    assert lengths.longer.tolist() == [A, A, MISSING]


def test_a_preference_for_a_at_any_length_is_no_slope() -> None:
    # As often A among the longer as among the shorter, the same ratio either way: the slope is 0, whatever A's lead.
    a, b = np.array([200] * 40 + [100] * 40), np.array([100] * 40 + [200] * 40)
    side = np.array(([A] * 30 + [B] * 10) * 2, dtype=np.int8)
    assert slope_of(length_traits(a, b), side, np.arange(80)).value == pytest.approx(0, abs=1e-9)


def test_few_clusters_give_a_slope_without_an_interval() -> None:
    a, b, side, cluster = chosen(2, 300, 39)
    found = slope_of(length_traits(a, b), side, cluster)
    assert found.value is not None
    assert found.ci95_why == "Too few clusters for a CI (35 < 40)."


def test_without_choices_or_with_one_ratio_alone_there_is_no_slope() -> None:
    same, nothing = np.full(50, 100), np.array([], dtype=np.int64)
    sides = np.array([A, B] * 25, dtype=np.int8)
    assert slope_of(length_traits(same, same), sides, np.arange(50)).why == NO_CHOICE
    assert slope_of(length_traits(nothing, nothing), sides[:0], nothing).why == NO_CHOICE
    assert slope_of(length_traits(same, same * 2), sides, np.arange(50)).why == NO_SLOPE
