"""Which plots each part of a report has."""

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
from evaluations.stats.whole import Report

MAJORITY: Final = (
    "With the majority of people, ties kept. “people” is each person with the majority of the others. A judge and "
    "“people” are held against different majorities here; the table on the page compares them on the same ones."
)


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
    estimates: list[Estimate] = []
    for one in report.aspects.values():
        estimates.append(estimate_of(one.name, PEOPLE, one.human_human.majority.with_ties.agreement))
        for name, judge in one.judges.items():
            estimates.append(estimate_of(one.name, name, judge.judge_human.majority.with_ties.agreement))
    caption = Caption("agreement-aspects", "Agreement by aspect", MAJORITY)
    return by_aspect(caption, estimates, share("Agreement"), medium)
