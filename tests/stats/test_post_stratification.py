"""The chance to be reviewed: shares of strata, and strata of responses, by hand."""

import numpy as np

from evaluations.stats.post_stratification import inclusion_probabilities, response_strata


def test_a_unit_has_the_chance_of_the_share_of_its_stratum_that_counts() -> None:
    # Two of four, one of one, none of one.
    stratum = np.array([0, 0, 1, 0, 2, 0])
    counted = np.array([True, False, True, True, False, False])
    assert inclusion_probabilities(stratum, counted).tolist() == [0.5, 0.5, 1, 0.5, 0, 0.5]


def test_without_strata_every_chance_is_one() -> None:
    assert inclusion_probabilities(np.zeros(3, dtype=np.int8), np.array([True, False, False])).tolist() == [1, 1, 1]


def test_responses_whose_comparisons_are_in_the_same_strata_are_a_stratum() -> None:
    stratum = np.array([0, 1, 0, 0, 0])
    a, b = np.array([0, 0, 2, 4, 5]), np.array([1, 2, 4, 5, 6])
    found = response_strata(stratum, a, b, 8)
    # By their comparisons 0 and 2 have {0, 1}, 1 and 6 {0}, 4 and 5 {0, 0}; 3 and 7 are in no comparison.
    assert found[0] == found[2]
    assert found[1] == found[6]
    assert found[4] == found[5]
    assert found[3] == found[7]
    assert len(set(found.tolist())) == 4


def test_comparisons_of_one_stratum_make_one_of_responses() -> None:
    assert response_strata(np.zeros(2, dtype=np.int8), np.array([0, 0]), np.array([1, 2]), 3).tolist() == [0, 0, 0]
