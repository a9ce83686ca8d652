from typing import Literal

import krippendorff
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score
from statsmodels.stats.inter_rater import cohens_kappa

from evaluations.stats.agreement_coefficients import (
    ContingencyTables,
    alpha_nominal,
    alpha_ordinal,
    bias_index,
    cohen_kappa,
    gwet_ac1,
    gwet_ac2,
    prevalence_index,
    raw_agreement,
    scott_pi,
    weighted_kappa,
)
from evaluations.stats.coding import BOTH_BAD, TIE, A, B, FloatArray

# The table "cont3x3abstractors" that comes with Gwet's irrCAC, and what irrCAC prints for it.
ABSTRACTORS = ContingencyTables(np.array([[13.0, 0, 0], [0, 20, 7], [0, 4, 56]]))
WORKED = ContingencyTables(np.array([[4.0, 2], [1, 3]]))


def square(size: int) -> st.SearchStrategy[FloatArray]:
    row = st.lists(st.integers(0, 60), min_size=size, max_size=size)
    return st.lists(row, min_size=size, max_size=size).map(lambda rows: np.array(rows, dtype=np.float64))


def entries(counts: FloatArray) -> tuple[list[int], list[int]]:
    """The two raters' choices, one by one."""
    rows, columns = np.indices(counts.shape)
    times = counts.astype(np.int64).ravel()
    return np.repeat(rows.ravel(), times).tolist(), np.repeat(columns.ravel(), times).tolist()


def test_a_published_table_gives_the_published_numbers() -> None:
    assert raw_agreement(ABSTRACTORS) == pytest.approx(0.89)
    assert cohen_kappa(ABSTRACTORS) == pytest.approx(0.7964094, abs=5e-8)
    assert scott_pi(ABSTRACTORS) == pytest.approx(0.7962397, abs=5e-8)
    assert gwet_ac1(ABSTRACTORS, 3) == pytest.approx(0.8493305, abs=5e-8)


def test_a_small_table_is_what_one_works_out_by_hand() -> None:
    # The first says A 6, B 4; the second A 5, B 5; they agree on 4 A and 3 B of 10.
    # po = .7. Cohen: pe = .6·.5 + .4·.5 = .5, kappa = .2/.5 = .4.
    # Scott: π = 11/20, 9/20, pe = .3025 + .2025 = .505, pi = .195/.495 = 13/33.
    # AC1: pe = .55·.45 + .45·.55 = .495 (q = 2), AC1 = .205/.505 = 41/101.
    # Prevalence (4 − 3)/10, bias (2 − 1)/10.
    assert raw_agreement(WORKED) == pytest.approx(0.7)
    assert cohen_kappa(WORKED) == pytest.approx(0.4)
    assert scott_pi(WORKED) == pytest.approx(13 / 33)
    assert gwet_ac1(WORKED, 2) == pytest.approx(41 / 101)
    assert prevalence_index(WORKED) == pytest.approx(0.1)
    assert bias_index(WORKED) == pytest.approx(0.1)


def test_a_choice_on_offer_that_nobody_makes_lowers_chance_in_ac1() -> None:
    # The same table with three choices on offer: pe = .495/2 = .2475, AC1 = .4525/.7525.
    assert gwet_ac1(WORKED, 3) == pytest.approx(0.4525 / 0.7525)


def test_the_weighted_coefficients_of_a_small_table_are_what_one_works_out_by_hand() -> None:
    # In order 1, 2, 3: 4 2 0 / 1 5 1 / 0 1 6, n = 20; rows 6 7 7, columns 5 8 7.
    # One step apart: 2 + 1 + 1 + 1 = 5, two steps: 0. Weighted kappa: expected distance
    # (6·8 + 7·5 + 7·7 + 7·8)/20 + 2·(6·7 + 7·5)/20 = 188/20 + 154/20 = 17.1; 1 − 5/17.1.
    # AC2: pa = (15 + 5/2)/20 = .875; π = 11/40, 15/40, 14/40; Σπ(1 − π) = (319 + 375 + 364)/1600 = .66125;
    # Σw = 3 + 4/2 = 5, pe = 5/6 · .66125.
    table = ContingencyTables(np.array([[4.0, 2, 0], [1, 5, 1], [0, 1, 6]]))
    assert weighted_kappa(table) == pytest.approx(1 - 5 / 17.1)
    by_chance = 5 / 6 * 0.66125
    assert gwet_ac2(table, 3) == pytest.approx((0.875 - by_chance) / (1 - by_chance))


def test_perfect_agreement_is_exactly_one_and_chance_exactly_nothing() -> None:
    assert cohen_kappa(ContingencyTables(np.diag([7.0, 3, 2]))) == 1
    assert weighted_kappa(ContingencyTables(np.diag([7.0, 3, 2]))) == 1
    assert cohen_kappa(ContingencyTables(np.array([[1.0, 1], [1, 1]]))) == 0


def test_high_agreement_with_one_rare_choice_has_a_negative_kappa_and_a_high_ac1() -> None:
    # 97 of 100 agree, all on A; 1 and 2 are B on one side only. pe = .98·.99 + .02·.01 = .9704,
    # kappa = (.97 − .9704)/.0296 = −.0135; AC1: π = .985, pe = 2·.985·.015 = .02955.
    skewed = ContingencyTables(np.array([[97.0, 1], [2, 0]]))
    assert cohen_kappa(skewed) == pytest.approx(-0.0004 / 0.0296)
    assert gwet_ac1(skewed, 2) == pytest.approx((0.97 - 0.02955) / (1 - 0.02955))
    assert prevalence_index(skewed) == pytest.approx(0.97)


def test_between_the_sides_tie_and_both_bad_are_one_step() -> None:
    counts = np.zeros((4, 4))
    counts[A, TIE], counts[BOTH_BAD, TIE], counts[B, BOTH_BAD], counts[A, B] = 1, 2, 3, 4
    assert ContingencyTables(counts).in_order().counts.tolist() == [[0, 1, 4], [0, 2, 0], [0, 3, 0]]


@given(square(4))
def test_cohens_kappa_equals_statsmodels(counts: FloatArray) -> None:
    with np.errstate(all="ignore"):  # the package's own z-value of a table without variance
        mine = float(cohen_kappa(ContingencyTables(counts)))
        assume(np.isfinite(mine))
        assert mine == pytest.approx(cohens_kappa(counts).kappa, abs=1e-12)


@given(square(3))
def test_weighted_kappa_equals_scikit_learn(counts: FloatArray) -> None:
    with np.errstate(all="ignore"):
        mine = float(weighted_kappa(ContingencyTables(counts)))
    assume(np.isfinite(mine))
    theirs = cohen_kappa_score(*entries(counts), labels=[0, 1, 2], weights="linear")
    assert mine == pytest.approx(theirs, abs=1e-9)


@given(square(3))
def test_who_stands_first_changes_only_the_sign_of_the_bias(counts: FloatArray) -> None:
    one, other = ContingencyTables(counts), ContingencyTables(counts.T)
    with np.errstate(all="ignore"):
        for measure in (raw_agreement, cohen_kappa, weighted_kappa, scott_pi, prevalence_index):
            assert measure(one) == pytest.approx(measure(other), nan_ok=True)
        for with_q in (gwet_ac1, gwet_ac2):
            assert with_q(one, 3) == pytest.approx(with_q(other, 3), nan_ok=True)
        assert bias_index(one) == pytest.approx(-bias_index(other), nan_ok=True)


@given(square(2))
def test_on_two_choices_the_weighted_coefficients_are_the_plain_ones(counts: FloatArray) -> None:
    with_nobody_between = np.zeros((3, 3))
    with_nobody_between[::2, ::2] = counts
    with np.errstate(all="ignore"):
        two, three = ContingencyTables(counts), ContingencyTables(with_nobody_between)
        assert weighted_kappa(three) == pytest.approx(cohen_kappa(two), nan_ok=True)
        assert gwet_ac2(three, 2) == pytest.approx(gwet_ac1(two, 2), nan_ok=True)


@given(square(3), st.sampled_from(["nominal", "ordinal"]))
def test_alpha_of_coincidences_equals_the_krippendorff_package(
    counts: FloatArray, level: Literal["nominal", "ordinal"]
) -> None:
    # Two raters: each pair stands in the coincidences both ways round.
    one, other = entries(counts)
    assume(len(one) > 1 and len({*one, *other}) > 1)
    mine = {"nominal": alpha_nominal, "ordinal": alpha_ordinal}[level](counts + counts.T)
    theirs = krippendorff.alpha(np.array([one, other]), value_domain=[0, 1, 2], level_of_measurement=level)
    assert mine == pytest.approx(theirs, abs=1e-9)
