import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from evaluations.stats.coding import FloatArray
from evaluations.stats.rank_correlation import concordance_sums, count_below_by_blocks, count_below_by_table
from evaluations.stats.ranks import RankedValues, grid_positions, rank_values

small_scale = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), min_size=1, max_size=60)
any_number = st.floats(-1e6, 1e6)
continuous = st.lists(st.tuples(any_number, any_number), min_size=1, max_size=60)


def columns(pairs: list[tuple[float, float]]) -> tuple[FloatArray, FloatArray]:
    found = np.array(pairs, dtype=np.float64)
    return found[:, 0], found[:, 1]


def by_hand(x: FloatArray, y: FloatArray) -> FloatArray:
    return np.asarray((np.sign(x[:, None] - x) * np.sign(y[:, None] - y)).sum(axis=1))


def below(x: FloatArray, y: FloatArray) -> FloatArray:
    less = [(side < side[:, None]) + (side == side[:, None]) / 2 for side in (x, y)]
    return np.asarray((less[0] * less[1]).sum(axis=1))


@given(small_scale | continuous)
def test_concordance_is_the_sum_over_every_other_entry(pairs: list[tuple[float, float]]) -> None:
    x, y = columns(pairs)
    assert concordance_sums(rank_values(x), rank_values(y)).tolist() == by_hand(x, y).tolist()


@given(small_scale | continuous)
def test_blocks_count_what_the_table_counts(pairs: list[tuple[float, float]]) -> None:
    x, y = columns(pairs)
    for counted in (count_below_by_blocks, count_below_by_table):
        assert counted(rank_values(x), rank_values(y)).tolist() == below(x, y).tolist()


def test_more_values_than_a_16_bit_digit_holds_are_counted_too() -> None:
    rng = np.random.default_rng(3)
    n = 70_000
    x = rng.permutation(n).astype(np.float64)
    # Turned round, every pair is discordant; in the same order every one concordant.
    assert set(concordance_sums(rank_values(x), rank_values(-x)).tolist()) == {-(n - 1.0)}
    assert set(concordance_sums(rank_values(x), rank_values(x * 2)).tolist()) == {n - 1.0}


@given(st.lists(st.floats(-1e6, 1e6) | st.integers(-9, 9).map(float), min_size=1, max_size=40).map(np.array))
def test_standing_is_the_mid_rank_less_the_mean(value: FloatArray) -> None:
    expected = rankdata(value) - (len(value) + 1) / 2
    assert rank_values(value).standing == pytest.approx(expected)


@given(st.lists(st.integers(-12, 12), min_size=1, max_size=40), st.sampled_from([1, 2, 3, 7, 10]))
def test_scores_on_a_grid_are_ranked_as_by_sorting(whole: list[int], parts: int) -> None:
    value = np.array(whole) / parts
    assert grid_positions(value) is not None
    _, code, count = np.unique(value, return_inverse=True, return_counts=True)
    found = rank_values(value)
    assert (found.code.tolist(), found.count.tolist()) == (code.tolist(), count.tolist())


@pytest.mark.parametrize("value", [[2.0, 1e300], [0.0001, 0.0002], [1 / 11, np.pi]])
def test_what_lies_on_no_grid_is_sorted(value: list[float]) -> None:
    assert grid_positions(np.array(value)) is None
    assert rank_values(np.array(value)).code.tolist() == [0, 1]


def test_above_is_the_weight_of_higher_values_and_half_that_of_equal_ones() -> None:
    found = RankedValues(np.array([0, 1, 1, 2]), np.array([1, 2, 1]))
    # Of the first 10 / 2 + 20 + 30 + 40, of the second and third (20 + 30) / 2 + 40, of the last 40 / 2.
    assert found.above(np.array([10.0, 20.0, 30.0, 40.0])).tolist() == [95.0, 65.0, 65.0, 20.0]
