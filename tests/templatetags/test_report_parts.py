"""Words and places for the parts of a report beside agreement."""

import pytest

from evaluations.stats.estimates import Estimate, undefined_estimate
from evaluations.templatetags.report_parts import around_half, mirrored, p_value

HALF = Estimate(0.706, 40).with_interval(0.664, 0.758, "t over 1,040 clusters")


def test_the_other_one_of_two_has_the_rest() -> None:
    # 1 − .706 = .294, between 1 − .758 = .242 and 1 − .664 = .336.
    other = mirrored(HALF)
    assert other.value == pytest.approx(0.294)
    assert other.ci95 == pytest.approx((0.242, 0.336))
    assert mirrored(undefined_estimate("Never met.")).value is None


def test_small_p_values_are_not_nought() -> None:
    assert [p_value(p) for p in (None, 0.0, 0.0009, 0.03, 1.0)] == ["n/a", "< 0.001", "< 0.001", "0.030", "1.000"]


@pytest.mark.parametrize(
    ("numbers", "low", "high"),
    [
        ([HALF], 0.2, 0.8),  # .758 is .258 from a half
        ([Estimate(0.3, 9)], 0.3, 0.7),
        ([Estimate(0.5, 9)], 0.4, 0.6),
        ([Estimate(0.99, 9)], 0.0, 1.0),
        ([undefined_estimate("Nobody.")], 0.0, 1.0),
    ],
)
def test_a_scale_reaches_equally_far_either_way_from_a_half(numbers: list[Estimate], low: float, high: float) -> None:
    found = around_half(numbers)
    assert found.low == pytest.approx(low)
    assert found.high == pytest.approx(high)
