import numpy as np
import pytest
from scipy.stats import t as student

from evaluations.stats.bias.position import (
    ALL_TIES,
    NO_GOLD,
    ONE_ORDER,
    PositionBias,
    accuracy_by_order,
    order_kinds,
    position_bias,
    position_bias_by_stratum,
)
from evaluations.stats.bias.strata import single_stratum
from evaluations.stats.coding import AS_STORED, BOTH_BAD, MISSING, SWAPPED, TIE, UNKNOWN, A, B, IntArray
from evaluations.stats.judge_verdicts import ConsolidatedVerdicts, JudgeAnswers, JudgeVerdicts

NONE = MISSING


def by_order(*pairs: tuple[int, int]) -> ConsolidatedVerdicts:
    """Choices as stored and swapped, one pair a comparison."""
    as_stored, swapped = np.array(pairs, dtype=np.int8).T
    no = np.zeros(len(pairs), dtype=bool)
    return ConsolidatedVerdicts(as_stored, no, no, no, ~no, (as_stored, swapped, None, None))


# A A, B B, tie tie: the same. A B: the first shown wins twice. B A: the second shown wins twice.
# A tie: differs, but does not change sides. A alone: no pair.
SIX = by_order((A, A), (B, B), (TIE, TIE), (A, B), (B, A), (A, TIE), (A, NONE))
EACH_ALONE = np.arange(7)
AGREE = position_bias(SIX, single_stratum(EACH_ALONE)).consistency


def test_consistency_counts_ties_and_flips_count_changed_sides_alone() -> None:
    found = position_bias(SIX, single_stratum(EACH_ALONE))
    assert (found.consistency.agree, found.consistency.n) == (3, 6)
    assert found.flip.value == pytest.approx(2 / 6)


def test_the_first_shown_rate_is_over_the_verdicts_that_chose_a_side() -> None:
    # Sides chosen: AA 2, BB 2, AB 2, BA 2, A- 1 = 9. First shown wins: as stored A (A A, A B, A tie) 3,
    # swapped B (B B, A B) 2.
    found = position_bias(SIX, single_stratum(EACH_ALONE))
    assert found.first_shown.value == pytest.approx(5 / 9)
    assert found.first_shown.n == 9


def test_tie_and_both_bad_name_no_side_and_agree() -> None:
    assert position_bias(by_order((TIE, BOTH_BAD)), single_stratum(np.arange(1))).consistency.agree == 1


def test_one_order_alone_says_nothing_about_position() -> None:
    found = position_bias(by_order((A, NONE), (NONE, B)), single_stratum(np.arange(2)))
    assert (found.consistency.share.value, found.consistency.share.why) == (None, ONE_ORDER)
    assert found.flip.why == found.first_shown.why == ONE_ORDER


def test_ties_alone_have_no_first_shown_rate() -> None:
    found = position_bias(by_order((TIE, TIE)), single_stratum(np.arange(1)))
    assert found.consistency.share.value == 1
    assert (found.first_shown.value, found.first_shown.why) == (None, ALL_TIES)


def of_pairs(pairs: IntArray, cluster: IntArray) -> PositionBias:
    return position_bias_by_stratum(single_stratum(cluster), order_kinds(pairs[:, 0], pairs[:, 1]))[0]


def in_clusters(seed: int) -> tuple[IntArray, IntArray]:
    """Choices in both orders in 60 clusters, some of which lean to the first shown."""
    rng = np.random.default_rng(seed)
    cluster = np.repeat(np.arange(60), rng.integers(1, 8, 60))
    view = rng.choice(3, len(cluster), p=[0.4, 0.4, 0.2])
    overruled = rng.random((len(cluster), 2)) < rng.choice([0.0, 0.5], 60)[cluster][:, None]
    return np.where(overruled, [A, B], view[:, None]), cluster


def test_the_two_arrays_say_what_the_table_of_orders_says() -> None:
    found = position_bias_by_stratum(single_stratum(np.arange(7)), order_kinds(SIX.as_stored, SIX.swapped))[0]
    assert (found.consistency.agree, found.consistency.n) == (3, 6)
    assert found.flip.value == pytest.approx(2 / 6)
    assert found.first_shown.value == pytest.approx(5 / 9)
    assert found.first_shown.ci95 is not None


@pytest.mark.parametrize("seed", range(3))
def test_its_intervals_are_those_of_leaving_out_one_cluster_at_a_time(seed: int) -> None:
    # The jackknife's variance of a ratio (Wolter 2007): (G − 1) ÷ G · Σ (ratio without g − ratio)².
    pairs, cluster = in_clusters(seed)
    found = of_pairs(pairs, cluster).first_shown
    without = [of_pairs(pairs[cluster != one], cluster[cluster != one]).first_shown.value or 0 for one in range(60)]
    assert found.value is not None
    variance = 59 / 60 * sum((one - found.value) ** 2 for one in without)
    margin = student.ppf(0.975, 59) * variance**0.5
    assert found.ci95 == pytest.approx((found.value - margin, found.value + margin), abs=0.002)


def test_where_few_comparisons_lean_to_a_place_the_first_shown_rate_has_wilsons_interval() -> None:
    found = of_pairs(np.array([[A, A]] * 60 + [[A, B]] * 5), np.arange(65)).first_shown
    assert found.value == pytest.approx(70 / 130)
    assert (found.ci95_rule or "").startswith("Wilson")


def test_clusters_in_which_no_side_was_chosen_say_nothing_of_the_first_shown() -> None:
    found = of_pairs(np.array([[TIE, TIE]] * 60 + [[A, B]] * 5), np.arange(65))
    assert (found.first_shown.ci95_rule or "").endswith("over 5 clusters")
    assert (found.flip.ci95_rule or "").endswith("over 65 clusters")


def verdicts(*rows: tuple[int, int, int]) -> JudgeVerdicts:
    item, order, choice = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    answers = [JudgeAnswers(shown, item[order == shown], choice[order == shown].astype(np.int8)) for shown in range(4)]
    return JudgeVerdicts(tuple(one for one in answers if len(one.item)))


def test_each_order_is_the_mean_of_the_orders_and_counts_every_verdict_with_gold() -> None:
    # As stored 2 of 3 right, swapped 0 of 1: mean 1/3, not 2/4. The fourth comparison has no gold.
    made = verdicts((0, AS_STORED, A), (1, AS_STORED, B), (2, AS_STORED, B), (0, SWAPPED, TIE), (3, SWAPPED, A))
    found = accuracy_by_order(made, AGREE, np.array([A, B, A, NONE]), EACH_ALONE)
    assert found.accuracy.value == pytest.approx((2 / 3 + 0) / 2)
    assert found.accuracy.n == 4
    assert {name: number.n for name, number in found.by_order.items()} == {"as_stored": 3, "swapped": 1}


def test_an_unknown_order_is_an_order_of_its_own() -> None:
    assert UNKNOWN not in (AS_STORED, SWAPPED)
    found = accuracy_by_order(verdicts((0, UNKNOWN, A)), AGREE, np.array([A]), EACH_ALONE)
    assert found.by_order["unknown"].value == 1


def test_without_gold_there_is_no_accuracy() -> None:
    found = accuracy_by_order(verdicts((0, AS_STORED, A)), AGREE, np.array([NONE]), EACH_ALONE)
    assert (found.accuracy.value, found.accuracy.why) == (None, NO_GOLD)


def test_the_mean_of_the_orders_of_few_comparisons_has_wilsons_interval() -> None:
    # 30 comparisons, gold A throughout, both orders right on the same 21; and the same of 60 with 3 or 57 right, where
    # few are right or few are wrong.
    for comparisons, right in ((30, 21), (60, 3), (60, 57)):
        item = np.arange(comparisons)
        choice = np.where(item < right, A, B).astype(np.int8)
        made = JudgeVerdicts(tuple(JudgeAnswers(shown, item, choice, is_single=True) for shown in (AS_STORED, SWAPPED)))
        no = np.zeros(comparisons, dtype=bool)
        own = ConsolidatedVerdicts(choice, no, no, no, ~no, (choice, choice, None, None))
        agree = position_bias(own, single_stratum(item)).consistency
        found = accuracy_by_order(made, agree, np.full(comparisons, A), item)
        assert found.accuracy.value == right / comparisons
        assert (found.accuracy.ci95_rule or "").startswith("Wilson")
        # Two verdicts on a comparison that always agree count as one.
        assert found.accuracy.ci95 == pytest.approx(found.by_order["swapped"].ci95, abs=1e-6)


def test_the_mean_of_the_orders_has_an_interval_in_which_the_orders_of_a_comparison_go_together() -> None:
    # 400 comparisons, gold A throughout; both orders right on the same 300: the mean varies as a share of 400 does,
    # √(.75 · .25 ÷ 400) = .0217, and not as one of 800 verdicts.
    item = np.arange(400)
    choice = np.where(item < 300, A, B).astype(np.int8)
    made = JudgeVerdicts(tuple(JudgeAnswers(shown, item, choice, is_single=True) for shown in (AS_STORED, SWAPPED)))
    no = np.zeros(400, dtype=bool)
    own = ConsolidatedVerdicts(choice, no, no, no, ~no, (choice, choice, None, None))
    found = accuracy_by_order(made, position_bias(own, single_stratum(item)).consistency, np.full(400, A), item)
    assert found.accuracy.ci95 is not None
    low, high = found.accuracy.ci95
    assert (high - low) / 2 == pytest.approx(1.96 * 0.0217, rel=0.1)
    assert found.by_order["swapped"].ci95 is not None
    assert found.orders_agree.share.ci95 is not None
