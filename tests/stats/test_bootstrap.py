import numpy as np
import pytest
from scipy import stats

from evaluations.stats.coding import FloatArray
from evaluations.stats.confidence_intervals import (
    NORMAL,
    bca_accelerations,
    bca_bounds,
    interpolated_quantile,
    resample_totals,
)
from evaluations.stats.significance import t_975

RNG = np.random.default_rng(11)
SKEWED = RNG.exponential(size=50)


def mean(values: FloatArray, axis: int = -1) -> FloatArray:
    return np.asarray(values.mean(axis=axis))


def test_the_bounds_are_those_of_scipys_bca_bootstrap_at_the_level_that_is_asked_for() -> None:
    # The same resampled means go to both; scipy's level is that of the deviate of t.
    found = np.divide(*resample_totals(np.stack([SKEWED, np.ones(len(SKEWED))], axis=1)).T)
    drawn = stats.bootstrap((SKEWED,), mean, n_resamples=2, method="percentile", rng=1)
    drawn.bootstrap_distribution = found
    level = 2 * NORMAL.cdf(t_975(len(SKEWED) - 1)) - 1
    theirs = stats.bootstrap(
        (SKEWED,), mean, n_resamples=0, bootstrap_result=drawn, confidence_level=level, method="BCa"
    ).confidence_interval
    skewness = float(bca_accelerations((SKEWED - SKEWED.mean())[None])[0])
    mine = bca_bounds(np.sort(found), SKEWED.mean(), skewness, len(SKEWED))
    assert mine == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_a_symmetric_number_has_the_plain_quantiles_of_a_t_interval() -> None:
    # 999 numbers around 0, nothing skewed: the levels are Φ(∓ t), t = 2.7764 with 4 degrees of freedom.
    ordered = np.arange(-499, 500) / 499
    low, high = bca_bounds(ordered, 0.0, 0.0, 5)
    assert high == pytest.approx(2 * stats.norm.cdf(2.776445) - 1, abs=1e-6)
    assert low == pytest.approx(-high)


def test_the_acceleration_is_a_sixth_of_the_skewness_and_nothing_where_nothing_varies() -> None:
    # −1, −1, 2: Σl³ = 6, Σl² = 6: 6 / (6 · 6^1.5).
    assert bca_accelerations(np.array([[-1.0, -1, 2], [0, 0, 0]])).tolist() == pytest.approx([6**-1.5, 0])


def test_the_quantile_between_two_numbers_lies_between_them_linearly() -> None:
    ordered = np.array([0.0, 1, 4])
    assert [interpolated_quantile(ordered, level) for level in (0, 0.25, 0.75, 1)] == [0, 0.5, 2.5, 4]
    assert interpolated_quantile(ordered, 0.6) == pytest.approx(np.quantile(ordered, 0.6))
