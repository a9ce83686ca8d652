from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import kendalltau, spearmanr

from evaluations.stats.cluster_totals import Contributions, number_clusters
from evaluations.stats.coding import FloatArray, IntArray
from evaluations.stats.confidence_intervals import Spread, Statistic
from evaluations.stats.estimates import Estimate
from evaluations.stats.rank_correlation import (
    CONSTANT,
    RankedPair,
    kendall_tau_b,
    spearman,
    spearman_of_tables,
    tau_b_of_tables,
)
from evaluations.stats.ranks import rank_values

Correlation = Callable[[RankedPair], Estimate]

STATISTICS = [(spearman, spearman_of_tables), (kendall_tau_b, tau_b_of_tables)]
any_number = st.floats(-1e3, 1e3)
pairs_of_scores = st.lists(
    st.tuples(st.integers(0, 4), st.integers(0, 3)) | st.tuples(any_number, any_number), min_size=2, max_size=50
).map(lambda pairs: np.array(pairs, dtype=np.float64))


def orders(x: FloatArray, y: FloatArray, cluster: IntArray | None = None) -> RankedPair:
    return RankedPair(
        rank_values(x), rank_values(y), number_clusters(np.arange(len(x)) if cluster is None else cluster)
    )


@given(pairs_of_scores)
def test_both_equal_scipy(pairs: FloatArray) -> None:
    x, y = pairs.T
    assume(np.ptp(x) > 0 and np.ptp(y) > 0)
    assert spearman(orders(x, y)).value == pytest.approx(spearmanr(x, y).statistic, abs=1e-9)
    assert kendall_tau_b(orders(x, y)).value == pytest.approx(kendalltau(x, y).statistic, abs=1e-9)


def test_a_small_case_is_what_one_works_out_by_hand() -> None:
    # Ranks of x: 1, 2.5, 2.5, 4; of y: 1, 3, 2, 4. Products of what they differ from 2.5 by: 2.25 + 0 + 0 + 2.25 = 4.5;
    # squares 4.5 and 5: rho = 4.5 / √22.5. Of six pairs one is tied on x, five are concordant: tau = 5 / √(5 · 6).
    found = orders(np.array([1.0, 2.0, 2.0, 3.0]), np.array([10.0, 30.0, 20.0, 40.0]))
    assert spearman(found).value == pytest.approx(4.5 / 22.5**0.5)
    assert kendall_tau_b(found).value == pytest.approx(5 / 30**0.5)


@pytest.mark.parametrize("number", [spearman, kendall_tau_b])
def test_a_constant_side_has_no_order(number: Correlation) -> None:
    found = number(orders(np.array([1.0, 2.0, 3.0]), np.array([2.0, 2.0, 2.0])))
    assert (found.value, found.n, found.why) == (None, 3, CONSTANT)


def clustered(n: int, clusters: int, seed: int, steps: float) -> tuple[FloatArray, FloatArray, IntArray]:
    """Scores that share what is good about their cluster, on a scale of so many steps to a standard deviation."""
    rng = np.random.default_rng(seed)
    cluster = rng.integers(clusters, size=n)
    quality = rng.normal(size=clusters)[cluster] + rng.normal(size=n)
    x, y = (np.rint(steps * (quality + rng.normal(size=n))) for _ in range(2))
    return x, y, cluster


@pytest.mark.parametrize(("number", "of_tables"), STATISTICS)
def test_influences_are_the_gradient_of_the_same_number_of_a_table(number: Correlation, of_tables: Statistic) -> None:
    # Above 2,000 clusters the interval comes from influences on Fisher's scale. On a small scale the number is a
    # function of a table as well, whose variance by numerical gradient knows nothing of how these were derived.
    x, y, cluster = clustered(6_000, 2_600, 5, 1.0)
    found = orders(x, y, cluster)
    rows, columns = found.shape
    table = Contributions(found.clusters.of, found.x.code * columns + found.y.code, rows * columns)
    error = Spread(table).variance(found.of_totals(of_tables)) ** 0.5
    told = number(found)
    assert told.value is not None
    assert told.ci95 is not None
    on_fisher = (np.arctanh(told.ci95[1]) - np.arctanh(told.ci95[0])) / 2 * (1 - told.value**2)
    assert on_fisher == pytest.approx(1.96 * error, rel=1e-3)


@pytest.mark.parametrize("number", [spearman, kendall_tau_b])
def test_linearised_intervals_of_sixty_clusters_cover_what_they_promise(number: Correlation) -> None:
    steps = 1_000.0  # values enough that no table of them is resampled
    truth = number(orders(*clustered(200_000, 100_000, 1, steps)[:2])).value
    held = 0
    for seed in range(300):
        told = number(orders(*clustered(150, 60, seed, steps))).ci95
        assert told is not None
        held += told[0] <= (truth or 0) <= told[1]
    assert 0.91 <= held / 300 <= 0.98
