"""The reliability diagram."""

import pytest

from evaluations.charts.chart import Caption
from evaluations.charts.line_charts import build_calibration_chart
from tests.helpers.chart_samples import make_binned


def test_both_axes_reach_equally_far_and_the_line_between_their_ends_is_where_confidence_is_kept() -> None:
    plot = build_calibration_chart(Caption("calibration", "Calibration"), make_binned())
    assert plot.spec is not None
    line, marks = plot.spec["layer"]
    across = marks["encoding"]["x"]["scale"]["domain"]
    along = marks["layer"][0]["encoding"]["y"]["scale"]["domain"]
    # Intervals from .40 to .80, confidence from .55 to .85: .45 in steps of .1.
    assert across == along == [0.4, 0.9]
    assert line["data"]["values"] == [{"x": 0.4, "y": 0.4}, {"x": 0.9, "y": 0.9}]


def test_judges_that_are_equally_sure_stand_a_little_apart_and_say_the_same() -> None:
    plot = build_calibration_chart(Caption("calibration", "Calibration"), make_binned())
    assert plot.spec is not None
    gpt, claude = plot.spec["data"]["values"][:2]
    assert gpt["confidence"] == claude["confidence"] == "55.0%"
    # 1.2 % of an axis of .5.
    assert claude["drawn_at"] - gpt["drawn_at"] == pytest.approx(0.006)
    assert (claude["drawn_at"] + gpt["drawn_at"]) / 2 == pytest.approx(0.55)
