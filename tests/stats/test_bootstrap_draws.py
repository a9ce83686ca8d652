import numpy as np
import pytest

from evaluations.stats.cluster_totals import number_clusters, sum_by_cluster
from evaluations.stats.coding import FloatArray
from evaluations.stats.confidence_intervals import (
    Spread,
    poisson_draws,
    resample_totals,
    wilson_by_cluster,
    wilson_from_variance,
)
from evaluations.stats.estimates import Estimate

CLUSTERS = 120
RNG = np.random.default_rng(4)
VALUES = sum_by_cluster(number_clusters(RNG.integers(CLUSTERS, size=500)), RNG.normal(size=500))


def test_a_resample_takes_every_cluster_a_number_of_times() -> None:
    each = VALUES.by_cluster()
    times = poisson_draws(0)[: VALUES.clusters].T
    by_hand = np.array([(each * taken[:, None]).sum(axis=0) for taken in times])
    assert Spread(VALUES).resampled_totals == pytest.approx(by_hand)


def test_it_is_taken_once_on_average_and_as_often_as_by_poisson() -> None:
    # P(0) = P(1) = 1/e, P(2) half of that; half a million times, each share is known to .0007.
    times = poisson_draws(0)
    shares = np.bincount(times.ravel())[:3] / times.size
    assert shares == pytest.approx(np.exp(-1) * np.array([1, 1, 0.5]), abs=0.003)
    assert times.mean() == pytest.approx(1, abs=0.006)
    assert not (poisson_draws(0) == poisson_draws(1)).all()


def test_counts_are_resampled_the_same_in_narrow_floats() -> None:
    each = RNG.integers(5, size=(600, 4)).astype(np.float64)
    assert (resample_totals(each, whole=True) == resample_totals(each)).all()


def test_who_asks_again_gets_the_same_resamples() -> None:
    assert poisson_draws(0) is poisson_draws(0)
    assert (Spread(VALUES).resampled_totals == Spread(VALUES).resampled_totals).all()


def test_a_share_with_its_variance_at_hand_has_the_same_interval() -> None:
    chosen = RNG.integers(2, size=500).astype(np.float64)
    spread = Spread(sum_by_cluster(number_clusters(RNG.integers(CLUSTERS, size=500)), chosen))
    held = Estimate(float(chosen.mean()), 500)

    def share(totals: FloatArray) -> FloatArray:
        return np.asarray(totals[..., 1] / totals[..., 0])

    found = spread.contributions
    effective = found.effective_clusters(np.ones(found.cells, dtype=bool))
    assert wilson_by_cluster(held, spread, share) == wilson_from_variance(
        held, found.clusters, spread.variance(share), effective
    )
