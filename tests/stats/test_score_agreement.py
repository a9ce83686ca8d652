import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import pearsonr, ttest_1samp

from evaluations.stats.coding import FloatArray, IntArray
from evaluations.stats.rank_correlation import CONSTANT
from evaluations.stats.score_agreement import NO_DENOMINATOR, NOTHING_SHARED, ONE_VALUE, ScoreAgreement, score_agreement

any_number = st.floats(-100, 100)
pairs_of_scores = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 3)) | st.tuples(any_number, any_number), min_size=3, max_size=40
).map(lambda pairs: np.array(pairs, dtype=np.float64))


def held(first: list[float], second: list[float]) -> ScoreAgreement:
    return score_agreement(np.array(first), np.array(second), np.arange(len(first)))


def many(n: int, clusters: int, seed: int = 7) -> tuple[FloatArray, FloatArray, IntArray]:
    rng = np.random.default_rng(seed)
    cluster = rng.integers(clusters, size=n)
    quality = rng.normal(size=clusters)[cluster] + rng.normal(size=n)
    x, y = (np.clip(np.rint(mean + quality + rng.normal(size=n)), 1, 5) for mean in (3.0, 2.5))
    return x, y, cluster


def test_a_small_case_is_what_one_works_out_by_hand() -> None:
    # Differences −1, −1, 1, −1: mean −.5, absolute 1, squared 1. Deviations of first −1.5 −.5 .5 1.5, of second
    # −1 0 −1 2: products 4, squares 5 and 6: r = 4/√30. Values 1 2 3 4 and 2 3 2 5: Σ 22, Σ² 72, alpha interval
    # 1 − (7 · 4)/(8 · 72 − 22²) = 1 − 28/92.
    found = held([1.0, 2.0, 3.0, 4.0], [2.0, 3.0, 2.0, 5.0])
    assert found.mean_difference.value == pytest.approx(-0.5)
    assert found.mean_absolute_difference.value == pytest.approx(1)
    assert found.root_mean_square_difference.value == pytest.approx(1)
    assert found.pearson.value == pytest.approx(4 / 30**0.5)
    assert found.krippendorff_alpha.value == pytest.approx(64 / 92)
    # Row sums 3 5 5 9: MSR = (140/2 − 60.5)/3 = 19/6. Column sums 10, 12: MSC = 244/4 − 60.5 = .5.
    # MSE = (72 − 60.5 − 9.5 − .5)/3 = .5. ICC(3,1) = (19/6 − 1/2)/(19/6 + 1/2), and ICC(2,1) the same for MSC = MSE.
    assert found.icc_consistency.value == pytest.approx(8 / 11)
    assert found.icc_agreement.value == pytest.approx(8 / 11)


@given(pairs_of_scores)
def test_pearson_equals_scipy(pairs: FloatArray) -> None:
    x, y = pairs.T
    assume(np.ptp(x) > 1e-3 and np.ptp(y) > 1e-3)
    found = score_agreement(x, y, np.arange(len(x)))
    assert found.pearson.value == pytest.approx(pearsonr(x, y).statistic, abs=1e-6)


def test_what_is_undefined_says_why() -> None:
    one_constant, both_constant, the_same = (
        held([1.0, 2.0], [3.0, 3.0]),
        held([1.0, 1.0], [3.0, 3.0]),
        held([2.0, 2.0], [2.0, 2.0]),
    )
    for found in (one_constant, both_constant):
        coefficients = (found.pearson, found.spearman, found.kendall_tau_b)
        same_scores = (found.icc_agreement, found.icc_consistency, found.krippendorff_alpha)
        assert {number.why for number in (*coefficients, *same_scores)} == {CONSTANT}
        assert found.mean_difference.value is not None
    assert the_same.krippendorff_alpha.why == ONE_VALUE
    assert the_same.mean_absolute_difference.value == 0
    # Scores that are turned round: rows do not vary, nor do columns, and ICC(2,1) would be divided by 0.
    assert held([1.0, 2.0], [2.0, 1.0]).icc_agreement.why == NO_DENOMINATOR


def test_nothing_shared_leaves_nothing() -> None:
    found = held([], [])
    assert found.n == 0
    assert {number.why for name, number in vars(found).items() if name != "n"} == {NOTHING_SHARED}


def test_perfect_agreement_is_one_and_never_more() -> None:
    x = np.random.default_rng(2).normal(size=50)
    found = score_agreement(x, x, np.arange(50))
    for number in (found.pearson, found.spearman, found.kendall_tau_b, found.icc_agreement, found.krippendorff_alpha):
        assert number.value == pytest.approx(1, abs=1e-12)
        assert number.value is not None
        assert number.value <= 1
        assert "Too few clusters with a disagreement for a CI (0 < 10)" in (number.ci95_why or "")


def test_few_clusters_have_the_t_interval_of_their_means_and_no_other() -> None:
    x, y, _ = many(20, 20)
    found = score_agreement(x, y, np.arange(20))
    expected = ttest_1samp(x - y, 0).confidence_interval()
    assert found.mean_difference.ci95 == pytest.approx((expected.low, expected.high))
    assert found.mean_difference.ci95_rule == "t over 20 clusters"
    assert found.mean_absolute_difference.ci95 is not None
    for number in (found.pearson, found.spearman, found.icc_agreement, found.root_mean_square_difference):
        assert "< 40)" in (number.ci95_why or "")


def test_the_unit_of_the_scale_is_that_of_differences_and_of_nothing_else() -> None:
    x, y, cluster = many(150, 60)
    small, large = score_agreement(x, y, cluster), score_agreement(10 * x + 5, 10 * y + 5, cluster)
    for name in ("mean_difference", "mean_absolute_difference", "root_mean_square_difference"):
        one, ten = getattr(small, name), getattr(large, name)
        assert (ten.value, *ten.ci95) == pytest.approx((10 * one.value, 10 * one.ci95[0], 10 * one.ci95[1]), rel=0.05)
    for name in ("pearson", "spearman", "icc_agreement", "krippendorff_alpha"):
        one, ten = getattr(small, name), getattr(large, name)
        assert (ten.value, *ten.ci95) == pytest.approx((one.value, *one.ci95), rel=0.05)


@pytest.mark.parametrize("clusters", [150, 4_000])
def test_every_number_has_an_interval_around_it_by_bootstrap_and_linearised(clusters: int) -> None:
    found = score_agreement(*many(3 * clusters, clusters))
    for name, number in vars(found).items():
        if name != "n":
            assert number.ci95[0] < number.value < number.ci95[1]
            assert ("bootstrap" in number.ci95_rule) == (clusters < 2_000)


def test_linearised_intervals_are_as_wide_as_those_by_resampling_clusters() -> None:
    x, y, cluster = many(9_000, 3_000)
    found = score_agreement(x, y, cluster)
    rng = np.random.default_rng(0)
    by_cluster = [np.flatnonzero(cluster == one) for one in range(3_000)]
    again = []
    for _ in range(200):
        drawn = np.concatenate([by_cluster[one] for one in rng.integers(3_000, size=3_000)])
        again.append(vars(score_agreement(x[drawn], y[drawn], np.arange(len(drawn)))))
    for name, number in vars(found).items():
        if name != "n":
            error = np.std([one[name].value for one in again])
            assert (number.ci95[1] - number.ci95[0]) / 2 / 1.96 == pytest.approx(error, rel=0.2)
