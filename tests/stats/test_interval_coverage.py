"""A small run of benchmarks/coverage.py, which has the rest."""

import pytest

from benchmarks.coverage import CASES, Population, covered, truths

REPLICATES = 400  # the share that holds the truth is then known to 1.1 points


@pytest.mark.parametrize("name", ["50 clusters", "60 clusters, high agreement"])
def test_ninety_five_percent_are_ninety_three_to_ninety_seven(name: str) -> None:
    population = CASES[name]
    found = covered(population, REPLICATES, truths(population, clusters=40_000))
    for number in ("agreement", "cohen_kappa", "gwet_ac1", "krippendorff_alpha", "ceiling_difference"):
        one = found[number]
        assert one.shown > 0.9, number
        assert one.covered is not None
        assert 0.93 <= one.covered <= 0.97, number


def test_where_next_to_nothing_disagrees_shares_have_wilsons_interval_and_kappa_none() -> None:
    population = Population(60, (1, 2), (0.49, 0.49, 0.02), people=0.99, judge=0.97)
    found = covered(population, 150, truths(population, clusters=40_000))
    assert (found["agreement"].shown, found["agreement"].wilson) == (1, 1)
    assert (found["agreement"].covered or 0) >= 0.93
    assert found["cohen_kappa"].shown == 0
