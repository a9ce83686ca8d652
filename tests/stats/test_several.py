import krippendorff
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from statsmodels.stats.inter_rater import fleiss_kappa as statsmodels_fleiss

from evaluations.stats.coding import IntArray
from evaluations.stats.several import (
    NO_VARIATION,
    TOO_FEW_VOTES,
    fleiss_kappa,
    gwet_ac1_of_several,
    krippendorff_alpha,
    several,
)

# Fleiss (1971): 15 patients, 6 psychiatrists, 5 diagnoses; as printed with irrCAC ("distrib.6raters").
DIAGNOSES = np.array(
    [
        [0, 0, 0, 6, 0],
        [0, 3, 0, 0, 3],
        [0, 1, 4, 0, 1],
        [0, 0, 0, 0, 6],
        [0, 3, 0, 3, 0],
        [2, 0, 4, 0, 0],
        [0, 0, 4, 0, 2],
        [2, 0, 3, 1, 0],
        [2, 0, 0, 4, 0],
        [0, 0, 0, 0, 6],
        [1, 0, 0, 5, 0],
        [1, 1, 0, 4, 0],
        [0, 3, 3, 0, 0],
        [1, 0, 0, 5, 0],
        [0, 2, 0, 3, 1],
    ]
)
# Krippendorff's own example with missing votes, 12 units, 4 raters (irrCAC: "cac.raw4raters"), counted.
WITH_MISSING = np.array(
    [
        [3, 0, 0, 0, 0],
        [0, 3, 1, 0, 0],
        [0, 0, 4, 0, 0],
        [0, 0, 4, 0, 0],
        [0, 4, 0, 0, 0],
        [1, 1, 1, 1, 0],
        [0, 0, 0, 4, 0],
        [3, 1, 0, 0, 0],
        [0, 4, 0, 0, 0],
        [0, 0, 0, 0, 3],
        [2, 0, 0, 0, 0],
        [0, 0, 1, 0, 0],
    ]
)

counted = st.lists(st.lists(st.integers(0, 5), min_size=3, max_size=3), min_size=2, max_size=12).map(np.array)
of_five = st.lists(st.lists(st.integers(0, 2), min_size=5, max_size=5), min_size=2, max_size=12)


def test_fleiss_own_table_gives_the_published_numbers() -> None:
    assert fleiss_kappa(DIAGNOSES).value == pytest.approx(0.4139265, abs=5e-8)
    assert gwet_ac1_of_several(DIAGNOSES, 5).value == pytest.approx(0.4448007, abs=5e-8)


def test_votes_with_gaps_give_the_published_numbers() -> None:
    assert krippendorff_alpha(WITH_MISSING).value == pytest.approx(0.74342, abs=5e-6)
    assert gwet_ac1_of_several(WITH_MISSING, 5).value == pytest.approx(0.77544, abs=5e-6)


def test_an_item_with_one_vote_counts_for_prevalence_alone() -> None:
    found = several(WITH_MISSING, 5)
    assert found.units == 11
    assert found.krippendorff_alpha.value == krippendorff_alpha(WITH_MISSING[:11]).value
    assert found.gwet_ac1.value != gwet_ac1_of_several(WITH_MISSING[:11], 5).value


def test_alpha_of_a_small_table_is_what_one_works_out_by_hand() -> None:
    # Votes: AA, AB, ABB. Disagreeing pairs of each item over votes − 1: 0 + 2/1 + 4/2 = 4. In all 3 A... n = 7,
    # A 4, B 3: expected = (49 − 16 − 9)/6 = 4. alpha = 1 − 4/4 = 0.
    assert krippendorff_alpha(np.array([[2, 0], [1, 1], [1, 2]])).value == 0


def test_fleiss_kappa_is_withheld_where_items_have_different_numbers_of_votes() -> None:
    found = fleiss_kappa(WITH_MISSING)
    assert found.value is None
    assert found.why == "It needs equally many votes on every comparison; here they have 1 to 4."


def test_items_nobody_voted_on_are_not_items() -> None:
    padded = np.vstack([DIAGNOSES, np.zeros((3, 5), dtype=np.int64)])
    assert several(padded, 5) == several(DIAGNOSES, 5)


def test_one_choice_throughout_leaves_nothing_to_explain() -> None:
    constant = np.array([[3, 0], [3, 0]])
    assert (krippendorff_alpha(constant).value, krippendorff_alpha(constant).why) == (None, NO_VARIATION)
    assert (fleiss_kappa(constant).value, fleiss_kappa(constant).why) == (None, NO_VARIATION)
    assert gwet_ac1_of_several(constant, 2).value == 1


@pytest.mark.parametrize("counts", [np.zeros((0, 4), dtype=np.int64), np.array([[1, 0], [0, 1]])])
def test_without_two_votes_on_anything_there_is_no_number(counts: IntArray) -> None:
    for number in several(counts, 3).numbers:
        assert (number.value, number.why) == (None, TOO_FEW_VOTES)


@given(counted)
def test_alpha_equals_the_krippendorff_package(counts: IntArray) -> None:
    mine = krippendorff_alpha(counts)
    assume(mine.value is not None)
    theirs = krippendorff.alpha(value_counts=counts, level_of_measurement="nominal")
    assert mine.value == pytest.approx(theirs, abs=1e-9)


@given(of_five)
def test_fleiss_kappa_equals_statsmodels(votes: list[list[int]]) -> None:
    counts = np.array([[row.count(choice) for choice in range(3)] for row in votes])
    mine = fleiss_kappa(counts)
    assume(mine.value is not None)
    assert mine.value == pytest.approx(statsmodels_fleiss(counts), abs=1e-9)
