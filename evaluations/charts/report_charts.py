"""The charts of each part of a report."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import Final

from evaluations.charts.chart import Caption, Chart, build_slugs
from evaluations.charts.decision_charts import build_decision_chart
from evaluations.charts.estimates import (
    Binned,
    Dated,
    PlottedEstimate,
    Quantity,
    Ranked,
    build_estimate,
    make_share_quantity,
)
from evaluations.charts.forest_charts import (
    build_forest_chart,
    build_preference_chart,
    build_ranked,
    build_ranking_chart,
    build_win_rate_chart,
)
from evaluations.charts.line_charts import SCORE_AXES, build_calibration_chart, build_timeline_chart
from evaluations.charts.themes import PAGE_THEME, PEOPLE_SERIES, Theme
from evaluations.domain.reports import ReportPart
from evaluations.stats.agreement_timeline import Timeline, TimelinePoint
from evaluations.stats.bias.board import BiasBoard
from evaluations.stats.bias.tendency import BiasTendency
from evaluations.stats.confidence_calibration import ConfidenceCalibration
from evaluations.stats.corrected_means import CandidateDifference, CandidateMean
from evaluations.stats.estimates import Estimate
from evaluations.stats.full_report import Report
from evaluations.stats.human_ceiling import CeilingLevel
from evaluations.stats.judge_comparison import ComparedJudges
from evaluations.stats.pass_rates import PassRates
from evaluations.stats.report_parts import AspectPeople
from evaluations.stats.reviewers import ReviewerStatistics
from evaluations.stats.score_agreement import ScoreAgreement
from evaluations.stats.score_report import ScoreReport
from evaluations.stats.win_rates import WinRates
from evaluations.stats.wins import JudgeWins, Wins

JUDGE_SERIES = "judge"
MARKUP_NAMES = {"any": "any Markdown", "emphasis": "bold or italics"}

BIAS_RULE = (
    "Without ties. Reviewers are their majority. With reviewers, the judge is shown over the same comparisons, else "
    "over all. No reviewer reads a comparison in both orders, so reviewers have no value for the order."
)


def build_bias_charts(boards: Mapping[str, BiasBoard], aspect: str, theme: Theme) -> list[Chart]:
    estimates = [estimate for name, board in boards.items() for estimate in iterate_bias_estimates(name, board)]
    caption = Caption("bias-preferences", f"How often each is chosen, on {aspect}", BIAS_RULE)
    return [build_preference_chart(caption, [estimate for estimate in estimates if estimate.n], theme)]


def iterate_bias_estimates(judge: str, board: BiasBoard) -> Iterator[PlottedEstimate]:
    yield build_estimate(f"First shown, {judge}", JUDGE_SERIES, board.position.first_shown)
    yield from iterate_tendency_estimates(f"Longer, {judge}", board.length.longer)
    for kind, tendency in board.markup.items():
        yield from iterate_tendency_estimates(f"With {MARKUP_NAMES.get(kind, kind)}, {judge}", tendency)
    yield from iterate_tendency_estimates(f"Own family, {judge}", board.same_family)


def iterate_tendency_estimates(label: str, tendency: BiasTendency) -> Iterator[PlottedEstimate]:
    both = tendency.majority.people.n > 0
    yield build_estimate(label, JUDGE_SERIES, tendency.majority.judge if both else tendency.judge)
    yield build_estimate(label, PEOPLE_SERIES, tendency.majority.people)


# In points, because a percentage would be read as relative to one of the two shares.
DIFFERENCE_QUANTITY: Final = Quantity("Difference in agreement, points", (-1.0, 1.0), is_in_points=True)

SAME_ITEMS_RULE = "With the reviewer majority, excluding splits, on comparisons with verdicts of both judges."

WEIGHTS_RULE = (
    "The judge's weight on A, from its label probabilities, vs. how often reviewers chose A; a tie counts as half. On "
    "the dashed line both are equal."
)


def build_difference_chart(compared: Sequence[ComparedJudges], names: Mapping[str, str], theme: Theme) -> Chart:
    """``names``: of aspects by key."""
    estimates = [
        build_estimate(names.get(key, key), f"{two.first} − {two.second}", compared_aspect.comparison.difference)
        for two in compared
        for key, compared_aspect in two.aspects.items()
    ]
    caption = Caption("judges-differences", "Which judge agrees more with reviewers", SAME_ITEMS_RULE)
    return build_forest_chart(caption, estimates, DIFFERENCE_QUANTITY, theme, row_name="Aspect", neutral=0.0)


def iterate_confidence_charts(
    calibrations: Mapping[str, ConfidenceCalibration], aspect: str, theme: Theme
) -> Iterator[Chart]:
    binned = [
        Binned(
            part.mean_weight or 0.0, build_estimate(f"{part.low:.0%} to {part.high:.0%}", name, part.chosen_by_people)
        )
        for name, judge in calibrations.items()
        for part in judge.bins
        if part.n
    ]
    if binned:
        caption = Caption("judges-confidence", f"Calibration on {aspect}", WEIGHTS_RULE)
        yield build_calibration_chart(caption, binned, theme)


OTHERS_RULE = "“reviewers” is agreement with the majority of the other reviewers on the same comparison."

VOTES_RULE = (
    "Votes are dated by their first choice. “reviewers” is how often another vote on the same comparison agrees."
)


def build_people_charts(people: AspectPeople, aspect: str, theme: Theme) -> list[Chart]:
    if not people.reviewers:
        return []
    caption = Caption("people-reviewers", f"Agreement of each reviewer on {aspect}", OTHERS_RULE)
    estimates = list(iterate_reviewer_estimates(people.reviewers))
    chart = build_forest_chart(caption, estimates, make_share_quantity("Agreement"), theme, row_name="Reviewer")
    return [chart, *iterate_timeline_charts(people.timeline, aspect, theme)]


def iterate_reviewer_estimates(reviewers: Sequence[ReviewerStatistics]) -> Iterator[PlottedEstimate]:
    for reviewer in reviewers:
        yield build_estimate(reviewer.rater, PEOPLE_SERIES, reviewer.others)
        for judge, number in reviewer.judges.items():
            yield build_estimate(reviewer.rater, judge, number)


def iterate_timeline_charts(timeline: Timeline, aspect: str, theme: Theme) -> Iterator[Chart]:
    if timeline.bucket and len(timeline.points) > 1:  # one period is no course
        caption = Caption("people-time", f"Agreement over time on {aspect}, by {timeline.bucket}", VOTES_RULE)
        yield build_timeline_chart(
            caption, [dated for point in timeline.points for dated in iterate_point_estimates(point)], theme
        )


def iterate_point_estimates(point: TimelinePoint) -> Iterator[Dated]:
    day = date.fromisoformat(point.start)
    label = point.start if point.start == point.end else f"{point.start} to {point.end}"
    yield Dated(day, build_estimate(label, PEOPLE_SERIES, point.people))
    for judge, number in point.judges.items():
        yield Dated(day, build_estimate(label, judge, number))


SCORES_RULE = "Each judge vs. the mean of the reviewers’ scores; each reviewer vs. the mean of the other reviewers."


SCORE_RULE: Final = (
    "Corrected means combine the judge’s scores of all responses with reviewers’ scores of some (PPI++)."
)
SCORE_DIFFERENCE_RULE: Final = "First minus second. Above 0, the first model is rated higher."
SCORE_CALIBRATION_RULE: Final = "On the dashed line, reviewers give the score that the judge gives."
MEAN_SCORE: Final = Quantity("Mean score")
PASS_RATE: Final = make_share_quantity("Pass rate")
SCORE_DIFFERENCE: Final = Quantity("Difference in mean score")
PASS_DIFFERENCE: Final = Quantity("Difference in pass rate, points", (-1.0, 1.0), is_in_points=True)


def build_score_charts(report: ScoreReport, aspect: str, theme: Theme) -> list[Chart]:
    return [
        *iterate_mean_score_charts(report, aspect, theme),
        *iterate_score_calibration_charts(report, aspect, theme),
        build_score_agreement_chart(report, aspect, theme),
    ]


def iterate_mean_score_charts(report: ScoreReport, aspect: str, theme: Theme) -> Iterator[Chart]:
    """Pass rates and mean scores of candidates, and their differences."""
    rates, rule = report.pass_rates, SCORE_RULE if report.judges else ""
    if rates is not None:
        caption = Caption("scores-passes", f"Pass rates on {aspect}", rule)
        yield build_forest_chart(caption, list(iterate_pass_estimates(rates)), PASS_RATE, theme, row_name="Model")
        yield from iterate_score_difference_charts("passes", rates.differences, PASS_DIFFERENCE, aspect, theme)
    if report.candidates:
        caption = Caption("scores-means", f"Mean scores on {aspect}", rule)
        estimates = list(iterate_mean_estimates(report.candidates))
        yield build_forest_chart(caption, estimates, MEAN_SCORE, theme, row_name="Model")
    yield from iterate_score_difference_charts("means", report.differences, SCORE_DIFFERENCE, aspect, theme)


def iterate_score_difference_charts(
    name: str, differences: Sequence[CandidateDifference], quantity: Quantity, aspect: str, theme: Theme
) -> Iterator[Chart]:
    if differences:
        caption = Caption(f"scores-{name}-differences", f"{quantity.name} on {aspect}", SCORE_DIFFERENCE_RULE)
        estimates = [estimate for one in differences for estimate in iterate_difference_estimates(one)]
        yield build_forest_chart(caption, estimates, quantity, theme, row_name="Models", neutral=0.0)


def iterate_mean_estimates(candidates: Mapping[str, CandidateMean]) -> Iterator[PlottedEstimate]:
    for name, candidate in candidates.items():
        yield build_estimate(name, PEOPLE_SERIES, candidate.people)
        for judge, mean in candidate.judges.items():
            yield build_estimate(name, judge, mean)
            yield build_estimate(name, f"{judge}, corrected", candidate.corrected[judge].corrected)


def iterate_pass_estimates(rates: PassRates) -> Iterator[PlottedEstimate]:
    for name, candidate in rates.candidates.items():
        yield build_estimate(name, PEOPLE_SERIES, candidate.people)
        for judge, rate in candidate.judges.items():
            yield build_estimate(name, judge, rate.judge)
            yield build_estimate(name, f"{judge}, corrected", rate.corrected.corrected)


def iterate_difference_estimates(difference: CandidateDifference) -> Iterator[PlottedEstimate]:
    label = f"{difference.first} − {difference.second}"
    yield build_estimate(label, PEOPLE_SERIES, difference.people)
    for judge, found in difference.judges.items():
        yield build_estimate(label, judge, found.judge)
        yield build_estimate(label, f"{judge}, corrected", found.corrected)


def iterate_score_calibration_charts(report: ScoreReport, aspect: str, theme: Theme) -> Iterator[Chart]:
    binned = [
        Binned(part.judge, build_estimate(format_score_range(part.low, part.high), name, part.people))
        for name, judge in report.judges.items()
        for part in judge.calibration.bins
    ]
    if binned:
        caption = Caption("scores-calibration", f"Calibration of scores on {aspect}", SCORE_CALIBRATION_RULE)
        yield build_calibration_chart(caption, binned, theme, SCORE_AXES)


def format_score_range(low: float, high: float) -> str:
    return f"{low:g}" if low == high else f"{low:g} to {high:g}"


def build_score_agreement_chart(report: ScoreReport, aspect: str, theme: Theme) -> Chart:
    estimates = list(iterate_score_estimates(PEOPLE_SERIES, report.human_human.others))
    for name, judge in report.judges.items():
        estimates += iterate_score_estimates(name, judge.people)
    caption = Caption("scores-agreement", f"Agreement of scores on {aspect}", SCORES_RULE)
    estimates.sort(key=lambda estimate: list(SCORE_MEASURES).index(estimate.label))
    return build_forest_chart(caption, estimates, Quantity("Coefficient", (-1.0, 1.0)), theme, row_name="Measure")


SCORE_MEASURES: Final = {
    "Pearson": "pearson",
    "Spearman": "spearman",
    "Kendall’s tau-b": "kendall_tau_b",
    "ICC (agreement)": "icc_agreement",
    "Krippendorff’s alpha (interval)": "krippendorff_alpha",
}


def iterate_score_estimates(series: str, agreement: ScoreAgreement) -> Iterator[PlottedEstimate]:
    for label, name in SCORE_MEASURES.items():
        yield build_estimate(label, series, getattr(agreement, name))


JUDGE_ALONE = "judge alone"
JUDGE_CORRECTED = "judge corrected by reviewers"
TIES_RULE = "A tie counts as half a win."
RANKING_RULE = "Bradley–Terry; a tie counts as half a win each."


def build_win_charts(wins: Wins, aspect: str, theme: Theme) -> list[Chart]:
    if not wins.judges:
        return list(iterate_people_win_charts(wins, aspect, theme))
    names = build_slugs(wins.judges)
    return [
        chart
        for judge, of_judge in wins.judges.items()
        for chart in iterate_judge_win_charts(wins, of_judge, judge, names, aspect, theme)
    ]


def iterate_judge_win_charts(
    wins: Wins, of_judge: JudgeWins, judge: str, names: dict[str, str], aspect: str, theme: Theme
) -> Iterator[Chart]:
    rates = Caption(f"wins-rates-{names[judge]}", f"Win rates on {aspect}: reviewers and {judge}", TIES_RULE)
    yield build_win_rate_chart(rates, list(iterate_win_estimates(of_judge.rates)), theme)
    scores = Caption(f"wins-ranking-{names[judge]}", f"Ranking on {aspect}: reviewers and {judge}", RANKING_RULE)
    if standings := list(iterate_standings(wins, of_judge)):
        yield build_ranking_chart(scores, standings, theme)


def iterate_win_estimates(rates: WinRates) -> Iterator[PlottedEstimate]:
    for candidate, rate in rates.candidates.items():
        yield build_estimate(candidate, PEOPLE_SERIES, rate.people)
        yield build_estimate(candidate, JUDGE_ALONE, rate.judge)
        yield build_estimate(candidate, JUDGE_CORRECTED, rate.corrected)


def iterate_standings(wins: Wins, of_judge: JudgeWins) -> Iterator[Ranked]:
    sources = {PEOPLE_SERIES: wins.ranking, JUDGE_ALONE: of_judge.ranking, JUDGE_CORRECTED: of_judge.corrected_ranking}
    for source, ranking in sources.items():
        for candidate, standing in ranking.standings.items():
            yield build_ranked(candidate, source, standing)


def iterate_people_win_charts(wins: Wins, aspect: str, theme: Theme) -> Iterator[Chart]:
    estimates = [build_estimate(candidate, PEOPLE_SERIES, rate) for candidate, rate in wins.people.items()]
    rates = Caption("wins-rates", f"Win rates on {aspect}, by reviewers", TIES_RULE)
    yield build_win_rate_chart(rates, estimates, theme)
    if ranked := [build_ranked(name, PEOPLE_SERIES, standing) for name, standing in wins.ranking.standings.items()]:
        scores = Caption("wins-ranking", f"Ranking on {aspect}, by reviewers", RANKING_RULE)
        yield build_ranking_chart(scores, ranked, theme)


CEILING_RULE: Final = (
    "Leave-one-out: each reviewer and the judge are compared with the majority of the other reviewers on the same "
    "comparisons, with ties."
)

ALONE_RULE: Final = "With the reviewer majority, with ties."
EACH_PERSON_RULE: Final = "Each reviewer with the majority of the others, with ties."


def build_report_charts(report: Report, part: ReportPart, aspect: str, theme: Theme = PAGE_THEME) -> list[Chart]:
    """``aspect``: the key of the one that is looked at. Parts whose plots show all aspects at once pass it by."""
    name = report.names.get(aspect, aspect)
    match part:
        case ReportPart.DECISIONS:
            return [build_decision_chart(report.decisions, theme)] if report.decisions else []
        case ReportPart.METHODOLOGY:
            return []
        case ReportPart.AGREEMENT:
            return [build_agreement_chart(report, theme)] if report.aspects else []
        case ReportPart.BIAS:
            return build_bias_charts(report.bias[aspect], name, theme) if report.bias.get(aspect) else []
        case ReportPart.WINS:
            return build_win_charts(report.wins[aspect], name, theme) if aspect in report.wins else []
        case ReportPart.PEOPLE:
            return build_people_charts(report.people[aspect], name, theme) if aspect in report.people else []
        case ReportPart.JUDGES:
            return build_judge_charts(report, aspect, name, theme)
        case ReportPart.SCORES:
            return build_score_charts(report.scores[aspect], name, theme) if aspect in report.scores else []


def build_judge_charts(report: Report, aspect: str, name: str, theme: Theme) -> list[Chart]:
    compared = [build_difference_chart(report.compared_judges, report.names, theme)] if report.compared_judges else []
    return [*compared, *iterate_confidence_charts(report.confidence.get(aspect, {}), name, theme)]


def build_agreement_chart(report: Report, theme: Theme) -> Chart:
    """Judges and people compared with the same majorities; judges or people alone if there are none."""
    judged = [
        (aspect.name, name, judge) for aspect in report.aspects.values() for name, judge in aspect.answering.items()
    ]
    levels = [(aspect, name, judge.ceiling.s1) for aspect, name, judge in judged]
    rule, estimates = CEILING_RULE, build_ceiling_estimates(levels)
    if not judged:
        rule = EACH_PERSON_RULE
        estimates = [
            build_estimate(aspect.name, PEOPLE_SERIES, aspect.human_human.majority.with_ties.agreement)
            for aspect in report.aspects.values()
        ]
    elif not any(level.n for _, _, level in levels):
        rule = ALONE_RULE
        estimates = [
            build_estimate(aspect, name, judge.judge_human.majority.with_ties.agreement)
            for aspect, name, judge in judged
        ]
    caption = Caption("agreement-aspects", "Agreement by aspect", rule)
    return build_forest_chart(caption, estimates, make_share_quantity("Agreement"), theme, row_name="Aspect")


def build_ceiling_estimates(levels: Sequence[tuple[str, str, CeilingLevel]]) -> list[PlottedEstimate]:
    """People once on each aspect, or once for each judge where judges have verdicts on different comparisons."""
    of_aspect: dict[str, set[Estimate]] = {}
    for aspect, _, level in levels:
        of_aspect.setdefault(aspect, set()).add(level.people)
    are_shared = all(len(people) == 1 for people in of_aspect.values())
    estimates: list[PlottedEstimate] = []
    for aspect, name, level in levels:
        series = PEOPLE_SERIES if are_shared else f"{PEOPLE_SERIES}, where {name} judged"
        people = build_estimate(aspect, series, level.people)
        estimates += [*([] if people in estimates else [people]), build_estimate(aspect, name, level.judge)]
    return estimates
