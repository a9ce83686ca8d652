"""What of a report becomes a plot."""

from evaluations.figures.media import PAGE
from evaluations.figures.of_bias import beside
from evaluations.figures.of_judges import DIFFERENCE, confidence_plots
from evaluations.figures.of_people import timeline_plots
from evaluations.figures.wording import names_of
from evaluations.stats.bias.shares import Beside
from evaluations.stats.bias.tendency import Tendency, unknown
from evaluations.stats.confidence import nothing
from evaluations.stats.numbers import Number
from evaluations.stats.timeline import Timeline, TimelinePoint


def point(day: str) -> TimelinePoint:
    return TimelinePoint(day, day, 12, Number(0.7, 12), {"gpt": Number(0.6, 12)}, None)


def test_one_period_is_no_course_and_two_are() -> None:
    assert not list(timeline_plots(Timeline("day", (point("2026-11-01"),)), "Clarity", PAGE))
    (plot,) = timeline_plots(Timeline("day", (point("2026-11-01"), point("2026-11-02"))), "Clarity", PAGE)
    assert [row[:3] for row in plot.table.rows][:2] == [
        ("2026-11-01", "2026-11-01", "people"),
        ("2026-11-01", "2026-11-01", "gpt"),
    ]


def test_a_judge_beside_people_is_over_the_same_comparisons_as_they_are() -> None:
    both = Beside(Number(0.6, 20), Number(0.5, 20), Number(0.1, 20))
    of = Tendency(Number(0.7, 900), both, both)
    assert [(one.series, one.value, one.n) for one in beside("Longer", of)] == [("judge", 0.6, 20), ("people", 0.5, 20)]
    alone = Tendency(Number(0.7, 900), unknown("Nobody voted.").votes, unknown("Nobody voted.").votes)
    assert [(one.series, one.value) for one in beside("Longer", alone)] == [("judge", 0.7), ("people", None)]


def test_what_lies_between_two_judges_is_said_in_points() -> None:
    assert DIFFERENCE.name.endswith(", points")
    assert [DIFFERENCE.said(value) for value in (0.042, -0.006, 0.0, None)] == ["+4.2", "−0.6", "+0.0", "n/a"]


def test_a_judge_without_probabilities_has_no_calibration_plot() -> None:
    assert not list(confidence_plots({"gpt": nothing("It gave none.")}, "Clarity", PAGE))


def test_names_of_judges_in_addresses_are_plain_and_never_the_same() -> None:
    found = names_of(["GPT 5 (large)", "gpt-5-large", "李雷"])
    assert list(found.values()) == ["1-gpt-5-large", "2-gpt-5-large", "3"]
