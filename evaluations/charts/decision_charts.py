"""The chart of decisions: agreement of judges and reviewers by aspect, with the outcomes in its table."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from evaluations.charts.chart import Caption, Chart, ChartTable, TableCell
from evaluations.charts.estimates import PlottedEstimate, build_estimate, make_share_quantity
from evaluations.charts.forest_charts import build_forest_chart
from evaluations.charts.themes import PEOPLE_SERIES, Theme
from evaluations.stats.decisions.results import AgreementLevels, Decision
from evaluations.stats.estimates import Estimate

RULE: Final = "Half credits: equal 1, a tie with a side ½, opposite 0. Comparisons with two reviews or more."
ALL_ASPECTS: Final = "all aspects"
NUMBERS: Final = ("judge", "reviewers", "constant", "difference")
COLUMNS: Final = (
    *("judge_name", "aspect", "outcome", "n"),
    *(f"{name}{end}" for name in NUMBERS for end in ("", "_low", "_high")),
)
HEADINGS: Final = (
    *("Judge", "Aspect", "Result", "n"),
    *("Judge agreement", "Reviewer agreement", "Best constant answer", "Difference, points"),
)


def build_decision_chart(decisions: Mapping[str, Decision], theme: Theme) -> Chart:
    """A row for each judge and aspect, and in the table one more for the decision itself."""
    caption = Caption("decisions-judges", "Agreement with a reviewer, by judge and aspect", RULE)
    estimates = [estimate for decision in decisions.values() for estimate in iterate_levels(decision)]
    chart = build_forest_chart(caption, estimates, make_share_quantity("Agreement"), theme, row_name="Aspect")
    rows = [row for decision in decisions.values() for row in iterate_rows(decision)]
    cells = tuple((judge, aspect, outcome, n, *spread_levels(levels)) for judge, aspect, outcome, n, levels in rows)
    texts = tuple(
        (judge, aspect, outcome, f"{n:,}", *format_levels(levels)) for judge, aspect, outcome, n, levels in rows
    )
    return replace(chart, table=ChartTable(COLUMNS, cells, HEADINGS, texts))


def iterate_levels(decision: Decision) -> Iterator[PlottedEstimate]:
    for aspect in decision.aspects.values():
        label = f"{aspect.name}, {decision.judge}"
        yield build_estimate(label, "judge", aspect.levels.judge)
        yield build_estimate(label, PEOPLE_SERIES, aspect.levels.reviewers)


Row = tuple[str, str, str, int, AgreementLevels]


def iterate_rows(decision: Decision) -> Iterator[Row]:
    yield decision.judge, ALL_ASPECTS, decision.outcome.value, decision.n, decision.levels
    for aspect in decision.aspects.values():
        yield decision.judge, aspect.name, aspect.outcome.value, aspect.n, aspect.levels


def list_numbers(levels: AgreementLevels) -> tuple[Estimate, ...]:
    return levels.judge, levels.reviewers, levels.constant, levels.difference


def spread_levels(levels: AgreementLevels) -> Iterator[TableCell]:
    for number in list_numbers(levels):
        yield number.value
        yield from number.ci95 or (None, None)


def format_levels(levels: AgreementLevels) -> Iterator[str]:
    *shares, difference = (number.value for number in list_numbers(levels))
    yield from ("n/a" if share is None else f"{share:.0%}" for share in shares)
    points = 0 if difference is None else round(100 * difference)
    yield "n/a" if difference is None else f"{points:+d}".replace("-", "−") if points else "0"
