"""The decision on a judge, in the shape of its JSON."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from evaluations.domain.decisions import AspectOutcome, DecisionBars, Outcome
from evaluations.stats.decisions.gauges import Gauges
from evaluations.stats.decisions.spot_checks import SpotChecks
from evaluations.stats.estimates import Estimate
from evaluations.stats.judge_verdicts import JudgeCoverage

NO_TWO_REVIEWS: Final = "No comparison has a verdict of the judge and two reviews."


@dataclass(frozen=True)
class AgreementLevels:
    """``judge``: J. ``reviewers``: R, the human ceiling. ``constant``: C. ``difference``: J − R."""

    judge: Estimate
    reviewers: Estimate
    constant: Estimate
    difference: Estimate


@dataclass(frozen=True)
class AspectDecision:
    """``n``: comparisons with two reviews or more that the judge answered or failed on.

    ``constant_choice``: the constant answer that agrees best. ``reviewers_agree``: whether R > C is shown.
    """

    name: str
    n: int
    levels: AgreementLevels
    constant_choice: str
    reviewers_agree: bool
    outcome: AspectOutcome


@dataclass(frozen=True)
class Decision:
    """The decision on one judge. ``levels``: averaged over the aspects, which are by key.

    ``n``: comparisons with two reviews or more that the judge answered or failed on, on any aspect. ``at_least`` and
    ``at_most``: one-sided bounds of J − R at ``level``; None where there are too few clusters. ``more``: about how many
    more comparisons with two reviews would decide; None where they would not. ``provisional``: why the decision waits
    for the owner. ``headline`` and ``sentence``: the outcome in words; ``reasons``: what makes the judge not reliable.
    ``scale``: of scores of single responses, the lowest and the highest; None for choices. Levels of scores are 1 − the
    mean distance as a share of the scale, and n counts responses.
    """

    judge: str
    label: str | None
    outcome: Outcome
    headline: str
    sentence: str
    reasons: tuple[str, ...]
    n: int
    clusters: int
    levels: AgreementLevels
    at_least: float | None
    at_most: float | None
    level: float
    more: int | None
    spot_checks: SpotChecks | None
    gauges: Gauges
    coverage: JudgeCoverage
    aspects: Mapping[str, AspectDecision]
    bars: DecisionBars
    provisional: str | None = None
    scale: str | None = None
