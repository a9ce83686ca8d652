"""Numbers as plots take them."""

import math

import pytest

from evaluations.charts.estimates import PlottedEstimate, Ranked, build_estimate
from evaluations.stats.estimates import Estimate, undefined_estimate


def test_a_number_of_the_report_keeps_its_interval_and_its_n() -> None:
    number = Estimate(0.7, 40).with_interval(0.6, 0.8, "by cluster")
    assert build_estimate("factuality", "people", number) == PlottedEstimate("factuality", "people", 0.7, 0.6, 0.8, 40)


def test_what_is_missing_keeps_its_reason() -> None:
    assert build_estimate("x", "y", undefined_estimate("Nobody voted.")) == PlottedEstimate(
        "x", "y", None, note="Nobody voted."
    )
    without = build_estimate("x", "y", Estimate(0.7, 3).without_interval("Too few clusters."))
    assert (without.value, without.has_interval, without.note) == (0.7, False, "Too few clusters.")


@pytest.mark.parametrize("wrong", [math.nan, math.inf])
def test_a_number_that_is_none_is_refused(wrong: float) -> None:
    with pytest.raises(ValueError, match="what is undefined is None"):
        PlottedEstimate("x", "y", 0.5, wrong, 0.6)


def test_a_rank_is_said_with_the_ranks_that_are_possible() -> None:
    nothing = PlottedEstimate("x", "", None)
    assert Ranked(nothing, 2, 1, 3).ranks == "2 (1–3)"
    assert Ranked(nothing, 2, 2, 2).ranks == "2"
    assert Ranked(nothing, 2).ranks == "2"
    assert Ranked(nothing).ranks == ""
