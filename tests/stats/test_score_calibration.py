"""Reviewers' mean score by the judge's, and large differences."""

import numpy as np
import pytest

from evaluations.stats.score_calibration import (
    ONE_SCORE,
    large_differences,
    largest_differences,
    quantile_bins,
    score_calibration,
)

GAP = np.nan


def test_few_values_have_a_bin_each() -> None:
    judge, people = np.array([1.0, 1, 5, 5, 5, 3, GAP]), np.array([1.0, 2, 4, 5, 3, GAP, 2])
    found = score_calibration(judge, people, np.arange(7))
    assert found.by_value
    assert [(part.low, part.judge, part.n, part.people.value) for part in found.bins] == [(1, 1, 2, 1.5), (5, 5, 3, 4)]


def test_many_values_are_cut_into_ten_bins_of_about_equal_counts() -> None:
    judge = np.random.default_rng(1).permutation(200) / 10.0
    found = score_calibration(judge, 2 * judge, np.arange(200))
    assert not found.by_value
    assert [part.n for part in found.bins] == [20] * 10
    assert (found.bins[0].low, found.bins[0].high) == (0.0, 1.9)
    assert found.bins[0].people.value == pytest.approx(2 * 0.95)
    assert found.bins[0].people.ci95 is not None


def test_equal_scores_share_a_bin() -> None:
    values = np.concatenate([np.zeros(90), np.arange(12.0)])
    assert len(np.unique(quantile_bins(values)[:90])) == 1


def test_large_differences_are_a_quarter_of_the_range_or_more() -> None:
    judge, people = np.array([5.0, 4, 3, GAP]), np.array([4.0, 3.5, 1, 1])
    found = large_differences(judge, people, np.arange(4), 4.0)
    assert (found.threshold, found.share.n, found.share.value) == pytest.approx((1.0, 3, 2 / 3))


def test_a_difference_in_decimals_reaches_its_threshold() -> None:
    # .8 − .55 is .25 less a rounding error.
    found = large_differences(np.array([0.8]), np.array([0.55]), np.arange(1), 1.0)
    assert found.share.value == 1


def test_a_scale_without_a_range_has_no_large_difference() -> None:
    found = large_differences(np.ones(3), np.ones(3), np.arange(3), 0.0)
    assert (found.share.value, found.share.why) == (None, ONE_SCORE)


def test_the_largest_differences_come_first_in_either_direction() -> None:
    judge, people = np.array([5.0, 1, 3, GAP, 2]), np.array([4.0, 5, 3, 1, 4])
    assert largest_differences(judge, people, 1.0, 20).tolist() == [1, 4, 0]
    assert largest_differences(judge, people, 1.0, 2).tolist() == [1, 4]
