from dataclasses import asdict
from json import dumps
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from evaluations.stats.coding import MISSING, TIE, A, B, IntArray
from evaluations.stats.judge_comparison import (
    EXACT_MCNEMAR_TEST,
    NO_TEST_PART,
    NOTHING_SHARED,
    SIGN_FLIP_TEST,
    HeldOutLook,
    JudgeComparison,
    compare_judges,
    compare_over_aspects,
    mcnemar_p,
)


def outcomes(both: int, only_first: int, only_second: int, neither: int, size: int = 1) -> JudgeComparison:
    """Items of these kinds, one after the other; ``size`` neighbours make a cluster."""
    n = both + only_first + only_second + neither
    right = np.repeat([True, True, False, False], [both, only_first, only_second, neither])
    also = np.repeat([True, False, True, False], [both, only_first, only_second, neither])
    return compare_judges(np.where(right, A, B), np.where(also, A, TIE), np.full(n, A), np.arange(n) // size)


def test_only_items_with_both_verdicts_and_a_majority_count() -> None:
    first = np.array([A, A, MISSING, A, B])
    second = np.array([A, MISSING, B, B, B])
    majority = np.array([A, A, B, MISSING, TIE])
    found = compare_judges(first, second, majority, np.arange(5))
    assert (found.n, found.first.value, found.second.value, found.difference.value) == (2, 0.5, 0.5, 0.0)


def test_agreement_difference_and_discordant_counts_are_what_one_counts() -> None:
    found = outcomes(50, 30, 12, 8)
    assert (found.first.value, found.second.value) == (0.8, 0.62)
    assert found.difference.value == pytest.approx(0.18)
    assert (found.only_first, found.only_second, found.n, found.clusters_differing) == (30, 12, 100, 42)
    assert (found.test, found.p) == (EXACT_MCNEMAR_TEST, mcnemar_p(30, 12))


def test_a_tie_that_people_agree_on_is_a_choice_like_others() -> None:
    found = compare_judges(np.full(3, TIE), np.full(3, A), np.full(3, TIE), np.arange(3))
    assert (found.first.value, found.second.value) == (1, 0)


def test_the_interval_of_the_difference_knows_that_the_items_are_the_same() -> None:
    # Of 400 items each alone: variance of a paired difference (b + c − (b − c)²/n)/n² = (100 − 400/400)/160,000.
    found = outcomes(250, 60, 40, 50)
    assert found.difference.ci95 is not None
    half = (found.difference.ci95[1] - found.difference.ci95[0]) / 2
    assert half == pytest.approx(norm.ppf(0.975) * (99 / 160_000) ** 0.5, rel=0.05)
    # As if they were not the same: .775 and .725 apart, much wider.
    assert half < 0.85 * norm.ppf(0.975) * ((0.775 * 0.225 + 0.725 * 0.275) / 400) ** 0.5


def test_above_the_size_of_the_bootstrap_the_formula_is_met_to_four_digits() -> None:
    found = outcomes(2_500, 600, 400, 500)
    assert found.difference.ci95 is not None
    half = (found.difference.ci95[1] - found.difference.ci95[0]) / 2
    assert half == pytest.approx(norm.ppf(0.975) * ((1_000 - 200**2 / 4_000) / 4_000**2) ** 0.5, rel=1e-3)


def test_with_few_clusters_agreement_has_wilson_and_the_difference_no_interval() -> None:
    found = outcomes(20, 6, 4, 5)
    assert found.first.ci95_rule is not None
    assert found.first.ci95_rule.startswith("Wilson")
    assert found.difference.ci95 is None
    assert found.difference.ci95_why == "Too few clusters for a CI (35 < 40)."


def test_a_judge_that_is_hardly_ever_right_has_wilson_too() -> None:
    # Right on 3 of 60 items, each a cluster of its own; the other judge on 33.
    found = outcomes(3, 0, 30, 27)
    assert (found.first.ci95_rule or "").startswith("Wilson")
    assert (found.second.ci95_rule or "").startswith("bootstrap")


def test_where_clusters_repeat_the_signs_of_clusters_are_flipped() -> None:
    # Clusters of ten that lean one way as a whole: 3 against 2, p = 1; by items it would be 30 against 20.
    found = outcomes(50, 30, 20, 0, size=10)
    assert (found.test, found.clusters, found.clusters_differing) == (SIGN_FLIP_TEST, 10, 5)
    assert found.p == pytest.approx(1)
    assert mcnemar_p(30, 20) == pytest.approx(0.2026, abs=5e-5)


def test_a_cluster_in_which_each_judge_is_ahead_once_does_not_differ() -> None:
    # Right and wrong take turns: in every cluster of two each judge alone is right once.
    first = np.tile([A, B], 20)
    found = compare_judges(first, np.where(first == A, B, A), np.full(40, A), np.arange(40) // 2)
    assert (found.only_first, found.only_second, found.clusters_differing, found.p) == (20, 20, 0, 1)


def test_nothing_to_compare_has_a_reason_and_no_p() -> None:
    nothing = np.full(4, MISSING)
    found = compare_judges(nothing, nothing, np.full(4, A), np.arange(4))
    assert (found.n, found.p, found.why, found.first.value) == (0, None, NOTHING_SHARED, None)


def clustered(rng: np.random.Generator, clusters: int, size: int) -> tuple[IntArray, IntArray, IntArray]:
    """Two judges, equally often right, of whom in each cluster one is better at what it asks."""
    skill = np.repeat(rng.choice([0.3, -0.3], size=clusters), size)
    first = np.where(rng.random(clusters * size) < 0.6 + skill, A, B)
    second = np.where(rng.random(clusters * size) < 0.6 - skill, A, B)
    return first, second, np.repeat(np.arange(clusters), size)


def test_under_clustering_sign_flips_keep_the_level_that_mcnemar_breaks() -> None:
    # 300 times two judges of equal worth on 30 clusters of 10. At 5 % between 1.9 and 9 % is within 3 errors.
    rng = np.random.default_rng(6)
    rejected, naive = 0, 0
    for _ in range(300):
        first, second, cluster = clustered(rng, 30, 10)
        found = compare_judges(first, second, np.full(300, A), cluster)
        rejected += (found.p or 0) <= 0.05
        naive += mcnemar_p(found.only_first, found.only_second) <= 0.05
    assert 0.019 <= rejected / 300 <= 0.09
    assert naive / 300 > 0.15


def test_sign_flips_find_a_judge_that_is_better() -> None:
    rng = np.random.default_rng(7)
    first, second, cluster = clustered(rng, 100, 10)
    improved = np.where(rng.random(1_000) < 0.5, A, first)
    assert (compare_judges(improved, second, np.full(1_000, A), cluster).p or 1) < 0.005


def aspects(**counts: tuple[int, int]) -> dict[str, JudgeComparison]:
    return {aspect: outcomes(50, *found, 10) for aspect, found in counts.items()}


def test_holm_goes_over_the_aspects_and_better_is_said_at_a_third_of_five_percent() -> None:
    # p: 25 against 5 .000325, 20 against 5 .00408, 5 against 18 .0106, 12 against 8 .503.
    # Holm: ·4 = .0013, ·3 = .0122, ·2 = .0213, ·1. At .05/3 = .0167 the first two are better, the third is not.
    found = compare_over_aspects("x", "y", aspects(a=(25, 5), b=(20, 5), c=(5, 18), d=(12, 8)), HeldOutLook(1))
    adjusted = [one.p_adjusted for one in found.aspects.values()]
    assert adjusted == pytest.approx([0.0013, 0.0122, 0.0213, 0.503], abs=5e-4)
    assert [one.better for one in found.aspects.values()] == ["x", "x", None, None]
    assert not found.exploratory
    assert found.level == pytest.approx(0.05 / 3)
    assert found.words == (
        "Look 1 of 3 at the test part. A judge is called better if p, Holm-adjusted over 4 comparisons of judges "
        "and aspects, is at most 0.05 ÷ 3 = 0.0167."
    )


def test_the_second_judge_can_be_the_better_one() -> None:
    assert compare_over_aspects("x", "y", aspects(a=(5, 30)), HeldOutLook(3)).aspects["a"].better == "y"


def test_without_a_test_part_nobody_is_better_and_the_p_value_is_exploratory() -> None:
    found = compare_over_aspects("x", "y", aspects(a=(30, 2)), None)
    assert (found.exploratory, found.words, found.level) == (True, NO_TEST_PART, None)
    assert found.aspects["a"].better is None
    assert (found.aspects["a"].p_adjusted or 1) < 0.001


def test_looks_that_are_used_up_say_nothing_any_more() -> None:
    found = compare_over_aspects("x", "y", aspects(a=(30, 2)), HeldOutLook(4, of=3))
    assert (found.exploratory, found.aspects["a"].better, found.look, found.looks) == (True, None, 4, 3)
    assert found.words.startswith("All 3 looks at the test part are used up")


def test_a_single_look_has_all_of_alpha() -> None:
    # 14 against 4: p = .031, too much for a third of five percent.
    one = aspects(a=(14, 4))
    assert compare_over_aspects("x", "y", one, HeldOutLook(1, of=1)).aspects["a"].better == "x"
    assert compare_over_aspects("x", "y", one, HeldOutLook(1, of=3)).aspects["a"].better is None


def test_an_aspect_without_a_p_value_counts_for_no_correction() -> None:
    nothing = np.full(4, MISSING)
    found = compare_over_aspects(
        "x", "y", {**aspects(a=(14, 4)), "b": compare_judges(nothing, nothing, nothing, nothing)}, HeldOutLook(1)
    )
    assert found.aspects["a"].p_adjusted == pytest.approx(mcnemar_p(14, 4))
    assert (found.aspects["b"].p_adjusted, found.aspects["b"].better) == (None, None)


def test_the_result_is_plain_json() -> None:
    found: dict[str, Any] = asdict(compare_over_aspects("x", "y", aspects(a=(25, 5)), HeldOutLook(1)))
    assert "NaN" not in dumps(found, allow_nan=False)
