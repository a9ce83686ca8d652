import numpy as np
import pytest

from evaluations.stats.cluster_totals import Contributions
from evaluations.stats.confidence_intervals import Spread, estimate_share

PART, WHOLE = np.array([True, False, False]), np.array([True, True, False])


def spread(*counts: int) -> Spread:
    """So many entries in each of three cells, each a cluster of its own."""
    cell = np.repeat(np.arange(3), counts)
    return Spread(Contributions(np.arange(len(cell)), cell, 3))


def test_it_is_the_part_of_the_whole_that_is_counted_and_nothing_else() -> None:
    found = estimate_share(spread(30, 70, 900), PART, WHOLE, "nothing")
    assert (found.value, found.n) == (0.3, 100)
    assert found.ci95 == pytest.approx((0.22, 0.40), abs=0.015)


def test_a_part_that_few_clusters_lie_in_or_outside_of_has_wilsons_interval() -> None:
    for counts in ((9, 91, 900), (91, 9, 900), (10, 20, 970)):
        assert (estimate_share(spread(*counts), PART, WHOLE, "nothing").ci95_rule or "").startswith("Wilson")
    assert (estimate_share(spread(10, 30, 960), PART, WHOLE, "nothing").ci95_rule or "").startswith("bootstrap")


def test_of_nothing_there_is_no_share() -> None:
    assert estimate_share(spread(0, 0, 5), PART, WHOLE, "nothing").why == "nothing"
