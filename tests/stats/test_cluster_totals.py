import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluations.stats.cluster_totals import FEW_CELLS, FEW_ENTRIES, Contributions, join_contributions
from evaluations.stats.coding import FloatArray
from evaluations.stats.confidence_intervals import Spread

CELLS = 5

entries = st.lists(st.tuples(st.integers(0, 9), st.integers(0, CELLS - 1), st.integers(-3, 3)), min_size=1, max_size=30)


def contributions(rows: list[tuple[int, int, int]], *, weighted: bool) -> Contributions:
    cluster, cell, weight = np.array(rows, dtype=np.int64).T
    return Contributions(cluster, cell, CELLS, weight.astype(np.float64) if weighted else None)


@given(entries, st.booleans(), st.booleans())
def test_the_moments_are_the_sum_over_clusters_of_their_totals_times_themselves(
    rows: list[tuple[int, int, int]], weighted: bool, in_order: bool
) -> None:
    found = contributions(sorted(rows) if in_order else rows, weighted=weighted)
    assert found.is_sorted_by_cluster or not in_order
    by_hand = np.zeros((CELLS, CELLS))
    for cluster in {row[0] for row in rows}:
        total = np.zeros(CELLS)
        for _, cell, weight in (row for row in rows if row[0] == cluster):
            total[cell] += weight if weighted else 1
        by_hand += np.outer(total, total)
    assert found.moments == pytest.approx(by_hand)
    assert found.totals == pytest.approx(found.by_cluster().sum(axis=0))


def test_clusters_are_numbered_from_0_in_whatever_order_they_come() -> None:
    # In order 3 3 7 9, and the same with 9 first: each number is the place among those that occur.
    nothing = np.zeros(4, dtype=np.int64)
    assert Contributions(np.array([3, 3, 7, 9]), nothing, 1).cluster_number.tolist() == [0, 0, 1, 2]
    assert Contributions(np.array([9, 3, 7, 3]), nothing, 1).cluster_number.tolist() == [2, 0, 1, 0]
    assert Contributions(nothing[:0], nothing[:0], 1).clusters == 0


def test_clusters_with_many_entries_have_the_same_moments_as_those_met_one_by_one() -> None:
    # Three clusters of 2 · FEW_ENTRIES entries in cell 0: 3 · (2 · FEW_ENTRIES)².
    cluster = np.repeat(np.arange(3), 2 * FEW_ENTRIES)
    assert Contributions(cluster, np.zeros_like(cluster), 1).moments.tolist() == [[3 * (2 * FEW_ENTRIES) ** 2]]


def test_it_is_counted_how_many_clusters_have_an_entry_in_some_cells() -> None:
    # Cluster 0: cells 0 1 1. Cluster 1: cell 2. Cluster 2: cell 1.
    found = Contributions(np.array([0, 0, 0, 1, 2]), np.array([0, 1, 1, 2, 1]), 3)
    in_cell_1 = np.array([False, True, False])
    assert found.clusters_with(in_cell_1) == 2
    assert (found.clusters_with(in_cell_1, 1), found.clusters_with(in_cell_1, 3)) == (1, 2)
    assert found.clusters_with(~in_cell_1) == 2


def test_totals_side_by_side_stand_in_cells_of_their_own() -> None:
    counted = Contributions(np.array([0, 1]), np.array([1, 1]), 2)
    summed = Contributions(np.array([1, 2]), np.zeros(2, dtype=np.int64), 1, np.array([0.5, 2.0]))
    both = join_contributions(counted, summed)
    assert both.totals.tolist() == [0, 2, 2.5]
    assert both.by_cluster().tolist() == [[0, 1, 0], [0, 1, 0.5], [0, 0, 2]]


def test_squares_over_many_cells_equal_those_by_the_matrix_of_moments() -> None:
    rng = np.random.default_rng(1)
    cells = FEW_CELLS + 10
    for weight in (None, rng.normal(size=3_000)):
        found = Contributions(rng.integers(200, size=3_000), rng.integers(cells, size=3_000), cells, weight)
        u = rng.normal(size=(cells, 2))
        assert found.squares(u) == pytest.approx(np.diag(u.T @ found.moments @ u))


def test_a_part_that_holds_few_of_many_varies_as_it_does_by_itself() -> None:
    # The mean of two shares: 32 of 40, and 800,000 of 1,000,000, each item a cluster of its own.
    # Variance: (.8 · .2/40 + .8 · .2/1,000,000) ÷ 4, the square root of it 0.0316235.
    cell = np.repeat(np.arange(4), [8, 32, 200_000, 800_000])
    found = Spread(Contributions(np.arange(len(cell)), cell, 4))

    def mean_share(totals: FloatArray) -> FloatArray:
        return np.asarray((totals[..., 1::2] / (totals[..., 0::2] + totals[..., 1::2])).mean(axis=-1))

    assert found.variance(mean_share) ** 0.5 == pytest.approx(0.0316235, rel=1e-5)
