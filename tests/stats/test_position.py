import numpy as np
import pytest

from evaluations.stats.coding import AS_STORED, BOTH_BAD, MISSING, SWAPPED, TIE, UNKNOWN, A, B, IntArray
from evaluations.stats.consolidation import Verdicts
from evaluations.stats.position import ALL_TIES, NO_GOLD, ONE_ORDER, each_order, position

NONE = MISSING


def by_order(*pairs: tuple[int, int]) -> IntArray:
    """Choices as stored and swapped, one pair a comparison."""
    return np.array([[as_stored, swapped, NONE, NONE] for as_stored, swapped in pairs])


# A A, B B, tie tie: the same. A B: the first shown wins twice. B A: the second shown wins twice.
# A tie: differs, but does not change sides. A alone: no pair.
SIX = by_order((A, A), (B, B), (TIE, TIE), (A, B), (B, A), (A, TIE), (A, NONE))


def test_consistency_counts_ties_and_flips_count_changed_sides_alone() -> None:
    found = position(SIX)
    assert (found.consistency.agree, found.consistency.n) == (3, 6)
    assert found.flip.value == pytest.approx(2 / 6)


def test_the_first_shown_rate_is_over_the_verdicts_that_chose_a_side() -> None:
    # Sides chosen: AA 2, BB 2, AB 2, BA 2, A- 1 = 9. First shown wins: as stored A (A A, A B, A tie) 3,
    # swapped B (B B, A B) 2.
    found = position(SIX)
    assert found.first_shown.value == pytest.approx(5 / 9)
    assert found.first_shown.n == 9


def test_tie_and_both_bad_name_no_side_and_agree() -> None:
    assert position(by_order((TIE, BOTH_BAD))).consistency.agree == 1


def test_one_order_alone_says_nothing_about_position() -> None:
    found = position(by_order((A, NONE), (NONE, B)))
    assert (found.consistency.share.value, found.consistency.share.why) == (None, ONE_ORDER)
    assert found.flip.why == found.first_shown.why == ONE_ORDER


def test_ties_alone_have_no_first_shown_rate() -> None:
    found = position(by_order((TIE, TIE)))
    assert found.consistency.share.value == 1
    assert (found.first_shown.value, found.first_shown.why) == (None, ALL_TIES)


def verdicts(*rows: tuple[int, int, int]) -> Verdicts:
    item, shown, choice = np.array(rows, dtype=np.int64).reshape(-1, 3).T
    return Verdicts(item, shown, np.zeros_like(item), choice, np.zeros(len(item), dtype=bool))


def test_each_order_is_the_mean_of_the_orders_and_counts_every_verdict_with_gold() -> None:
    # As stored 2 of 3 right, swapped 0 of 1: mean 1/3, not 2/4. The fourth comparison has no gold.
    made = verdicts((0, AS_STORED, A), (1, AS_STORED, B), (2, AS_STORED, B), (0, SWAPPED, TIE), (3, SWAPPED, A))
    found = each_order(made, SIX, np.array([A, B, A, NONE]))
    assert found.accuracy.value == pytest.approx((2 / 3 + 0) / 2)
    assert found.accuracy.n == 4
    assert {name: number.n for name, number in found.by_order.items()} == {"as_stored": 3, "swapped": 1}


def test_an_unknown_order_is_an_order_of_its_own() -> None:
    assert UNKNOWN not in (AS_STORED, SWAPPED)
    found = each_order(verdicts((0, UNKNOWN, A)), SIX, np.array([A]))
    assert found.by_order["unknown"].value == 1


def test_without_gold_there_is_no_accuracy() -> None:
    found = each_order(verdicts((0, AS_STORED, A)), SIX, np.array([NONE]))
    assert (found.accuracy.value, found.accuracy.why) == (None, NO_GOLD)
