"""What judges that score responses one by one say of a comparison: two scores, and the choice they make."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from evaluations.domain import Choice, RaterKind, derived_choice
from evaluations.models import Aspect, Comparison, Rater, RubricAspect, Score


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
    margins = margins_of(list(given))
    return {
        rater: {
            aspect: scored(scores, sides, margins.get((version_of(rater), aspect.pk), 0.0))
            for aspect, scores in by_aspect.items()
        }
        for rater, by_aspect in given.items()
    }


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


def version_of(rater: Rater) -> int | None:
    return rater.judge.rubric_version_id if rater.judge else None


def margins_of(raters: Sequence[Rater]) -> dict[tuple[int | None, int], float]:
    """(rubric version, aspect) → margin. Scores that came with an import have no rubric, and none."""
    asked = RubricAspect.objects.filter(version__in={version_of(rater) for rater in raters} - {None})
    return {
        (version, aspect): margin for version, aspect, margin in asked.values_list("version", "aspect", "tie_margin")
    }
