"""May a judge stand in for a reviewer? One decision for each judge, and what is shown on each aspect.

J, R and C are the mean agreement of the judge, of a left-out reviewer and of the best constant answer with each
remaining vote, in half credits (`agreement_credits`); D = J − R. A statement is shown if a studentised bootstrap of
clusters shows it one-sided at 5 %, divided by the number of judges that a decision is made on.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import ceil, inf, isfinite
from typing import Final

from evaluations.domain.decisions import AspectOutcome, DecisionBars, Outcome
from evaluations.stats.coding import IntArray, join_numbers
from evaluations.stats.decisions.agreement_credits import JudgeCredits
from evaluations.stats.decisions.contrasts import (
    UNKNOWN_BOUNDS,
    Bounds,
    Contrast,
    average_contrasts,
    contrast,
    difference_with_interval,
    entry_clusters,
    one_sided_bounds,
    opposite,
    share_with_interval,
    step_down,
)
from evaluations.stats.decisions.gauges import Gauges
from evaluations.stats.decisions.results import NO_TWO_REVIEWS, AgreementLevels, AspectDecision, Decision
from evaluations.stats.decisions.sentences import (
    decision_headline,
    decision_sentence,
    unreliability_reasons,
)
from evaluations.stats.decisions.spot_checks import SpotChecks, review_scores, spot_checks
from evaluations.stats.estimates import undefined_estimate
from evaluations.stats.judge_verdicts import JudgeCoverage

MIN_ITEMS: Final = 100  # comparisons; below, reviewers who agree as little as a constant may be too few data
ENOUGH_ERRORS: Final = 2.5  # standard errors between the difference and its bar, at which most samples show it
FEW: Final = 50
ROUND_TO: Final = 10
MOST_ITEMS: Final = 100_000
UNDECIDED: Final = (Outcome.NOT_ENOUGH_DATA, Outcome.SPOT_CHECKS)


@dataclass(frozen=True)
class AspectContrasts:
    """Contrasts on one aspect or averaged over aspects: J, R, C, J − R, J − (R + C)/2, J − C and R − C."""

    judge: Contrast
    reviewers: Contrast
    constant: Contrast
    difference: Contrast
    above_middle: Contrast
    above_constant: Contrast
    reviewers_above_constant: Contrast

    @property
    def all(self) -> tuple[Contrast, ...]:
        return (
            self.judge,
            self.reviewers,
            self.constant,
            self.difference,
            self.above_middle,
            self.above_constant,
            self.reviewers_above_constant,
        )


def aspect_contrasts(of_judge: JudgeCredits, cluster: IntArray) -> AspectContrasts:
    """``of_judge``: of one item or more. ``cluster``: of every comparison."""
    j, r, c = of_judge.judge, of_judge.reviewer, of_judge.constant[of_judge.best_constant]
    clusters = entry_clusters(cluster[of_judge.item])
    made = [contrast(value, clusters) for value in (j, r, c, j - r, j - (r + c) / 2, j - c, r - c)]
    return AspectContrasts(*(one for one in made if one is not None))


def average_aspects(aspects: Sequence[AspectContrasts]) -> AspectContrasts:
    return AspectContrasts(*map(average_contrasts, zip(*(aspect.all for aspect in aspects), strict=True)))


@dataclass(frozen=True)
class Shown:
    """What is shown of the average over the aspects.

    ``far_below``: D under the bar of unreliability, or J under the middle of R and C. ``close``: D above the bar for
    standing in, and J above that middle.
    """

    reviewers_agree: bool
    far_below: bool
    close: bool
    above_constant: bool
    difference: Bounds


NOTHING_SHOWN: Final = Shown(False, False, False, False, UNKNOWN_BOUNDS)


def find_shown(average: AspectContrasts, bars: DecisionBars, level: float) -> Shown:
    tested = [
        average.difference,
        average.above_middle,
        average.above_constant,
        average.reviewers_above_constant,
    ]
    difference, middle, constant, reviewers = one_sided_bounds(tested, level)
    half_difference, half_middle = one_sided_bounds(tested[:2], level / 2)
    return Shown(
        reviewers_agree=reviewers.low > 0,
        far_below=half_difference.high < -bars.unreliable or half_middle.high < 0,
        close=difference.low > -bars.stand_in and middle.low > 0,
        above_constant=constant.low > 0,
        difference=difference,
    )


def choose_outcome(shown: Shown, n: int, *, is_unreliable: bool, is_covered: bool) -> Outcome:
    """The first outcome that applies. ``is_unreliable``: by failures, inconsistency or a bias."""
    if not shown.reviewers_agree and n >= MIN_ITEMS:
        return Outcome.CLARIFY_RUBRIC
    if is_unreliable:  # failures and flips need no reviewers
        return Outcome.NOT_RELIABLE
    if not shown.reviewers_agree:
        return Outcome.NOT_ENOUGH_DATA
    if shown.far_below:
        return Outcome.NOT_RELIABLE
    if shown.close and is_covered:
        return Outcome.STAND_IN
    return Outcome.SPOT_CHECKS if shown.above_constant else Outcome.NOT_ENOUGH_DATA


def aspect_outcomes(
    aspects: Mapping[str, AspectContrasts], bars: DecisionBars, level: float, *, may_stand_in: bool
) -> dict[str, AspectOutcome]:
    """By step-down over the aspects: standing in only after the average does, not reliable always."""
    of_aspects = list(aspects.values())
    worse = step_down([[(opposite(one.difference), bars.aspect)] for one in of_aspects], level / 2)
    beneath = step_down([[(opposite(one.above_middle), 0.0)] for one in of_aspects], level / 2)
    close = [[(one.difference, -bars.aspect), (one.above_middle, 0.0)] for one in of_aspects]
    standing = step_down(close, level) if may_stand_in else [False] * len(close)
    return {
        key: AspectOutcome.NOT_RELIABLE if bad else AspectOutcome.STAND_IN if good else AspectOutcome.NOT_SHOWN
        for key, bad, good in zip(aspects, map(any, zip(worse, beneath, strict=True)), standing, strict=True)
    }


def more_comparisons(average: AspectContrasts | None, n: int, bars: DecisionBars) -> int | None:
    """About how many more comparisons with two reviews would decide; None where more will hardly help.

    n · (2.5 · SE ÷ (D + bar))² are needed in all, and as many for R > C; FEW say nothing of how many.
    """
    if average is None or n < FEW:
        return round_up(MIN_ITEMS - n)
    needed = max(
        items_needed(average.difference, average.difference.value + bars.stand_in, n),
        items_needed(average.reviewers_above_constant, average.reviewers_above_constant.value, n),
    )
    return None if needed > MOST_ITEMS else round_up(needed - n)


def round_up(comparisons: float) -> int:
    return max(ceil(comparisons / ROUND_TO), 1) * ROUND_TO


def items_needed(one: Contrast, distance: float, n: int) -> float:
    """The items in all at which a mean is 2.5 standard errors from its bar; infinite on the wrong side of it."""
    return n * (ENOUGH_ERRORS * one.standard_error / distance) ** 2 if distance > 0 else inf


@dataclass(frozen=True)
class JudgeCase:
    """All that is decided from, of one judge. ``credits``: by aspect key, of aspects with an item or more.

    ``names``: of all aspects that the judge was asked about, by key. ``family``: how many judges are decided on.
    ``level``: the error of each statement. ``scale``: as in `Decision`.
    """

    name: str
    label: str | None
    names: Mapping[str, str]
    credits: Mapping[str, JudgeCredits]
    gauges: Gauges
    coverage: JudgeCoverage
    bars: DecisionBars
    level: float
    scale: str | None = None


def decide(case: JudgeCase, cluster: IntArray) -> Decision:
    """The decision on a judge. ``cluster``: of every comparison."""
    contrasts = {key: aspect_contrasts(of_judge, cluster) for key, of_judge in case.credits.items()}
    average = average_aspects(list(contrasts.values())) if contrasts else None
    items = join_numbers([of_judge.item for of_judge in case.credits.values()])
    shown = NOTHING_SHOWN if average is None else find_shown(average, case.bars, case.level)
    outcome = choose_outcome(shown, len(items), is_unreliable=case.gauges.exceed, is_covered=case.coverage.why is None)
    decision = Decision(
        judge=case.name,
        label=case.label,
        outcome=outcome,
        headline="",
        sentence="",
        reasons=(),
        n=len(items),
        clusters=0 if average is None else len(average.difference.cluster),
        levels=agreement_levels(average),
        at_least=finite_or_none(shown.difference.low),
        at_most=finite_or_none(shown.difference.high),
        level=case.level,
        more=more_comparisons(average, len(items), case.bars) if outcome in UNDECIDED else None,
        spot_checks=plan_spot_checks(case, cluster) if outcome is Outcome.SPOT_CHECKS else None,
        gauges=case.gauges,
        coverage=case.coverage,
        aspects=decide_aspects(case, contrasts, outcome),
        bars=case.bars,
        scale=case.scale,
    )
    reasons = unreliability_reasons(decision, is_far_below=shown.far_below)
    decision = replace(decision, headline=decision_headline(decision), reasons=reasons)
    return replace(decision, sentence=decision_sentence(decision))


def finite_or_none(value: float) -> float | None:
    return value if isfinite(value) else None


def agreement_levels(made: AspectContrasts | None) -> AgreementLevels:
    if made is None:
        nothing = undefined_estimate(NO_TWO_REVIEWS)
        return AgreementLevels(nothing, nothing, nothing, nothing)
    judge, reviewers, constant = (
        share_with_interval(one, NO_TWO_REVIEWS) for one in (made.judge, made.reviewers, made.constant)
    )
    return AgreementLevels(judge, reviewers, constant, difference_with_interval(made.difference, NO_TWO_REVIEWS))


def decide_aspects(
    case: JudgeCase, contrasts: Mapping[str, AspectContrasts], outcome: Outcome
) -> dict[str, AspectDecision]:
    outcomes = aspect_outcomes(contrasts, case.bars, case.level, may_stand_in=outcome is Outcome.STAND_IN)
    reviewers = one_sided_bounds([made.reviewers_above_constant for made in contrasts.values()], case.level)
    agree = {key: bound.low > 0 for key, bound in zip(contrasts, reviewers, strict=True)}
    return {
        key: AspectDecision(
            name=name,
            n=case.credits[key].n if key in contrasts else 0,
            levels=agreement_levels(contrasts.get(key)),
            constant_choice=best_answer(case.credits[key]) if key in contrasts else "",
            reviewers_agree=agree.get(key, False),
            outcome=outcomes.get(key, AspectOutcome.NOT_SHOWN),
        )
        for key, name in case.names.items()
    }


def best_answer(of_judge: JudgeCredits) -> str:
    return of_judge.answers[of_judge.best_constant]


def plan_spot_checks(case: JudgeCase, cluster: IntArray) -> SpotChecks | None:
    scores = [review_scores(of_judge, cluster) for of_judge in case.credits.values()]
    return spot_checks([one for one in scores if one is not None], case.coverage.selected, case.bars.half_width)
