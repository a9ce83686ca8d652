import numpy as np
import pytest
from scipy.stats import t as student

from evaluations.stats.cluster_totals import number_clusters
from evaluations.stats.confidence_intervals import Influence, fisher_z_interval
from evaluations.stats.estimates import NO_INTERVAL, Estimate

VALUES = np.array([1.0, 4.0, 4.0, 7.0, 9.0])


def test_of_a_mean_it_is_the_standard_error_that_everybody_knows() -> None:
    each = Influence((VALUES - VALUES.mean()) / len(VALUES), number_clusters(np.arange(5)))
    assert each.standard_error == pytest.approx(VALUES.std(ddof=1) / 5**0.5)


def test_entries_of_one_cluster_count_together() -> None:
    # Influences −.8 and 0, −.4, .4 and .8 in three clusters: −.8, −.4, 1.2; √((.64 + .16 + 1.44) · 3/2).
    found = Influence(np.array([-0.8, 0.0, -0.4, 0.4, 0.8]), number_clusters(np.array([9, 9, 4, 30, 30])))
    assert found.standard_error == pytest.approx(3.36**0.5)


def test_an_interval_on_fishers_scale_stays_below_one_and_uses_t() -> None:
    found = Influence(np.array([-0.05, 0.05, 0.0]), number_clusters(np.arange(3)))
    told = fisher_z_interval(Estimate(0.9, 3), found)
    margin = student.ppf(0.975, 2) * found.standard_error / (1 - 0.81)
    assert told.ci95 == pytest.approx((np.tanh(np.arctanh(0.9) - margin), np.tanh(np.arctanh(0.9) + margin)), rel=1e-6)
    assert told.ci95_rule == "linearised on Fisher's scale over 3 clusters"


def test_a_correlation_of_one_has_no_interval() -> None:
    told = fisher_z_interval(Estimate(1.0, 3), Influence(np.zeros(3), number_clusters(np.arange(3))))
    assert (told.value, told.ci95_why) == (1.0, NO_INTERVAL)
