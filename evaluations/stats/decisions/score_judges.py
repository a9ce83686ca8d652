"""The decisions on judges that score single responses."""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from evaluations.domain.decisions import DecisionBars
from evaluations.stats.coding import MISSING, BoolArray, FloatArray, IntArray
from evaluations.stats.decisions.agreement_credits import JudgeCredits
from evaluations.stats.decisions.decision import JudgeCase, decide
from evaluations.stats.decisions.gauges import response_gauges
from evaluations.stats.decisions.results import Decision
from evaluations.stats.decisions.score_credits import (
    Scale,
    judge_score_credits,
    reviewer_score_credits,
    score_scale,
)
from evaluations.stats.judge_verdicts import JudgeCoverage, judge_coverage
from evaluations.stats.score_report import AspectScores, review_scores
from evaluations.stats.simultaneous_intervals import LEVEL

NOT_BY_THRESHOLD: Final = "Decided on the scores, not on the pass threshold of {:g}."


@dataclass(frozen=True)
class ScoredAspect:
    """One aspect of one judge: its ``name``, scores, failures and credits, and the scale of reviewers' scores."""

    name: str
    judge: FloatArray
    failed: BoolArray
    credits: JudgeCredits | None
    scale: Scale | None


def decide_score_judges(
    aspects: Mapping[str, AspectScores], bars: DecisionBars, family_size: int, pass_from: float | None = None
) -> dict[str, Decision]:
    """The decision on each judge with scores, by name. ``aspects``: by key; ``family_size``: as in `decide_judges`.

    ``pass_from``: the reader's threshold. Decisions use the scores alone, and name the threshold as unused: limits are
    set before anyone looks, while a reader could try thresholds until a judge passes.
    """
    by_judge: dict[str, dict[str, ScoredAspect]] = defaultdict(dict)
    for key, scores in aspects.items():
        for name, scored in score_aspect(scores).items():
            by_judge[name][key] = scored
    level = LEVEL / max(family_size, len(by_judge), 1)
    cluster = next(iter(aspects.values())).cluster if by_judge else np.empty(0, dtype=np.int64)
    decisions = {
        name: decide(score_case(name, of_judge, cluster, bars, level), cluster)
        for name, of_judge in sorted(by_judge.items())
    }
    if pass_from is None:
        return decisions
    remark = NOT_BY_THRESHOLD.format(pass_from)
    return {name: replace(made, sentence=f"{made.sentence} {remark}") for name, made in decisions.items()}


def score_aspect(scores: AspectScores) -> dict[str, ScoredAspect]:
    """The judges with scores or failed calls on an aspect, by name."""
    scale, each = score_scale(scores.people), review_scores(scores).each
    reviewers = None if scale is None else reviewer_score_credits(each, scale)
    scored = {}
    for name, judge in scores.judges.items():
        failed = scores.failed.get(name, np.zeros(len(judge), dtype=bool))
        if failed.any() or not np.isnan(judge).all():
            earned = None
            if reviewers is not None and scale is not None:
                earned = judge_score_credits(judge, failed, reviewers, scale)
            scored[name] = ScoredAspect(scores.name, judge, failed, earned, scale)
    return scored


def score_case(
    name: str, by_aspect: Mapping[str, ScoredAspect], cluster: IntArray, bars: DecisionBars, level: float
) -> JudgeCase:
    aspects = list(by_aspect.values())
    return JudgeCase(
        name=name,
        label=None,
        names={key: scored.name for key, scored in by_aspect.items()},
        credits={key: scored.credits for key, scored in by_aspect.items() if scored.credits and scored.credits.n},
        gauges=response_gauges(
            [scored.failed for scored in aspects], [~np.isnan(scored.judge) for scored in aspects], cluster, bars
        ),
        coverage=least_score_coverage([scored.judge for scored in aspects]),
        bars=bars,
        level=level,
        scale=describe_scales([scored.scale for scored in aspects if scored.scale]),
    )


def describe_scales(scales: list[Scale]) -> str:
    """“1–5”; of aspects with different scales all of them."""
    return ", ".join(dict.fromkeys(f"{scale.low:g}–{scale.high:g}" for scale in scales)) or "unknown"


def least_score_coverage(scores: list[FloatArray]) -> JudgeCoverage:
    """The coverage on the aspect on which a judge scored the fewest responses."""
    fewest = min(scores, key=lambda judge: int(np.count_nonzero(~np.isnan(judge))))
    everything = np.ones(len(fewest), dtype=bool)
    return judge_coverage(np.where(np.isnan(fewest), MISSING, 0), everything)
