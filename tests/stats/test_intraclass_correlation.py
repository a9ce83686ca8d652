import numpy as np
import pytest
import statsmodels.api as sm
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from evaluations.stats.agreement_coefficients import anova_mean_squares, icc_agreement, icc_consistency, icc_totals
from evaluations.stats.cluster_totals import number_clusters
from evaluations.stats.coding import FloatArray

# Shrout and Fleiss (1979), table 2: six subjects, four judges.
SUBJECTS = np.array([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]], dtype=float)
some_scores = st.tuples(st.integers(2, 4), st.integers(2, 8)).flatmap(
    lambda shape: arrays(np.float64, shape, elements=st.integers(0, 9).map(float))
)


def totals(value: FloatArray) -> FloatArray:
    """``value``: raters × responses."""
    return icc_totals(value, number_clusters(np.arange(value.shape[1]))).totals


def test_the_table_of_shrout_and_fleiss_gives_their_numbers() -> None:
    # Their table 3: mean squares 11.24, 32.49, 1.02. Their table 4: ICC(2,1) = .29, ICC(3,1) = .71.
    found = totals(SUBJECTS.T)
    squares = anova_mean_squares(found)
    assert [round(float(square), 2) for square in (squares.responses, squares.raters, squares.rest)] == [
        11.24,
        32.49,
        1.02,
    ]
    assert (round(float(icc_agreement(found)), 2), round(float(icc_consistency(found)), 2)) == (0.29, 0.71)


def test_a_table_of_two_is_what_one_works_out_by_hand() -> None:
    # Scores 1 2, 3 4, 5 6: the second rater is 1 higher throughout. Row sums 3, 7, 11: MSR = (179/2 − 73.5)/2 = 8;
    # column sums 9, 12: MSC = 225/3 − 73.5 = 1.5; MSE = 0. ICC(3,1) = 1, ICC(2,1) = 8/(8 + 2 · 1.5/3) = 8/9.
    found = totals(np.array([[1.0, 3.0, 5.0], [2.0, 4.0, 6.0]]))
    assert icc_consistency(found) == pytest.approx(1)
    assert icc_agreement(found) == pytest.approx(8 / 9)


@given(some_scores)
def test_mean_squares_equal_those_of_a_linear_model(value: FloatArray) -> None:
    raters, responses = value.shape
    of_rater = np.kron(np.eye(raters), np.ones(responses)).T[:, 1:]
    of_response = np.kron(np.ones(raters), np.eye(responses)).T[:, 1:]
    rest, without_raters, without_responses = (
        sm.OLS(value.ravel(), sm.add_constant(np.column_stack(design), has_constant="add")).fit().ssr
        for design in ([of_rater, of_response], [of_response], [of_rater])
    )
    found = anova_mean_squares(totals(value))
    expected = [
        (without_responses - rest) / (responses - 1),
        (without_raters - rest) / (raters - 1),
        rest / (responses - 1) / (raters - 1),
    ]
    assert [found.responses, found.raters, found.rest] == pytest.approx(expected, abs=1e-8)


@given(some_scores, st.floats(-50, 50), st.floats(0.1, 20))
def test_neither_moves_with_the_origin_or_the_unit_of_the_scale(value: FloatArray, shift: float, unit: float) -> None:
    assume(anova_mean_squares(totals(value)).rest > 0.1)
    for icc in (icc_agreement, icc_consistency):
        expected = float(icc(totals(value)))
        assume(np.isfinite(expected) and abs(expected) <= 1)
        assert icc(totals(shift + unit * value)) == pytest.approx(expected, abs=1e-4)


def test_two_raters_who_score_two_responses_crosswise_have_no_agreement_to_divide_by() -> None:
    # Scores 1 0 and 0 1: MSR = MSC = 0, MSE = 1/2; the denominator of ICC(2,1) is 0 + 1/2 + 2 (0 − 1/2)/2 = 0,
    # and that of ICC(3,1) is 1/2: −(1/2)/(1/2) = −1.
    found = totals(np.array([[1.0, 0.0], [0.0, 1.0]]))
    assert np.isnan(icc_agreement(found))
    assert icc_consistency(found) == pytest.approx(-1)
    assert np.isnan(icc_agreement(totals(np.array([[10.1, 10.0], [10.0, 10.1]]))))
