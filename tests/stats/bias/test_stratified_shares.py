from math import sqrt

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.stats import t as student

from evaluations.stats.bias.strata import CountsByStratum, single_stratum
from evaluations.stats.bias.stratified_shares import (
    BOTH_RATERS_CELLS,
    EVENT,
    ONE_RATER_ALL,
    ONE_RATER_CELLS,
    balance_shares,
    judge_people_shares,
    stratum_ratios,
    stratum_shares,
)
from evaluations.stats.cluster_totals import Contributions
from evaluations.stats.coding import FloatArray, IntArray
from evaluations.stats.confidence_intervals import RESAMPLES, Spread, why_counts_withhold_interval, wilson_by_cluster
from evaluations.stats.estimates import Estimate

EMPTY = "There is nothing."


def counts(cluster: IntArray, cell: IntArray, cells: int) -> CountsByStratum:
    return single_stratum(cluster).counts(cell, cells)


def drawn(seed: int, clusters: int = 80) -> tuple[IntArray, IntArray]:
    """Clusters of one to nine entries and cells of four, alike within a cluster."""
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(clusters), rng.integers(1, 10, clusters))
    chances = rng.dirichlet([1, 1, 0.5, 1], clusters)[cluster]
    return cluster, (rng.random(len(cluster))[:, None] > chances.cumsum(axis=1)).sum(axis=1).clip(max=3)


def by_regression(cluster: IntArray, values: FloatArray) -> float:
    """The variance of a mean robust by cluster, as statsmodels has it for a regression on a constant."""
    fit = sm.OLS(values, np.ones(len(values))).fit(cov_type="cluster", cov_kwds={"groups": cluster})
    return float(fit.bse[0] ** 2)


@pytest.mark.parametrize("seed", range(5))
def test_the_variance_of_a_share_is_that_of_a_regression_robust_by_cluster(seed: int) -> None:
    cluster, cell = drawn(seed)
    (found,) = stratum_ratios(counts(cluster, cell % ONE_RATER_CELLS, ONE_RATER_CELLS), EVENT, ONE_RATER_ALL)
    assert found.variance == pytest.approx(by_regression(cluster, (cell % ONE_RATER_CELLS).astype(float)))


@pytest.mark.parametrize("seed", range(5))
def test_the_interval_of_a_difference_is_that_of_a_regression_on_paired_differences(seed: int) -> None:
    # Cells: neither, judge, people, both.
    cluster, cell = drawn(seed)
    (found,) = judge_people_shares(counts(cluster, cell, BOTH_RATERS_CELLS), EMPTY)
    paired = np.array([0.0, 1.0, -1.0, 0.0])[cell]
    margin = student.ppf(0.975, 79) * sqrt(by_regression(cluster, paired))
    assert found.difference.value == pytest.approx(paired.mean())
    assert found.difference.ci95 == pytest.approx((paired.mean() - margin, paired.mean() + margin))
    assert found.judge.value is not None
    assert found.people.value is not None
    assert found.difference.value == pytest.approx(found.judge.value - found.people.value)


def share_of_the_odd(totals: FloatArray) -> FloatArray:
    return np.asarray(totals[..., 1] / totals.sum(axis=-1))


@pytest.mark.parametrize("alone", [True, False])
def test_a_share_has_the_interval_that_the_rest_of_the_report_would_give_it(alone: bool) -> None:
    cluster, cell = drawn(3)
    cluster = np.arange(len(cluster)) if alone else cluster
    (found,) = stratum_shares(counts(cluster, cell % ONE_RATER_CELLS, ONE_RATER_CELLS), EVENT, ONE_RATER_ALL, EMPTY)
    spread = Spread(Contributions(cluster, cell % ONE_RATER_CELLS, ONE_RATER_CELLS))
    expected = wilson_by_cluster(Estimate(float((cell % ONE_RATER_CELLS).mean()), len(cell)), spread, share_of_the_odd)
    assert (found.value, found.n, found.ci95_rule) == (expected.value, expected.n, expected.ci95_rule)
    assert found.ci95 == pytest.approx(expected.ci95)


def test_with_many_clusters_it_says_what_the_bootstrap_says() -> None:
    cluster, cell = drawn(4, clusters=1_500)
    (found,) = judge_people_shares(counts(cluster, cell, BOTH_RATERS_CELLS), EMPTY)
    spread = Spread(Contributions(cluster, cell, BOTH_RATERS_CELLS))

    def difference(totals: FloatArray) -> FloatArray:
        return np.asarray((totals[..., 1] - totals[..., 2]) / totals.sum(axis=-1))

    assert found.difference.value is not None
    drawn_anew = spread.interval(Estimate(found.difference.value, found.difference.n), difference)
    assert f"{RESAMPLES:,} resamples" in (drawn_anew.ci95_rule or "")
    assert found.difference.ci95 == pytest.approx(drawn_anew.ci95, abs=0.002)


def test_a_difference_that_few_clusters_speak_of_has_no_interval() -> None:
    cell = np.array([0] * 50 + [1] * 9)
    (found,) = judge_people_shares(counts(np.arange(59), cell, BOTH_RATERS_CELLS), EMPTY)
    assert found.difference.value == pytest.approx(9 / 59)
    assert (found.difference.ci95, found.difference.ci95_why) == (None, why_counts_withhold_interval(59, 9))


def test_nothing_has_no_share_and_no_difference() -> None:
    nothing = np.array([], dtype=np.int64)
    (found,) = judge_people_shares(counts(nothing, nothing, BOTH_RATERS_CELLS), EMPTY)
    for number in (found.judge, found.people, found.difference):
        assert (number.value, number.n, number.why) == (None, 0, EMPTY)


def test_an_entry_that_holds_both_ways_narrows_what_it_is_part_of() -> None:
    # 60 entries hold one of each, 40 two of one: Σ part = 60 + 80 of 200, p = .7. Each of the 60 is off by
    # 1 − 1.4 = −.4, each of the 40 by .6: variance (60 · .16 + 40 · .36) ÷ 200² · 100/99 = 24/40,000 · 100/99
    # As 200 entries by chance it would be .21/200, nearly twice that.
    cell = np.array([0] * 60 + [1] * 40)
    one = counts(np.arange(100), cell, 2)
    (found,) = balance_shares(one, np.array([1, 2]), np.array([2, 2]), np.array([False, True]), EMPTY)
    margin = student.ppf(0.975, 99) * sqrt(24 / 40_000 * 100 / 99)
    assert found.value == pytest.approx(0.7)
    assert found.ci95 == pytest.approx((0.7 - margin, 0.7 + margin))


def test_where_few_entries_lean_either_way_a_balance_has_wilsons_interval() -> None:
    cell = np.array([0] * 60 + [1] * 9)
    one = counts(np.arange(69), cell, 2)
    (found,) = balance_shares(one, np.array([1, 2]), np.array([2, 2]), np.array([False, True]), EMPTY)
    assert (found.ci95_rule or "").startswith("Wilson")
