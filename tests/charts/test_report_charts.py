"""What of a report becomes a plot."""

from evaluations.charts.chart import build_slugs
from evaluations.charts.report_charts import (
    DIFFERENCE_QUANTITY,
    iterate_confidence_charts,
    iterate_tendency_estimates,
    iterate_timeline_charts,
)
from evaluations.charts.themes import PAGE_THEME
from evaluations.stats.agreement_timeline import Timeline, TimelinePoint
from evaluations.stats.bias.tendency import BiasTendency, unknown_tendency
from evaluations.stats.confidence_calibration import undefined_calibration
from evaluations.stats.estimates import Estimate, JudgeVersusPeople


def point(day: str) -> TimelinePoint:
    return TimelinePoint(day, day, 12, Estimate(0.7, 12), {"gpt": Estimate(0.6, 12)}, None)


def test_one_period_is_no_course_and_two_are() -> None:
    assert not list(iterate_timeline_charts(Timeline("day", (point("2026-11-01"),)), "Clarity", PAGE_THEME))
    (plot,) = iterate_timeline_charts(
        Timeline("day", (point("2026-11-01"), point("2026-11-02"))), "Clarity", PAGE_THEME
    )
    assert [row[:3] for row in plot.table.rows][:2] == [
        ("2026-11-01", "2026-11-01", "reviewers"),
        ("2026-11-01", "2026-11-01", "gpt"),
    ]


def test_a_judge_beside_people_is_over_the_same_comparisons_as_they_are() -> None:
    both = JudgeVersusPeople(Estimate(0.6, 20), Estimate(0.5, 20), Estimate(0.1, 20))
    of = BiasTendency(Estimate(0.7, 900), both, both)
    assert [(one.series, one.value, one.n) for one in iterate_tendency_estimates("Longer", of)] == [
        ("judge", 0.6, 20),
        ("reviewers", 0.5, 20),
    ]
    alone = BiasTendency(
        Estimate(0.7, 900), unknown_tendency("Nobody voted.").votes, unknown_tendency("Nobody voted.").votes
    )
    assert [(one.series, one.value) for one in iterate_tendency_estimates("Longer", alone)] == [
        ("judge", 0.7),
        ("reviewers", None),
    ]


def test_what_lies_between_two_judges_is_said_in_points() -> None:
    assert DIFFERENCE_QUANTITY.name.endswith(", points")
    assert [DIFFERENCE_QUANTITY.format_value(value) for value in (0.042, -0.006, 0.0, None)] == [
        "+4.2",
        "−0.6",
        "+0.0",
        "n/a",
    ]


def test_a_judge_without_probabilities_has_no_calibration_plot() -> None:
    assert not list(iterate_confidence_charts({"gpt": undefined_calibration("It gave none.")}, "Clarity", PAGE_THEME))


def test_names_of_judges_in_addresses_are_plain_and_never_the_same() -> None:
    found = build_slugs(["GPT 5 (large)", "gpt-5-large", "李雷"])
    assert list(found.values()) == ["1-gpt-5-large", "2-gpt-5-large", "3"]
