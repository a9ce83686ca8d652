import krippendorff
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from evaluations.stats.cluster_totals import number_clusters
from evaluations.stats.coding import FloatArray, IntArray
from evaluations.stats.confidence_intervals import Spread
from evaluations.stats.ranks import rank_values
from evaluations.stats.score_reliability import (
    ONE_VALUE,
    TOO_FEW_SCORES,
    PairableScores,
    interval_alpha,
    ordinal_alpha,
    ordinal_alpha_statistic,
    pairable_scores,
    score_coincidences,
)

GAP = np.nan
# Krippendorff (2011), "Computing Krippendorff's alpha-reliability", section E: four observers, twelve units, gaps.
OBSERVERS = np.array(
    [
        [1, 2, 3, 3, 2, 1, 4, 1, 2, GAP, GAP, GAP],
        [1, 2, 3, 3, 2, 2, 4, 1, 2, 5, GAP, 3],
        [GAP, 3, 3, 3, 2, 3, 4, 2, 2, 5, 1, GAP],
        [1, 2, 3, 3, 2, 4, 4, 1, 2, 5, 1, GAP],
    ]
)
some_scores = st.lists(
    st.lists(st.none() | st.integers(-2, 6) | st.floats(-9, 9), min_size=3, max_size=3), min_size=2, max_size=12
).map(lambda units: np.array(units, dtype=np.float64).T)


def scored(table: FloatArray, cluster: IntArray | None = None) -> PairableScores:
    """From raters × units with NaN for gaps."""
    rater, unit = np.nonzero(~np.isnan(table))
    return pairable_scores(unit, table[rater, unit], np.arange(table.shape[1]) if cluster is None else cluster)


def test_krippendorffs_own_table_gives_the_published_numbers() -> None:
    # He prints .849 for interval and .815 for ordinal.
    assert round(interval_alpha(scored(OBSERVERS)).value or 0, 3) == 0.849
    assert round(ordinal_alpha(scored(OBSERVERS)).value or 0, 3) == 0.815
    assert interval_alpha(scored(OBSERVERS)).n == 11


def test_a_small_table_is_what_one_works_out_by_hand() -> None:
    # Units 1 2 and 4 4. Observed: 2 · (1 + 0) / 4 scores = .5. Expected over 12 ordered pairs of 1, 2, 4, 4:
    # 2 · (1 + 9 + 9 + 4 + 4 + 0) / 12 = 4.5. Interval: 1 − 1/9. Mid-ranks 1, 2, 3.5, 3.5 differ by 1, 2.5, 2.5, 1.5,
    # 1.5, 0: expected 2 · (1 + 12.5 + 4.5) / 12 = 3. Ordinal: 1 − 1/6.
    table = np.array([[1.0, 4.0], [2.0, 4.0]])
    assert interval_alpha(scored(table)).value == pytest.approx(8 / 9)
    assert ordinal_alpha(scored(table)).value == pytest.approx(5 / 6)


@given(some_scores)
def test_both_equal_the_krippendorff_package(table: FloatArray) -> None:
    found = scored(table)
    assume(found.why_undefined() is None)
    assume(np.ptp(found.value) > 1e-3)
    theirs = krippendorff.alpha(reliability_data=table, level_of_measurement="interval")
    assert interval_alpha(found).value == pytest.approx(theirs, abs=1e-6)
    theirs = krippendorff.alpha(reliability_data=table, level_of_measurement="ordinal")
    assert ordinal_alpha(found).value == pytest.approx(theirs, abs=1e-6)


def test_nothing_is_made_of_units_with_one_score_or_of_one_value() -> None:
    alone, constant = scored(np.array([[1.0, GAP], [GAP, 2.0]])), scored(np.array([[3.0, 3.0], [3.0, GAP]]))
    for alpha in (interval_alpha, ordinal_alpha):
        assert (alpha(alone).value, alpha(alone).n, alpha(alone).why) == (None, 0, TOO_FEW_SCORES)
        assert (alpha(constant).value, alpha(constant).n, alpha(constant).why) == (None, 1, ONE_VALUE)


def many(units: int, clusters: int, seed: int) -> tuple[FloatArray, IntArray]:
    rng = np.random.default_rng(seed)
    cluster = rng.integers(clusters, size=units)
    quality = rng.normal(size=clusters)[cluster] + rng.normal(size=units)
    table = np.clip(np.rint(quality + rng.normal(size=(3, units))), -3, 3)
    table[rng.random(table.shape) < 0.2] = GAP
    return table, cluster


def test_ordinal_influences_are_the_gradient_of_alpha_by_coincidences() -> None:
    # Above 2,000 clusters the interval is by influences; the numerical gradient of alpha as a function of the
    # coincidences knows nothing of how these were derived.
    found = scored(*many(6_000, 2_600, 2))
    ranks = rank_values(found.value)
    error = Spread(score_coincidences(found, ranks)).variance(ordinal_alpha_statistic(len(ranks.count))) ** 0.5
    told = ordinal_alpha(found)
    assert told.value is not None
    assert told.ci95 is not None
    on_fisher = (np.arctanh(told.ci95[1]) - np.arctanh(told.ci95[0])) / 2 * (1 - told.value**2)
    assert on_fisher == pytest.approx(1.96 * error, rel=1e-3)


def test_alpha_of_coincidences_is_alpha() -> None:
    found = scored(*many(200, 60, 3))
    ranks = rank_values(found.value)
    alpha = ordinal_alpha_statistic(len(ranks.count))(score_coincidences(found, ranks).totals)
    assert alpha == pytest.approx(ordinal_alpha(found).value)


def test_intervals_are_by_bootstrap_of_clusters_and_withheld_below_forty() -> None:
    table, cluster = many(200, 60, 3)
    few = scored(table, cluster % 39)
    for alpha in (interval_alpha, ordinal_alpha):
        told = alpha(scored(table, cluster))
        assert told.ci95 is not None
        assert told.ci95[0] < (told.value or 0) < told.ci95[1]
        assert "bootstrap" in (told.ci95_rule or "")
        assert alpha(few).value == pytest.approx(told.value)
        assert "< 40)" in (alpha(few).ci95_why or "")


def test_clusters_are_those_of_units() -> None:
    found = pairable_scores(np.array([5, 5, 2, 2, 7]), np.arange(5.0), np.array([0, 0, 4, 0, 0, 4, 0, 9]))
    assert found.unit.tolist() == [1, 1, 0, 0]
    assert found.clusters.of.tolist() == number_clusters(np.array([4, 4])).of.tolist()
