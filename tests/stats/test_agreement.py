import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from statsmodels.stats.inter_rater import cohens_kappa

from evaluations.stats.agreement import (
    CONSTANT,
    NO_RATERS,
    NOTHING_SHARED,
    agreement,
    block,
    cohen_kappa,
    gwet_ac1,
    raw_agreement,
    scott_pi,
)
from evaluations.stats.coding import BOTH_BAD, MISSING, TIE, A, B, IntArray, cross_table

# The table "cont3x3abstractors" that comes with Gwet's irrCAC, and what irrCAC prints for it.
ABSTRACTORS = np.array([[13, 0, 0], [0, 20, 7], [0, 4, 56]])
EMPTY = np.zeros((4, 4), dtype=np.int64)

tables = st.lists(st.lists(st.integers(0, 60), min_size=4, max_size=4), min_size=4, max_size=4).map(np.array)


def table(counts: dict[tuple[int, int], int]) -> IntArray:
    made = EMPTY.copy()
    for cell, count in counts.items():
        made[cell] = count
    return made


def test_a_published_table_gives_the_published_numbers() -> None:
    assert raw_agreement(ABSTRACTORS).value == pytest.approx(0.89)
    assert cohen_kappa(ABSTRACTORS).value == pytest.approx(0.7964094, abs=5e-8)
    assert scott_pi(ABSTRACTORS).value == pytest.approx(0.7962397, abs=5e-8)
    assert gwet_ac1(ABSTRACTORS, 3).value == pytest.approx(0.8493305, abs=5e-8)


def test_a_small_table_is_what_one_works_out_by_hand() -> None:
    # The first says A 6, B 4; the second A 5, B 5; they agree on 4 A and 3 B of 10.
    # po = .7. Cohen: pe = .6·.5 + .4·.5 = .5, kappa = .2/.5 = .4.
    # Scott: π = 11/20, 9/20, pe = .3025 + .2025 = .505, pi = .195/.495 = 13/33.
    # AC1: pe = .55·.45 + .45·.55 = .495 (q = 2), AC1 = .205/.505 = 41/101.
    worked = np.array([[4, 2], [1, 3]])
    assert raw_agreement(worked).value == pytest.approx(0.7)
    assert cohen_kappa(worked).value == pytest.approx(0.4)
    assert scott_pi(worked).value == pytest.approx(13 / 33)
    assert gwet_ac1(worked, 2).value == pytest.approx(41 / 101)


def test_a_choice_on_offer_that_nobody_makes_lowers_chance_in_ac1() -> None:
    # The same table with three choices on offer: pe = .495/2 = .2475, AC1 = .4525/.7525.
    assert gwet_ac1(np.array([[4, 2], [1, 3]]), 3).value == pytest.approx(0.4525 / 0.7525)


def test_perfect_agreement_is_exactly_one_and_chance_exactly_nothing() -> None:
    assert cohen_kappa(np.diag([7, 3, 2])).value == 1
    assert cohen_kappa(np.array([[1, 1], [1, 1]])).value == 0


def test_high_agreement_with_one_rare_choice_has_a_negative_kappa_and_a_high_ac1() -> None:
    # 97 of 100 agree, all on A; 1 and 2 are B on one side only. pe = .98·.99 + .02·.01 = .9704,
    # kappa = (.97 − .9704)/.0296 = −.0135; AC1: π = .985, pe = 2·.985·.015 = .02955.
    skewed = np.array([[97, 1], [2, 0]])
    assert cohen_kappa(skewed).value == pytest.approx(-0.0004 / 0.0296)
    assert gwet_ac1(skewed, 2).value == pytest.approx((0.97 - 0.02955) / (1 - 0.02955))


def test_a_constant_aspect_has_no_kappa_and_says_why() -> None:
    constant = table({(A, A): 12})
    assert (cohen_kappa(constant).value, cohen_kappa(constant).why) == (None, CONSTANT)
    assert (scott_pi(constant).value, scott_pi(constant).n) == (None, 12)
    assert gwet_ac1(constant, 3).value == 1


def test_nothing_shared_gives_no_number_and_a_reason_never_nought() -> None:
    found = agreement(EMPTY, 3)
    assert (found.agree, found.n) == (0, 0)
    for number in (found.agreement, found.cohen_kappa, found.scott_pi, found.gwet_ac1):
        assert (number.value, number.why, number.ci95) == (None, NOTHING_SHARED, None)


def test_every_number_says_that_its_interval_is_not_computed_yet() -> None:
    assert raw_agreement(ABSTRACTORS).ci95 is None
    assert raw_agreement(ABSTRACTORS).ci95_why


def test_pooled_votes_have_no_cohen_but_scotts_pi() -> None:
    found = agreement(table({(A, A): 4, (A, B): 2, (B, B): 3}), 2, raters_known=False)
    assert (found.cohen_kappa.value, found.cohen_kappa.why) == (None, NO_RATERS)
    assert found.scott_pi.value is not None


def test_without_ties_drops_what_either_side_left_open_and_prints_the_share() -> None:
    # 20 items: 8 + 5 agree on a side, 2 disagree, 5 have a tie or both bad on a side.
    found = block(table({(A, A): 8, (B, B): 5, (A, B): 2, (TIE, A): 2, (TIE, TIE): 1, (B, BOTH_BAD): 2}), 4)
    assert (found.with_ties.agree, found.with_ties.n) == (14, 20)
    assert (found.without_ties.agree, found.without_ties.n) == (13, 15)
    assert found.dropped.value == pytest.approx(5 / 20)


def test_where_only_ties_are_left_the_reason_says_so() -> None:
    found = block(table({(TIE, TIE): 3}), 3)
    assert found.without_ties.agreement.value is None
    assert found.without_ties.agreement.why == "No comparison is left once ties are dropped."


def test_an_entry_that_is_missing_on_one_side_is_in_no_cell() -> None:
    assert cross_table(np.array([A, MISSING, B]), np.array([A, A, MISSING])).sum() == 1


@given(tables)
def test_cohens_kappa_equals_statsmodels(found: IntArray) -> None:
    assume(found.sum() > 0 and cohen_kappa(found).value is not None)
    with np.errstate(all="ignore"):  # the package's own z-value of a table without variance
        expected = cohens_kappa(found).kappa
    assert cohen_kappa(found).value == pytest.approx(expected, abs=1e-12)


@given(tables)
def test_who_stands_first_changes_no_number(found: IntArray) -> None:
    for measure in (raw_agreement, cohen_kappa, scott_pi):
        assert measure(found).value == pytest.approx(measure(found.T).value)
    assert gwet_ac1(found, 4).value == pytest.approx(gwet_ac1(found.T, 4).value)
