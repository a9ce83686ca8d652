from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, permutation_test
from statsmodels.stats.contingency_tables import mcnemar as statsmodels_mcnemar

from evaluations.stats.coding import IntArray
from evaluations.stats.judge_comparison import FLIPS, ONE_BY_ONE, mcnemar_p, sign_flip_p

pytestmark = pytest.mark.any_database

counts = st.integers(0, 400)


def exact(difference: list[int]) -> float:
    """Every way to set the signs, once."""
    sizes, observed = np.abs(difference), abs(sum(difference))
    signs = np.array(list(product((-1, 1), repeat=len(difference))))
    return float((np.abs(signs @ sizes) >= observed).mean())


def simulation_error(p: float) -> float:
    """Five standard errors of a share of FLIPS draws, and the one flip that is added."""
    return float(5 * (p * (1 - p) / FLIPS) ** 0.5 + 2 / FLIPS)


def test_mcnemar_is_the_tail_of_a_fair_coin() -> None:
    # 1 against 5: P(X ≤ 1) of 6 tosses = (1 + 6)/64, twice that is 14/64.
    assert mcnemar_p(1, 5) == pytest.approx(14 / 64)
    assert mcnemar_p(5, 1) == pytest.approx(14 / 64)
    assert (mcnemar_p(0, 0), mcnemar_p(3, 3), mcnemar_p(0, 1)) == (1, 1, 1)


@given(counts, counts)
def test_mcnemar_equals_statsmodels(only_first: int, only_second: int) -> None:
    table = [[0, only_first], [only_second, 0]]
    if only_first + only_second:
        assert mcnemar_p(only_first, only_second) == pytest.approx(statsmodels_mcnemar(table, exact=True).pvalue)


def test_mcnemar_holds_among_hundreds_of_thousands() -> None:
    for pair in ((250_000, 251_500), (499_000, 501_000)):
        assert mcnemar_p(*pair) == pytest.approx(binomtest(pair[0], sum(pair)).pvalue, rel=1e-8)
    assert mcnemar_p(500_000, 0) == 0


@given(st.lists(st.integers(-6, 6), min_size=1, max_size=12))
@settings(max_examples=40, deadline=None)
def test_sign_flips_come_as_near_to_all_ways_of_setting_the_signs_as_draws_can(difference: list[int]) -> None:
    p = exact(difference)
    assert sign_flip_p(np.array(difference)) == pytest.approx(p, abs=simulation_error(p))


def test_sign_flips_equal_scipys_permutation_of_paired_samples() -> None:
    rng = np.random.default_rng(2)
    first, second = rng.integers(0, 6, size=(2, 60))

    def difference(x: IntArray, y: IntArray, axis: int) -> IntArray:
        return np.asarray((x - y).sum(axis=axis))

    found = permutation_test(
        (first, second), difference, permutation_type="samples", n_resamples=FLIPS, vectorized=True, rng=rng
    )
    # Both are draws: their errors add up.
    assert sign_flip_p(first - second) == pytest.approx(found.pvalue, abs=1.5 * simulation_error(found.pvalue))


def test_clusters_that_are_alike_are_drawn_together_and_mean_the_same() -> None:
    # 1,200 clusters with one more for the first, 1,100 with one more for the second: the sign test of 2,300 tosses.
    many = np.repeat([1, -1, 0], [1_200, 1_100, 50])
    assert len(many) > 2 * ONE_BY_ONE
    p = binomtest(1_100, 2_300).pvalue
    assert sign_flip_p(many) == pytest.approx(p, abs=simulation_error(p))
    assert sign_flip_p(3 * many) == sign_flip_p(many)
    # And with the few, of other sizes, that are drawn one by one: by the normal law, Σd² = 2,300 + 25 · 400.
    mixed = np.concatenate([many, np.full(25, 20)])
    z = (100 + 500) / (2_300 + 25 * 400) ** 0.5
    assert z == pytest.approx(5.41, abs=0.01)
    assert sign_flip_p(mixed) == 1 / (FLIPS + 1)
    assert sign_flip_p(np.concatenate([many, np.tile([20, -20], 12)])) > 0.3


def test_no_difference_anywhere_is_no_evidence() -> None:
    assert sign_flip_p(np.zeros(30, dtype=np.int64)) == 1


def test_few_clusters_cannot_give_a_small_p() -> None:
    # Four clusters, all for the first: of 16 ways two are as far from 0, p = 1/8.
    assert sign_flip_p(np.array([3, 9, 4, 1])) == pytest.approx(1 / 8, abs=simulation_error(1 / 8))


def test_the_same_question_is_answered_the_same_twice() -> None:
    difference = np.random.default_rng(4).integers(-3, 4, size=80)
    assert sign_flip_p(difference) == sign_flip_p(difference.copy())
