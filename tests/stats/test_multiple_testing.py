import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from statsmodels.stats.multitest import multipletests

from evaluations.stats.significance import benjamini_yekutieli_adjust, holm_adjust

p_values = st.lists(st.floats(0, 1), min_size=1, max_size=30)


def test_holm_multiplies_the_smallest_by_all_and_steps_down() -> None:
    # .01 · 4 = .04; .03 · 3 = .09; .04 · 2 = .08, not below .09; .5 · 1.
    assert holm_adjust(np.array([0.04, 0.01, 0.5, 0.03])) == pytest.approx([0.09, 0.04, 0.5, 0.09])


def test_benjamini_and_yekutieli_divide_by_the_rank_and_step_up() -> None:
    # 1 + 1/2 + 1/3 = 11/6, m = 3: .01 · 5.5 = .055; .02 · 5.5/2 = .055; .5 · 5.5/3 = .91667.
    assert benjamini_yekutieli_adjust(np.array([0.5, 0.01, 0.02])) == pytest.approx([11 / 12, 0.055, 0.055])


def test_one_test_alone_needs_no_adjustment() -> None:
    assert holm_adjust(np.array([0.2])) == pytest.approx([0.2])
    assert benjamini_yekutieli_adjust(np.array([0.2])) == pytest.approx([0.2])


@given(p_values)
def test_both_equal_statsmodels(p: list[float]) -> None:
    assert holm_adjust(np.array(p)) == pytest.approx(multipletests(p, method="holm")[1])
    assert benjamini_yekutieli_adjust(np.array(p)) == pytest.approx(multipletests(p, method="fdr_by")[1])
