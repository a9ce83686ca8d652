"""Which plots each part of a report has."""

from collections.abc import Sequence
from typing import Final

from evaluations.domain import Part
from evaluations.figures.comparing import by_aspect
from evaluations.figures.estimates import Estimate, estimate_of
from evaluations.figures.media import PAGE, PEOPLE, Medium
from evaluations.figures.of_bias import bias_plots
from evaluations.figures.of_judges import confidence_plots, differences
from evaluations.figures.of_people import people_plots
from evaluations.figures.of_scores import score_plots
from evaluations.figures.of_wins import win_plots
from evaluations.figures.plots import Caption, Plot
from evaluations.figures.quantities import share
from evaluations.stats.ceiling import Level
from evaluations.stats.numbers import Number
from evaluations.stats.whole import Report

SAME: Final = (
    "Each person is left out in turn: that person and the judge are measured against the majority of the remaining "
    "people, on the same comparisons, ties kept."
)
ALONE: Final = "With the majority of people, ties kept."
EACH_PERSON: Final = "Each person with the majority of the others, ties kept."


def plots_of(report: Report, part: Part, aspect: str, medium: Medium = PAGE) -> list[Plot]:
    """``aspect``: the key of the one that is looked at. Parts whose plots show all aspects at once pass it by."""
    name = report.names.get(aspect, aspect)
    match part:
        case Part.AGREEMENT:
            return [agreement_by_aspect(report, medium)] if report.aspects else []
        case Part.BIAS:
            return bias_plots(report.bias[aspect], name, medium) if report.bias.get(aspect) else []
        case Part.WINS:
            return win_plots(report.wins[aspect], name, medium) if aspect in report.wins else []
        case Part.PEOPLE:
            return people_plots(report.people[aspect], name, medium) if aspect in report.people else []
        case Part.JUDGES:
            return of_judges(report, aspect, name, medium)
        case Part.SCORES:
            return score_plots(report.scores[aspect], name, medium) if aspect in report.scores else []


def of_judges(report: Report, aspect: str, name: str, medium: Medium) -> list[Plot]:
    compared = [differences(report.compared_judges, report.names, medium)] if report.compared_judges else []
    return [*compared, *confidence_plots(report.confidence.get(aspect, {}), name, medium)]


def agreement_by_aspect(report: Report, medium: Medium) -> Plot:
    """Judges beside people against the same majorities; judges or people alone where none can be compared so."""
    levels = [
        (one.name, name, judge.ceiling.s1) for one in report.aspects.values() for name, judge in one.answering.items()
    ]
    if any(level.n for _, _, level in levels):
        rule, estimates = SAME, compared(levels)
    elif levels:
        rule, estimates = (
            ALONE,
            [
                estimate_of(one.name, name, judge.judge_human.majority.with_ties.agreement)
                for one in report.aspects.values()
                for name, judge in one.answering.items()
            ],
        )
    else:
        rule, estimates = (
            EACH_PERSON,
            [
                estimate_of(one.name, PEOPLE, one.human_human.majority.with_ties.agreement)
                for one in report.aspects.values()
            ],
        )
    caption = Caption("agreement-aspects", "Agreement by aspect", rule)
    return by_aspect(caption, estimates, share("Agreement"), medium)


def compared(levels: Sequence[tuple[str, str, Level]]) -> list[Estimate]:
    """People once on each aspect, or once for each judge where judges have verdicts on different comparisons."""
    of_aspect: dict[str, set[Number]] = {}
    for aspect, _, level in levels:
        of_aspect.setdefault(aspect, set()).add(level.people)
    are_shared = all(len(people) == 1 for people in of_aspect.values())
    estimates: list[Estimate] = []
    for aspect, name, level in levels:
        series = PEOPLE if are_shared else f"{PEOPLE}, where {name} judged"
        people = estimate_of(aspect, series, level.people)
        estimates += [*([] if people in estimates else [people]), estimate_of(aspect, name, level.judge)]
    return estimates
