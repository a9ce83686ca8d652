"""What raters that score responses one by one say of a comparison: two scores, and the choice they make."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from evaluations.domain import Choice, RaterKind, ScoreRule, Stage
from evaluations.models import Aspect, Comparison, Rater, Review, Score
from evaluations.services.importing.preferring import Preference, preferences
from evaluations.services.judging.consolidating import rules_of
from evaluations.services.reviewing.tallying import margins_of as margins_by_version


@dataclass(frozen=True)
class Scored:
    """One judge on one aspect: the mean over its samples of each side, and the rule by which they make a choice."""

    score_a: float | None
    score_b: float | None
    rule: ScoreRule
    weighted_a: float | None = None
    weighted_b: float | None = None
    rationale: str = ""  # of scores that came in files; a judge's call keeps its own

    @property
    def choice(self) -> Choice | None:
        return self.rule.choice(self.score_a, self.score_b)


def scores_of(comparison: Comparison) -> Mapping[Rater, Mapping[Aspect, Scored]]:
    """Judge's rater → aspect → its scores, in the same few queries however many there are."""
    sides = (comparison.response_a_id, comparison.response_b_id)
    found = Score.objects.filter(response__in=sides, rater__kind=RaterKind.JUDGE)
    given: dict[Rater, dict[Aspect, list[Score]]] = defaultdict(lambda: defaultdict(list))
    for score in found.select_related("rater__judge", "aspect").order_by("pk"):
        given[score.rater][score.aspect].append(score)
    rules = rules_of(given)
    return {
        rater: {
            aspect: scored(scores, sides, rules.get((rater.pk, aspect.pk), ScoreRule()))
            for aspect, scores in by_aspect.items()
        }
        for rater, by_aspect in given.items()
    }


@dataclass(frozen=True)
class ScoredByPerson:
    """One review by scores: aspect → the two numbers, first and final, and what was written about them."""

    review: Review
    first: Mapping[Aspect, Scored]
    final: Mapping[Aspect, Scored]
    notes: Mapping[Aspect, str]


def scores_of_people(comparison: Comparison) -> list[ScoredByPerson]:
    """Every review by scores, in the same two queries however many there are."""
    sides = (comparison.response_a_id, comparison.response_b_id)
    found = Score.objects.filter(review__comparison=comparison).select_related("review__rater", "aspect")
    given: dict[Review, list[Score]] = defaultdict(list)
    for score in found.order_by("pk"):
        if score.review:
            given[score.review].append(score)
    margins = margins_by_version({review.rubric_version_id for review in given}) if given else {}
    told = []
    for review, scores in given.items():
        stages: dict[str, dict[Aspect, Scored]] = {stage: {} for stage in Stage}
        for stage, aspect in dict.fromkeys((score.stage, score.aspect) for score in scores):
            those = [score for score in scores if (score.stage, score.aspect) == (stage, aspect)]
            rule = ScoreRule(margins.get((review.rubric_version_id, aspect.pk), 0.0))
            stages[stage][aspect] = scored(those, sides, rule)
        notes = {score.aspect: score.note for score in scores if score.note}
        told.append(ScoredByPerson(review, stages[Stage.FIRST], stages[Stage.FINAL], notes))
    return told


@dataclass(frozen=True)
class ScoredInFile:
    """What a person, or gold, gave in one sample of an import: aspect → the two numbers."""

    rater: Rater
    scores: Mapping[Aspect, Scored]


def scores_in_files(comparison: Comparison) -> list[ScoredInFile]:
    """Of everyone but judges; the same few queries however many there are."""
    given = preferences([comparison.pk], (RaterKind.HUMAN, RaterKind.GOLD))
    raters = Rater.objects.in_bulk({one.rater for one in given})
    aspects = Aspect.objects.in_bulk({one.aspect for one in given})
    passes: dict[tuple[int, int], list[Preference]] = defaultdict(list)
    for one in given:
        passes[one.rater, one.sample].append(one)
    return [
        ScoredInFile(
            raters[rater],
            {
                aspects[one.aspect]: Scored(one.score_a, one.score_b, one.rule, None, None, one.rationale)
                for one in those
            },
        )
        for (rater, _), those in passes.items()
    ]


def scored(scores: Sequence[Score], sides: tuple[int, int], rule: ScoreRule) -> Scored:
    of_a, of_b = ([score for score in scores if score.response_id == side] for side in sides)
    return Scored(
        score_a=mean([score.value for score in of_a]),
        score_b=mean([score.value for score in of_b]),
        rule=rule,
        weighted_a=mean([score.weighted for score in of_a if score.weighted is not None]),
        weighted_b=mean([score.weighted for score in of_b if score.weighted is not None]),
        rationale=" ".join(dict.fromkeys(score.rationale for score in (*of_a, *of_b) if score.rationale)),
    )


def mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None
