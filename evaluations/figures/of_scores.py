"""The plot of scores: how far judges and people put responses in the same order, and give them the same score."""

from collections.abc import Iterator

from evaluations.figures.estimates import Estimate, estimate_of
from evaluations.figures.media import PEOPLE, Medium
from evaluations.figures.plots import Caption, Plot
from evaluations.figures.quantities import coefficient
from evaluations.figures.rows import in_rows
from evaluations.stats.score_agreement import ScoreAgreement
from evaluations.stats.scores import ScoresReport

RULE = "Each judge against the mean of people’s scores; each person against the mean of the other people’s."


def score_plots(report: ScoresReport, aspect: str, medium: Medium) -> list[Plot]:
    estimates = list(of_measures(PEOPLE, report.human_human.others))
    for name, judge in report.judges.items():
        estimates += of_measures(name, judge.people)
    caption = Caption("scores-agreement", f"Agreement of scores on {aspect}", RULE)
    estimates.sort(key=lambda one: MEASURES.index(one.label))
    return [in_rows(caption, estimates, coefficient("Coefficient"), medium, row_name="Measure")]


MEASURES = ("Pearson", "Spearman", "Kendall’s tau-b", "ICC (agreement)", "Krippendorff’s alpha (interval)")


def of_measures(series: str, found: ScoreAgreement) -> Iterator[Estimate]:
    numbers = (found.pearson, found.spearman, found.kendall_tau_b, found.icc_agreement, found.krippendorff_alpha)
    for label, number in zip(MEASURES, numbers, strict=True):
        yield estimate_of(label, series, number)
