"""Means by cluster, their one-sided bounds, and stepping down."""

from math import inf, sqrt

import numpy as np
import pytest

from evaluations.stats.decisions.contrasts import (
    Contrast,
    average_contrasts,
    contrast,
    difference_with_interval,
    one_sided_bounds,
    opposite,
    share_with_interval,
    step_down,
    wilson_upper_bound,
)
from evaluations.stats.significance import t_quantile

LEVEL = 0.05


def made(values: np.ndarray, cluster: np.ndarray | None = None) -> Contrast:
    one = contrast(values.astype(float), np.arange(len(values)) if cluster is None else cluster)
    assert one is not None
    return one


def test_the_standard_error_is_that_of_a_mean() -> None:
    values = np.array([1.0, 0, -1, 0.5, 0.5, 1])
    one = made(values)
    assert one.value == pytest.approx(2 / 6)
    assert one.standard_error == pytest.approx(values.std(ddof=1) / sqrt(6))
    assert (one.n, one.differing, one.below.sum(), one.above.sum()) == (6, 5, 1, 4)


def test_values_of_a_cluster_are_summed_before_they_vary() -> None:
    """Two clusters of two: sums of influences 2·½/4 and −2·½/4, so the error is √(2 · (1/4)² · 2)."""
    one = made(np.array([1.0, 1, 0, 0]), np.array([0, 0, 1, 1]))
    assert one.standard_error == pytest.approx(sqrt(2 * 0.25**2 * 2))
    assert one.effective == 2


def test_weights_make_a_ratio() -> None:
    one = contrast(np.array([1.0, 0.5]), np.arange(2), np.array([1.0, 2.0]))
    assert one is not None
    assert one.value == pytest.approx(2 / 3)


def test_nothing_has_no_contrast() -> None:
    assert contrast(np.empty(0), np.empty(0, dtype=np.int64)) is None


def test_an_average_over_aspects_is_over_the_same_clusters() -> None:
    """Both aspects in each cluster move together, so that their mean varies as one of them does."""
    values = np.random.default_rng(1).normal(size=60)
    same = average_contrasts([made(values), made(values)])
    assert same.standard_error == pytest.approx(made(values).standard_error)
    apart = average_contrasts([made(values), made(-values)])
    assert apart.value == pytest.approx(0)
    assert apart.standard_error < 1e-9


def test_bounds_are_those_of_t_where_values_are_symmetric() -> None:
    values = np.random.default_rng(2).normal(size=400) / 4
    one = made(values)
    (bounds,) = one_sided_bounds([one], LEVEL)
    margin = t_quantile(1 - LEVEL, 399) * one.standard_error
    assert bounds.low == pytest.approx(one.value - margin, abs=0.1 * margin)
    assert bounds.high == pytest.approx(one.value + margin, abs=0.1 * margin)
    (mirrored,) = one_sided_bounds([opposite(one)], LEVEL)
    assert mirrored.high == pytest.approx(-bounds.low)


def test_few_clusters_have_no_bounds() -> None:
    (bounds,) = one_sided_bounds([made(np.array([1.0, -1] * 4))], LEVEL)
    assert (bounds.low, bounds.high) == (-inf, inf)


def test_where_hardly_anything_differs_bounds_are_wilsons() -> None:
    """3 of 200 clusters below 0 and none above: no resample would ever be far from −0.015."""
    values = np.zeros(200)
    values[:3] = -1
    (bounds,) = one_sided_bounds([made(values)], LEVEL)
    z = t_quantile(1 - LEVEL, 199)
    assert bounds.low == pytest.approx(-wilson_upper_bound(3 / 200, 200, z))
    assert bounds.high == pytest.approx(wilson_upper_bound(0.0, 200, z))
    assert -0.05 < bounds.low < -0.03


def test_a_group_is_shown_only_if_all_its_contrasts_are() -> None:
    rng = np.random.default_rng(3)
    high, low = made(rng.normal(0.5, 0.4, 100)), made(rng.normal(0.0, 0.4, 100))
    assert step_down([[(high, 0.0)], [(high, 0.0), (low, 0.0)], []], LEVEL) == [True, False, False]
    assert step_down([[(high, 0.6)]], LEVEL) == [False]


def test_stepping_down_shows_more_than_one_critical_value() -> None:
    """A contrast that is shown leaves the largest t, so that another needs to exceed less."""
    rng = np.random.default_rng(4)
    columns = rng.normal(0, 1, (80, 30))
    columns -= columns.mean(axis=0)
    columns /= columns.std(axis=0, ddof=1)
    strong = [made((column + 9) / 20) for column in columns[:, :29].T]
    weak = made((columns[:, 29] + 0.26) / 20)  # t = 2.3: above the quantile of one, below that of thirty
    assert step_down([[(one, 0.0)] for one in [*strong, weak]], LEVEL)[-1]
    unshown = [made(column / 20) for column in columns[:, :29].T]
    assert not step_down([[(one, 0.0)] for one in [*unshown, weak]], LEVEL)[-1]


def test_false_claims_over_twelve_null_contrasts_keep_the_level() -> None:
    false = 0
    for seed in range(200):
        columns = np.random.default_rng([5, seed]).normal(size=(60, 12)) / 4
        false += any(step_down([[(made(column), 0.0)] for column in columns.T], LEVEL))
    assert false <= 20  # 5 % of 200 are 10; more than 20 in one sample of a thousand


def test_intervals_say_why_they_are_missing() -> None:
    assert difference_with_interval(None, "why").why == "why"
    assert difference_with_interval(made(np.zeros(50)), "").ci95 is None
    assert (
        difference_with_interval(made(np.array([1.0, -1] * 10)), "").ci95_why == "Too few clusters for a CI (20 < 40)."
    )
    share = share_with_interval(made(np.array([1.0] * 20)), "")
    assert share.ci95 is not None
    assert share.ci95[0] < 0.9
    assert share.ci95[1] == pytest.approx(1)
