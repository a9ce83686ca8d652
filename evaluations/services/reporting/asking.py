"""What the rubric versions of an evaluation ask of each aspect, and which judges were asked."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.db.models import Exists, OuterRef, QuerySet

from evaluations.domain import ReviewState, RubricKind, RubricOrigin, ScoreRule
from evaluations.models import Aspect, Comparison, Evaluation, Rater, Review, RubricAspect, RubricVersion
from evaluations.services.importing.scaling import asked_so_far
from evaluations.services.reporting.gathering import Gathered
from evaluations.stats.coding import CHOICES, TIE, A, B

FINISHED: Final = (ReviewState.FIRST.value, ReviewState.FINAL.value)


@dataclass(frozen=True)
class Asked:
    """What the rubric versions of an evaluation ask; ``used``: those that judges and reviews here worked with."""

    rows: Sequence[RubricAspect]
    used: frozenset[int]

    def about(self, aspect: int) -> list[RubricAspect]:
        """How the versions ask about this aspect: those in use, else all that do."""
        rows = [row for row in self.rows if row.aspect_id == aspect]
        return [row for row in rows if row.version_id in self.used] or rows


def what_was_asked(evaluation: Evaluation, comparisons: QuerySet[Comparison] | None, raters: Sequence[Rater]) -> Asked:
    """None: on all comparisons."""
    rows = RubricAspect.objects.filter(version__rubric__evaluation=evaluation).select_related(
        "version__rubric", "aspect"
    )
    reviews = Review.objects.filter(rubric_version=OuterRef("pk"), state__in=FINISHED)
    if comparisons is not None:
        reviews = reviews.filter(comparison__in=comparisons.order_by().values("pk"))
    versions = RubricVersion.objects.filter(Exists(reviews), rubric__evaluation=evaluation)
    used = set(versions.values_list("pk", flat=True))
    used |= {rater.judge.rubric_version_id for rater in raters if rater.judge and rater.judge.rubric_version_id}
    used |= {asked.version_id for asked in asked_so_far(evaluation)}
    return Asked(list(rows.order_by("version__rubric__name", "version__number")), frozenset(used))


def aspects_in_order(evaluation: Evaluation, asked: Asked) -> list[Aspect]:
    """As the reviewers' rubric has them, then the others by key."""
    place = {row.aspect_id: row.position for row in asked.rows if row.version_id == evaluation.review_rubric_id}
    aspects = Aspect.objects.filter(evaluation=evaluation).order_by("key")
    return sorted(aspects, key=lambda aspect: place.get(aspect.pk, len(place)))


def judged_aspects(
    gathered: Gathered, raters: Sequence[Rater], asked: Asked, aspects: Sequence[Aspect]
) -> dict[int, set[int]]:
    """By rater id the aspects that each judge was asked about here.

    An imported judge has no rubric: where it only failed, its failures count on every aspect that has verdicts.
    """
    judged: dict[int, set[int]] = {}
    for rater in raters:
        if rater.judge is not None and gathered.was_asked(rater):
            of_rubric = {row.aspect_id for row in asked.rows if row.version_id == rater.judge.rubric_version_id}
            said = gathered.said_by(rater, aspects) | of_rubric
            judged[rater.pk] = said or gathered.aspects(aspects) or {row.aspect_id for row in asked.rows}
    return judged


def version_name(row: RubricAspect) -> str:
    """As the report prints it; of imported scores with the rule by which choices are derived from them."""
    rule = ScoreRule(row.tie_margin, row.lower_is_better)
    remark = f" ({rule.remark})" if is_of_imported_scores(row) else ""
    return f"{row.version.rubric.name}, version {row.version.number}{remark}"


def is_of_imported_scores(row: RubricAspect) -> bool:
    rubric = row.version.rubric
    return rubric.origin == RubricOrigin.IMPORTED and rubric.kind == RubricKind.POINTWISE


def score_rules_of(rows: Sequence[RubricAspect]) -> tuple[ScoreRule, ...]:
    """By which rules choices are derived where these versions ask for scores, each once."""
    scoring = [row for row in rows if row.version.rubric.kind == RubricKind.POINTWISE]
    return tuple(dict.fromkeys(ScoreRule(row.tie_margin, row.lower_is_better) for row in scoring))


def offered_by(rows: Sequence[RubricAspect], scores_tie: bool) -> frozenset[int]:
    """The codes of the choices that any of these versions offers. A and B always are.

    Of imported scores nobody knows whether they could be equal: a tie is offered where one occurs.
    """
    asked = [row for row in rows if not is_of_imported_scores(row)]
    offered = {A, B, *(CHOICES.index(choice) for row in asked for choice in row.choices)}
    return frozenset({*offered, TIE} if scores_tie else offered)


def warnings_about(rows: Sequence[RubricAspect]) -> tuple[str, ...]:
    definitions = {row.definition for row in rows}
    if len(definitions) < 2:
        return ()
    return (f"Verdicts were given under {len(definitions)} different definitions of this aspect.",)
