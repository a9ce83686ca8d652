import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluations.stats.cluster_totals import number_clusters, sum_by_cluster
from evaluations.stats.coding import FloatArray
from evaluations.stats.confidence_intervals import ONE_CLUSTER, Spread, wilson_by_cluster
from evaluations.stats.estimates import Estimate
from evaluations.stats.grouped_shares import group_entries, shares_by_group

EMPTY = "nothing here"
entries = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 4), st.sampled_from([0.0, 0.5, 1.0]), st.booleans()),
    min_size=1,
    max_size=40,
)


def mean(totals: FloatArray) -> FloatArray:
    return np.asarray(totals[..., 1] / totals[..., 0])


@given(entries)
def test_each_group_has_the_share_and_interval_that_it_has_alone(
    told: list[tuple[int, int, float, bool]],
) -> None:
    group, cluster, value, counted = (np.array(column) for column in zip(*told, strict=True))
    found = shares_by_group(group_entries(group, 3, 1_000_000 * cluster), value, counted, EMPTY)
    for one in range(3):
        kept = (group == one) & counted
        if not kept.any():
            assert (found[one].value, found[one].why) == (None, EMPTY)
            continue
        number = Estimate(float(value[kept].mean()), int(kept.sum()))
        alone = wilson_by_cluster(number, Spread(sum_by_cluster(number_clusters(cluster[kept]), value[kept])), mean)
        assert found[one].n == number.n
        assert found[one].value == pytest.approx(number.value)
        assert found[one].ci95 == (alone.ci95 and pytest.approx(alone.ci95, abs=1e-6))


def test_votes_of_one_cluster_have_no_interval() -> None:
    (found,) = shares_by_group(
        group_entries(np.zeros(3, dtype=np.int64), 1, np.full(3, 7)), np.ones(3), np.ones(3, dtype=bool), EMPTY
    )
    assert found.ci95_why == ONE_CLUSTER
