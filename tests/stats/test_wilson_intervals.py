import numpy as np
import pytest
from scipy.stats import t as student
from statsmodels.stats.proportion import proportion_confint

from evaluations.stats.coding import IntArray
from evaluations.stats.confidence_intervals import (
    ONE_CLUSTER,
    design_effect_n,
    why_counts_withhold_interval,
    wilson_from_variance,
)
from evaluations.stats.estimates import Estimate
from evaluations.stats.significance import EXACTLY_EXPANDED_FROM, EXPANDED_FROM, t_975, t_quantile


@pytest.mark.parametrize("degrees", [1, 2, 7, EXPANDED_FROM - 1, EXPANDED_FROM, 41, 1_000, 2_000_000])
def test_the_quantile_of_t_is_that_of_scipy_on_both_sides_of_its_expansion(degrees: int) -> None:
    assert t_975(degrees) == pytest.approx(student.ppf(0.975, degrees), rel=1e-7)


@pytest.mark.parametrize("p", [1e-5, 0.004, 0.05, 0.4, 0.975, 1 - 1e-5])
@pytest.mark.parametrize("degrees", [3, EXACTLY_EXPANDED_FROM - 1, EXACTLY_EXPANDED_FROM, 1e6])
def test_every_quantile_of_t_is_that_of_scipy(p: float, degrees: float) -> None:
    assert t_quantile(p, degrees) == pytest.approx(student.ppf(p, degrees), abs=1e-9)


def test_many_items_each_a_cluster_of_its_own_have_wilsons_interval() -> None:
    n, p = 100_000, 0.3
    found = wilson_from_variance(Estimate(p, n), n, p * (1 - p) / n)
    assert found.ci95 == pytest.approx(proportion_confint(n * p, n, method="wilson"), abs=1e-7)


def test_a_design_effect_is_items_that_count_for_nothing() -> None:
    # Twice the variance of chance: as if there were half the items.
    n, p = 400, 0.3
    doubled = wilson_from_variance(Estimate(p, n), 200, 2 * p * (1 - p) / n)
    assert doubled.ci95 == wilson_from_variance(Estimate(p, 200), 200, p * (1 - p) / 200).ci95


def test_one_cluster_has_no_interval() -> None:
    assert wilson_from_variance(Estimate(0.5, 20), 1, 0.0).ci95_why == ONE_CLUSTER


def test_five_clusters_hold_what_is_promised_of_many() -> None:
    # Shares of five clusters vary with an intraclass correlation of .2: with the normal quantile 85 % of such intervals
    # cover .5, with t on four degrees of freedom 93 %.
    rng = np.random.default_rng(5)
    clusters, size, held = 5, 20, 0
    for _ in range(1_000):
        counts = rng.binomial(size, rng.beta(2, 2, clusters))
        low, high = bounds(counts, size)
        held += low <= 0.5 <= high
    assert 900 <= held <= 980


@pytest.mark.parametrize(
    ("clusters", "size", "share", "alike"), [(40, 20, 0.97, 0.5), (20, 20, 0.95, 0.5), (60, 10, 0.97, 0.3)]
)
def test_disagreements_that_stand_in_few_clusters_together_are_covered(
    clusters: int, size: int, share: float, alike: float
) -> None:
    # With the design effect as estimated 85, 84 and 92 % of such intervals cover the share: where by chance each of
    # the few disagreements stands in a cluster of its own, it is estimated at 1.
    rng = np.random.default_rng(18)
    weight, held = 1 / alike - 1, 0
    for _ in range(1_000):
        counts = rng.binomial(size, rng.beta(share * weight, (1 - share) * weight, clusters))
        low, high = bounds(counts, size)
        held += low <= share <= high
    assert 930 <= held <= 990


def bounds(agreeing: IntArray, size: int) -> tuple[float, float]:
    """Of clusters of one size, by how many of each agree."""
    clusters = len(agreeing)
    n, p = clusters * size, agreeing.sum() / (clusters * size)
    variance = float(((agreeing - p * size) ** 2).sum()) / n**2 * clusters / (clusters - 1)
    found = wilson_from_variance(Estimate(float(p), n), clusters, variance).ci95
    assert found is not None
    return found


def test_what_few_disagreements_are_worth_grows_from_the_clusters_to_the_items() -> None:
    # 40 clusters of 20, so many disagreements, each in a cluster of its own: by chance.
    sizes = [design_effect_n(1 - one / 800, 800, 40, (1 - one / 800) * one / 800 / 800) for one in range(12)]
    assert sizes[0] == 40
    assert sizes[1] == pytest.approx(40 + 760 * 0.1)
    assert sizes == sorted(sizes)
    assert sizes[10] == pytest.approx(800)


def test_single_items_count_in_full_however_few_disagree() -> None:
    n, p = 60, 59 / 60
    assert design_effect_n(p, n, n, p * (1 - p) / n) == n


def test_too_few_clusters_are_named_before_too_few_disagreements() -> None:
    assert why_counts_withhold_interval(40, 10) is None
    assert (why_counts_withhold_interval(39, 1) or "") == "Too few clusters for a CI (39 < 40)."
    assert "Too few clusters with a disagreement for a CI (9 < 10)" in (why_counts_withhold_interval(40, 9) or "")
