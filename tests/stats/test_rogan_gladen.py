"""Pass rates corrected for a judge's errors: by hand, by a grid in place of the formula, by the jackknife."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evaluations.stats.coding import FloatArray
from evaluations.stats.confidence_intervals import ONE_CLUSTER
from evaluations.stats.rogan_gladen import (
    DENOMINATOR,
    NOT_INFORMATIVE,
    NUMERATOR,
    ONE_CLASS,
    ErrorRates,
    JudgedPasses,
    error_rates,
    fieller_bounds,
    rogan_gladen,
)
from evaluations.stats.significance import t_975

GAP = np.nan


def passes(both: int, judge_only: int, reviewers_only: int, neither: int, others: tuple[int, int]) -> JudgedPasses:
    """Responses of a cluster each. ``others``: how many the judge alone scored, passing and failing."""
    counts = (both, judge_only, reviewers_only, neither, *others)
    judge = np.repeat([1.0, 1, 0, 0, 1, 0], counts)
    reference = np.repeat([1.0, 0, 1, 0, GAP, GAP], counts)
    return JudgedPasses(judge, reference, np.arange(len(judge)))


def test_a_rate_is_worked_by_hand() -> None:
    # TPR 45/50, TNR 40/50; the judge passes 45 + 10 of 100 reviewed and 545 of 900 others: p = .6.
    # (.6 + .8 − 1) ÷ (.9 + .8 − 1) = .4/.7.
    (found,) = rogan_gladen(passes(45, 10, 5, 40, (545, 355)))
    assert (found.value, found.n) == pytest.approx((4 / 7, 100))
    # Adjusted: TPR 46/52, TNR 41/52, p = .6; their variances .8846 · .1154/52 and .7885 · .2115/52, by the delta method
    # with p's .24/1000 and without covariances: √(.00024 + .5678² · .001963 + .4322² · .003207) ÷ .6731 = .0576.
    assert found.ci95 is not None
    low, high = found.ci95
    assert (high - low) / 2 == pytest.approx(1.984 * 0.0576, rel=0.08)
    assert low < 4 / 7 < high
    assert found.ci95_rule == "Fieller with the errors of TPR and TNR over 100 clusters"


def test_where_everything_is_reviewed_it_is_the_rate_of_reviewers() -> None:
    assert rogan_gladen(passes(45, 10, 5, 40, (0, 0)))[0].value == pytest.approx(0.5)
    # So it is with split responses, which have no result.
    all_of_them = passes(45, 10, 5, 40, (30, 10))
    split = np.isnan(all_of_them.reference)
    (found,) = rogan_gladen(JudgedPasses(all_of_them.judge, all_of_them.reference, all_of_them.cluster, split))
    assert (found.value, found.n) == pytest.approx((0.5, 100))


def test_a_judge_that_may_not_see_the_difference_gives_no_rate() -> None:
    # TPR .5, TNR .5, and a constant judge, with TPR 1 and TNR 0.
    for useless in (passes(25, 25, 25, 25, (450, 450)), passes(50, 50, 0, 0, (900, 0))):
        (found,) = rogan_gladen(useless)
        assert (found.value, found.ci95, found.why) == (None, None, NOT_INFORMATIVE)
    # A judge that has it the wrong way round is no better.
    assert rogan_gladen(passes(5, 45, 45, 5, (450, 450)))[0].why == NOT_INFORMATIVE


def test_one_class_or_one_cluster_give_no_rate() -> None:
    assert rogan_gladen(passes(45, 0, 5, 0, (545, 355)))[0].why == ONE_CLASS
    assert rogan_gladen(passes(0, 0, 0, 0, (545, 355)))[0].why == ONE_CLASS
    together = passes(45, 10, 5, 40, (5, 5))
    assert rogan_gladen(JudgedPasses(together.judge, together.reference, together.cluster * 0))[0].why == ONE_CLUSTER


def test_a_rate_stays_between_0_and_1() -> None:
    # The judge passes fewer of all than its false positives alone would be.
    (found,) = rogan_gladen(passes(45, 20, 5, 30, (10, 890)))
    assert found.value == 0
    assert found.ci95 is not None
    assert found.ci95[0] == 0
    assert found.ci95[1] >= 0


def one_interval(rates: ErrorRates, t: float) -> tuple[float, float]:
    low, high = fieller_bounds(rates, np.array([t]))
    return float(low[0]), float(high[0])


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20, deadline=None)
def test_the_ends_of_the_interval_are_where_a_grid_finds_them(seed: int) -> None:
    rates = error_rates(clustered(seed))
    bounds = one_interval(rates, 2.0)
    theta = np.linspace(bounds[0] - 0.2, bounds[1] + 0.2, 4_001)
    apart = [(NUMERATOR - one * DENOMINATOR) @ rates.rates[0] - 1 + one for one in theta]
    slopes = [NUMERATOR - one * DENOMINATOR for one in theta]
    error = [float(along @ rates.covariance[0] @ along) ** 0.5 for along in slopes]
    inside = theta[np.abs(apart) <= 2.0 * np.array(error)]
    assert (inside.min(), inside.max()) == pytest.approx(bounds, abs=2e-3)


def clustered(seed: int) -> JudgedPasses:
    rng = np.random.default_rng(seed)
    cluster = rng.integers(0, 150, 600)
    quality = 0.7 * rng.normal(size=150)[cluster] + rng.normal(size=600)
    people, judge = (quality + 0.5 * rng.normal(size=600) > 0.2 for _ in range(2))
    reviewed = rng.random(150)[cluster] < 0.5
    return JudgedPasses(judge.astype(float), np.where(reviewed, people, GAP), cluster)


def test_the_covariance_is_that_of_the_jackknife_of_clusters() -> None:
    study = clustered(12)
    found = error_rates(study, added=0)

    def rates_without(left_out: int) -> FloatArray:
        kept = study.cluster != left_out
        columns = (column[kept] for column in (study.judge, study.reference, study.cluster))
        return error_rates(JudgedPasses(*columns), added=0).rates.ravel()

    clusters = np.unique(study.cluster)
    without = np.array([rates_without(one) for one in clusters])
    apart = without - without.mean(axis=0)
    jackknife = apart.T @ apart * (len(clusters) - 1) / len(clusters)
    assert found.covariance[0] == pytest.approx(jackknife, rel=0.12, abs=2e-6)


def test_a_rate_of_a_stratified_sample_is_worked_by_hand() -> None:
    # The first stratum has 400 responses, 40 of them reviewed, which count 10 each; the second 100, all reviewed.
    # Reviewers pass 20 of the 40, the judge 16 of these and 2 of the others; of the 100 reviewers pass 80, the judge 60
    # of these and 10 of the 20 others. TPR = (160 + 60) ÷ (200 + 80) = 22/28, TNR = (180 + 10) ÷ (200 + 20) = 19/22.
    # The judge passes 200 of the 360 others: p = (200 + 18 + 70)/500 = .576.
    counts = (16, 2, 4, 18, 60, 10, 20, 10, 200, 160)
    judge = np.repeat([1.0, 1, 0, 0, 1, 1, 0, 0, 1, 0], counts)
    reference = np.repeat([1.0, 0, 1, 0, 1, 0, 1, 0, GAP, GAP], counts)
    stratum = np.repeat([0, 0, 0, 0, 1, 1, 1, 1, 0, 0], counts)
    study = JudgedPasses(judge, reference, np.arange(500), stratum=stratum)
    plain = error_rates(study, added=0)
    assert plain.rates[0] == pytest.approx([288 / 500, 22 / 28, 19 / 22])
    (found,) = rogan_gladen(study)
    assert (found.value, found.n) == pytest.approx(((0.576 + 19 / 22 - 1) / (22 / 28 + 19 / 22 - 1), 140))


def test_each_group_has_the_rate_that_it_has_alone() -> None:
    first, second = clustered(3), clustered(4)
    judge, reference, cluster = (
        np.concatenate([getattr(study, name) for study in (first, second)])
        for name in ("judge", "reference", "cluster")
    )
    group = np.repeat([0, 2], 600)  # the second of three has no response
    order = np.random.default_rng(0).permutation(1200)
    found = rogan_gladen(JudgedPasses(judge[order], reference[order], cluster[order], group=group[order], groups=3))
    for number, alone in ((0, first), (2, second)):
        (expected,) = rogan_gladen(alone)
        assert found[number].ci95 == pytest.approx(expected.ci95, abs=1e-12)
        assert (found[number].value, found[number].n) == pytest.approx((expected.value, expected.n))
    assert found[1].why == ONE_CLASS


def test_t_has_the_reviewed_clusters() -> None:
    study = clustered(1)
    rates = error_rates(study)
    assert rates.clusters[0] == len(np.unique(study.cluster[~np.isnan(study.reference)]))
    (found,) = rogan_gladen(study)
    assert found.ci95 == pytest.approx(one_interval(rates, t_975(int(rates.clusters[0]) - 1)), abs=1e-12)
