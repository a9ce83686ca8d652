"""What raters that score responses one by one say of a comparison: two scores, and the choice they make."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from evaluations.domain import Choice, RaterKind, Stage, derived_choice
from evaluations.models import Aspect, Comparison, Rater, Review, Score
from evaluations.services.judging.consolidating import margins_of
from evaluations.services.reviewing.tallying import margins_of as margins_by_version


@dataclass(frozen=True)
class Scored:
    """One judge on one aspect: the mean over its samples of each side, and the margin that a choice takes."""

    score_a: float | None
    score_b: float | None
    margin: float
    weighted_a: float | None = None
    weighted_b: float | None = None

    @property
    def choice(self) -> Choice | None:
        return derived_choice(self.score_a, self.score_b, self.margin)


def scores_of(comparison: Comparison) -> Mapping[Rater, Mapping[Aspect, Scored]]:
    """Judge's rater → aspect → its scores, in the same two queries however many there are."""
    sides = (comparison.response_a_id, comparison.response_b_id)
    found = Score.objects.filter(response__in=sides, rater__kind=RaterKind.JUDGE)
    given: dict[Rater, dict[Aspect, list[Score]]] = defaultdict(lambda: defaultdict(list))
    for score in found.select_related("rater__judge", "aspect").order_by("pk"):
        given[score.rater][score.aspect].append(score)
    margins = margins_of(given)  # scores that came with an import have none
    return {
        rater: {
            aspect: scored(scores, sides, margins.get((rater.pk, aspect.pk), 0.0))
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
            stages[stage][aspect] = scored(those, sides, margins.get((review.rubric_version_id, aspect.pk), 0.0))
        notes = {score.aspect: score.note for score in scores if score.note}
        told.append(ScoredByPerson(review, stages[Stage.FIRST], stages[Stage.FINAL], notes))
    return told


def scored(scores: Sequence[Score], sides: tuple[int, int], margin: float) -> Scored:
    of_a, of_b = ([score for score in scores if score.response_id == side] for side in sides)
    return Scored(
        score_a=mean([score.value for score in of_a]),
        score_b=mean([score.value for score in of_b]),
        margin=margin,
        weighted_a=mean([score.weighted for score in of_a if score.weighted is not None]),
        weighted_b=mean([score.weighted for score in of_b if score.weighted is not None]),
    )


def mean(values: Sequence[float]) -> float | None:
    return fmean(values) if values else None
