"""What a judge has chosen so far: wins, ties and losses by aspect, of all its runs together. No test call counts."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from django.core.cache import cache

from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Judge, Rater
from evaluations.models.rubrics import Aspect, RubricAspect
from evaluations.stats.judge_tally import JudgeTally, Standing, tally_judge
from evaluations.stats.judge_verdicts import JudgeVerdicts, UnansweredCalls, consolidate_verdicts
from evaluations.stats.matches import Matches
from evaluations.verdicts.changes import read_rater_states
from evaluations.verdicts.comparison_arrays import build_items, get_comparison_table
from evaluations.verdicts.judge_arrays import ComparisonPositions, read_judge_arrays
from evaluations.verdicts.score_arrays import read_score_arrays
from evaluations.verdicts.verdict_arrays import NO_CALLS

OVERALL: Final = "overall"  # the aspect that sums a comparison up, where a rubric has it
# The pages of everyone who watches a run ask every few seconds: counting takes a tenth of the time at most.
RECOUNT_AFTER_FACTOR: Final = 10
KEPT_SECONDS: Final = 60


@dataclass(frozen=True)
class AspectResults:
    key: str
    name: str
    tally: JudgeTally


@dataclass(frozen=True)
class JudgeResults:
    """``aspects``: in the order of the rubric, those without a verdict too."""

    aspects: tuple[AspectResults, ...]

    @property
    def judged(self) -> tuple[AspectResults, ...]:
        """The aspects on which the judge has chosen something."""
        return tuple(aspect for aspect in self.aspects if aspect.tally.n)

    @property
    def headline(self) -> AspectResults | None:
        """The overall aspect, else the first of the rubric that has a verdict."""
        overall = [aspect for aspect in self.judged if aspect.key == OVERALL]
        return next(iter(overall or self.judged), None)

    @property
    def is_of_pair(self) -> bool:
        """Whether two models are compared, so that each aspect has one standing."""
        return all(len(aspect.tally.standings) == 1 for aspect in self.judged)


@dataclass(frozen=True)
class KeptResults:
    """``state``: of the judge's verdicts that were counted. ``until``: when they expire."""

    results: JudgeResults
    state: tuple[object, ...]
    until: float


def get_judge_results(judge: Judge, *, is_active: bool) -> JudgeResults:
    """The results, counted again if something has changed; of an active judge in intervals.

    They are of all comparisons: show them to those alone whom `reveal_judge_results` lets see them.
    """
    rater = Rater.objects.get(judge=judge)
    key = f"judge-results-{judge.pk}"
    kept: KeptResults | None = cache.get(key)
    if kept is not None and is_active and time.monotonic() < kept.until:
        return kept.results
    state = read_results_state(judge.evaluation, rater)
    if kept is not None and kept.state == state:
        return kept.results
    began = time.monotonic()
    results = count_judge_results(judge, rater)
    now = time.monotonic()
    kept = KeptResults(results, state, now + RECOUNT_AFTER_FACTOR * (now - began))
    cache.set(key, kept, timeout=max(KEPT_SECONDS, kept.until - now))
    return results


def read_results_state(evaluation: Evaluation, rater: Rater) -> tuple[object, ...]:
    """A value that differs after every change of the judge's calls, and of the comparisons."""
    states = read_rater_states(Rater.objects.filter(pk=rater.pk))
    changed = Evaluation.objects.values_list("comparisons_changed_at", flat=True).get(pk=evaluation.pk)
    return states[rater.pk].changed_at, states[rater.pk].changes, changed


def count_judge_results(judge: Judge, rater: Rater) -> JudgeResults:
    table = get_comparison_table(judge.evaluation)
    places = ComparisonPositions(table.rows["comparison"])
    asked = RubricAspect.objects.filter(version=judge.rubric_version_id).select_related("aspect")
    aspects = [row.aspect for row in asked.order_by("position")]
    verdicts = read_verdicts(judge, rater, places, aspects)
    matches = Matches(build_items(judge.evaluation, table, places))
    return JudgeResults(
        tuple(
            AspectResults(
                aspect.key,
                aspect.name,
                tally_judge(matches, consolidate_verdicts(*verdicts[aspect.pk], len(places.ids))),
            )
            for aspect in aspects
        )
    )


def read_verdicts(
    judge: Judge, rater: Rater, places: ComparisonPositions, aspects: list[Aspect]
) -> Mapping[int, tuple[JudgeVerdicts, UnansweredCalls]]:
    """By aspect id what the judge chose, from scores where it scores responses, and its calls without an answer."""
    if not judge.is_pointwise:
        arrays = read_judge_arrays([rater], places)[rater.pk]
        return {aspect.pk: (arrays.verdicts(aspect.slot), arrays.unanswered(aspect.slot)) for aspect in aspects}
    scored = read_score_arrays(Comparison.objects.filter(evaluation=judge.evaluation), places.ids, [rater])
    unanswered = scored.unanswered.get(rater.pk, NO_CALLS)
    return {aspect.pk: (scored.verdicts.get((rater.pk, aspect.pk), JudgeVerdicts()), unanswered) for aspect in aspects}


def find_leader(standings: tuple[Standing, ...]) -> Standing | None:
    """The standing of the candidate with the highest win rate; None where two are level at the top."""
    if len(standings) == 1 and (standings[0].rate.value or 0.0) < 0.5:
        standings = (standings[0].turned(),)
    if not standings:
        return None
    first, *others = standings
    level = 0.5 if first.versus else max((row.rate.value or 0.0 for row in others), default=0.0)
    return first if (first.rate.value or 0.0) > level else None
