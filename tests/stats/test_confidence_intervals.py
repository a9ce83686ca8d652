import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.inter_rater import cohens_kappa
from statsmodels.stats.proportion import proportion_confint

from evaluations.stats.cluster_totals import Contributions, number_clusters, sum_by_cluster
from evaluations.stats.coding import FloatArray
from evaluations.stats.confidence_intervals import (
    BOOTSTRAP_UP_TO,
    ONE_CLUSTER,
    RESAMPLES,
    SHARE_BOUNDS,
    UNBOUNDED,
    Spread,
    estimate_share,
    why_interval_withheld,
    wilson_by_cluster,
)
from evaluations.stats.estimates import NO_INTERVAL, Estimate, undefined_estimate

RNG = np.random.default_rng(5)
DIAGONAL = np.array([True, False, False, True])


def agreement(totals: FloatArray) -> FloatArray:
    return np.asarray(totals[..., DIAGONAL].sum(axis=-1) / totals.sum(axis=-1))


def kappa(totals: FloatArray) -> FloatArray:
    table = totals.reshape(*totals.shape[:-1], 2, 2)
    n = totals.sum(axis=-1)
    by_chance = (table.sum(axis=-1) * table.sum(axis=-2)).sum(axis=-1) / n**2
    return np.asarray((agreement(totals) - by_chance) / (1 - by_chance))


def both(totals: FloatArray) -> FloatArray:
    return np.stack([agreement(totals), kappa(totals)], axis=-1)


def items(clusters: int, each: int) -> Contributions:
    """A table of two by two, ``each`` items in a cluster."""
    cluster = np.repeat(np.arange(clusters), each)
    return Contributions(cluster, RNG.choice(4, p=[0.5, 0.1, 0.1, 0.3], size=len(cluster)), 4)


def numbers(found: Contributions) -> list[Estimate]:
    return [Estimate(float(value), len(found.cell)) for value in both(found.totals)]


def test_with_one_item_a_cluster_the_linearised_interval_is_the_textbook_one() -> None:
    # Kappa by the variance of Fleiss, Cohen and Everitt (1969) as statsmodels has it; agreement by p(1 − p)/(n − 1).
    found = items(BOOTSTRAP_UP_TO + 1, 1)
    share, chance_corrected = Spread(found).intervals(numbers(found), both, [SHARE_BOUNDS, UNBOUNDED])
    theirs = cohens_kappa(found.totals.reshape(2, 2))
    n, p = len(found.cell), share.value or 0
    assert share.ci95 == pytest.approx(stats.norm.interval(0.95, p, np.sqrt(p * (1 - p) / (n - 1))), abs=1e-6)
    assert chance_corrected.ci95 == pytest.approx((theirs.kappa_low, theirs.kappa_upp), abs=1e-4)
    assert share.ci95_rule == "linearised over 2,001 clusters"


def test_the_bootstrap_and_the_linearised_interval_are_the_same_to_two_digits() -> None:
    found = items(BOOTSTRAP_UP_TO, 3)
    spread = Spread(found)
    for drawn, variance in zip(
        spread.intervals(numbers(found), both, [SHARE_BOUNDS, UNBOUNDED]),
        (spread.variance(agreement), spread.variance(kappa)),
        strict=True,
    ):
        assert drawn.ci95 == pytest.approx(stats.norm.interval(0.95, drawn.value, np.sqrt(variance)), abs=0.003)
        assert drawn.ci95_rule == "bootstrap, 2,000 resamples of 2,000 clusters"


def test_where_a_few_clusters_dominate_the_interval_is_linearised() -> None:
    # 199 clusters of one and one of 30: 229² ÷ (199 + 900) = 47 effective ones of 200; one of 10: 209² ÷ 299 = 146.
    for largest, rule in ((30, "linearised over 200 clusters"), (10, "bootstrap, 2,000 resamples of 200 clusters")):
        cluster = np.concatenate([np.arange(199), np.full(largest, 199)])
        found = Contributions(cluster, RNG.choice(4, p=[0.5, 0.1, 0.1, 0.3], size=len(cluster)), 4)
        for number in Spread(found).intervals(numbers(found), both, [SHARE_BOUNDS, UNBOUNDED]):
            assert number.ci95_rule == rule


def test_items_that_repeat_their_cluster_widen_the_interval_as_if_each_counted_once() -> None:
    once = items(300, 1)
    thrice = Contributions(np.repeat(once.cluster, 3), np.repeat(once.cell, 3), 4)
    assert Spread(thrice).variance(kappa) == pytest.approx(Spread(once).variance(kappa))
    as_thrice, as_once = (Spread(one).interval(numbers(once)[1], kappa).ci95 for one in (thrice, once))
    assert as_thrice == pytest.approx(as_once)


def test_one_number_alone_has_the_interval_that_it_has_among_others() -> None:
    found = items(100, 2)
    share, chance_corrected = numbers(found)
    assert [
        Spread(found).interval(share, agreement),
        Spread(found).interval(chance_corrected, kappa),
    ] == Spread(found).intervals([share, chance_corrected], both, [UNBOUNDED] * 2)


def test_a_linearised_interval_stays_within_the_bounds_of_its_number() -> None:
    clusters = BOOTSTRAP_UP_TO + 1
    found = Contributions(np.arange(clusters), np.where(np.arange(clusters) == 0, 1, 0), 4)
    number = Spread(found).interval(Estimate(1 - 1 / clusters, clusters), agreement, SHARE_BOUNDS)
    assert number.ci95 is not None
    assert number.ci95[1] == 1


def test_what_is_undefined_or_does_not_vary_has_no_interval_and_says_why() -> None:
    constant = Contributions(np.arange(50), np.zeros(50, dtype=np.int64), 4)
    spread = Spread(constant)
    share, chance_corrected = spread.intervals(
        [Estimate(1.0, 50), undefined_estimate("Constant.")], both, [SHARE_BOUNDS] * 2
    )
    assert (share.ci95, share.ci95_why) == (None, NO_INTERVAL)
    assert chance_corrected == undefined_estimate("Constant.")
    alone = Spread(Contributions(np.zeros(9, dtype=np.int64), np.zeros(9, dtype=np.int64), 4))
    assert alone.interval(Estimate(1.0, 9), agreement).ci95_why == ONE_CLUSTER


def test_undefined_resamples_are_counted() -> None:
    # One cluster of 40 holds the only value: it is drawn at least once in 1 − 1/e, some 63 %, of the resamples.
    chosen = (np.arange(40) == 0).astype(np.float64)
    spread = Spread(sum_by_cluster(number_clusters(np.arange(40)), chosen, chosen * 2))

    def ratio(totals: FloatArray) -> FloatArray:
        with np.errstate(all="ignore"):
            return np.asarray(totals[..., 2] / totals[..., 1])

    assert spread.interval(Estimate(2.0, 1), ratio).ci95_why == NO_INTERVAL
    missing = int((spread.resampled_totals[:, 1] == 0).sum())
    assert missing == pytest.approx(RESAMPLES / np.e, abs=80)
    varied = Spread(sum_by_cluster(number_clusters(np.arange(40)), chosen, chosen * 2 + np.arange(40)))
    rule = varied.interval(Estimate(2.0, 1), ratio).ci95_rule
    assert rule == f"bootstrap, 2,000 resamples of 40 clusters, {missing:,} of them undefined"


def test_fewer_than_40_clusters_or_10_with_a_disagreement_are_too_few() -> None:
    def with_disagreements(clusters: int, differing: int) -> Contributions:
        return Contributions(np.arange(clusters), (np.arange(clusters) < differing).astype(np.int64), 4)

    every = np.ones(4, dtype=bool)
    assert why_interval_withheld(with_disagreements(39, 15), ~DIAGONAL) == "Too few clusters for a CI (39 < 40)."
    assert "Too few clusters with a disagreement for a CI (9 < 10)" in (
        why_interval_withheld(with_disagreements(40, 9), ~DIAGONAL) or ""
    )
    assert why_interval_withheld(with_disagreements(40, 10), ~DIAGONAL) is None
    assert "Too few clusters with an agreement for a CI (9 < 10)" in (
        why_interval_withheld(with_disagreements(40, 31), ~DIAGONAL, every) or ""
    )
    assert why_interval_withheld(with_disagreements(40, 30), ~DIAGONAL, every) is None
    # Of 60 clusters 30 lie in the cells that the number is made of.
    assert (
        why_interval_withheld(with_disagreements(60, 30), ~DIAGONAL, ~DIAGONAL) or ""
    ) == "Too few clusters for a CI (30 < 40)."


def test_with_one_item_a_cluster_the_interval_for_few_is_wilsons_with_a_t_deviate() -> None:
    # 18 of 20 agree. The level whose normal deviate is t with 19 degrees of freedom, the design effect 20/19.
    found = Contributions(np.arange(20), (np.arange(20) < 2).astype(np.int64), 4)
    number = wilson_by_cluster(Estimate(0.9, 20), Spread(found), agreement)
    alpha = 2 * stats.norm.sf(stats.t.ppf(0.975, 19))
    assert number.ci95 == pytest.approx(proportion_confint(18 * 0.95, 19, alpha=alpha, method="wilson"), abs=1e-7)
    assert number.ci95_rule == "Wilson, 20 ÷ design effect 1.05 over 20 clusters"


def test_where_all_is_one_way_each_cluster_counts_once() -> None:
    # 30 items of 10 clusters agree throughout: 10 of 10 by Wilson, from 1/(1 + 2.2622²/10) on.
    found = Contributions(np.repeat(np.arange(10), 3), np.zeros(30, dtype=np.int64), 4)
    number = wilson_by_cluster(Estimate(1.0, 30), Spread(found), agreement)
    assert number.ci95 == pytest.approx((1 / (1 + 2.262157**2 / 10), 1))


def test_clusters_of_uneven_size_count_for_fewer() -> None:
    # 100 clusters of one entry and one of 100: (200)² ÷ (100 + 100²) = 3.96.
    cluster = np.concatenate([np.arange(100), np.full(100, 100)])
    found = Contributions(cluster, np.arange(200) % 4, 4)
    every = np.ones(4, dtype=bool)
    assert found.effective_clusters(every) == pytest.approx(40_000 / 10_100)
    assert why_interval_withheld(found, ~DIAGONAL) == (
        "Too few clusters for a CI (3 < 40). The 101 clusters differ in size, which lowers their effective number."
    )
    alone = Contributions(np.arange(200), np.arange(200) % 4, 4)
    assert alone.effective_clusters(every) == 200
    assert alone.effective_clusters(every, 40) == 40
    # Only the entries that the number is made of count.
    half = np.array([True, True, False, False])
    uneven = Contributions(cluster, (cluster == 100).astype(np.int64) * 3, 4)
    assert uneven.effective_clusters(half) == 100
    sums = sum_by_cluster(number_clusters(cluster), np.ones(200))
    assert sums.effective_clusters(np.ones(2, dtype=bool)) == pytest.approx(40_000 / 10_100)


def test_a_share_with_one_giant_cluster_has_wilsons_interval_with_the_t_of_the_effective_clusters() -> None:
    cluster = np.concatenate([np.arange(100), np.full(100, 100)])
    agree = np.random.default_rng(1).integers(2, size=200)
    found = Contributions(cluster, agree, 2)
    one, both = np.array([False, True]), np.ones(2, dtype=bool)
    number = estimate_share(Spread(found), one, both, "")
    assert (number.ci95_rule or "").startswith("Wilson, 200 ÷ design effect")
    assert number.ci95 is not None
    even = estimate_share(Spread(Contributions(np.arange(200), agree, 2)), one, both, "")
    assert even.ci95 is not None
    assert number.ci95[1] - number.ci95[0] > 1.4 * (even.ci95[1] - even.ci95[0])
