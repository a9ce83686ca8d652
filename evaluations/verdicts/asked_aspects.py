"""What the rubric versions of an evaluation ask of each aspect, by judge."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from django.db.models import Exists, OuterRef, QuerySet

from evaluations.domain.choices import PACKED_CHOICES, ScoreRule
from evaluations.domain.reviews import ReviewState
from evaluations.domain.rubrics import RubricKind, RubricOrigin
from evaluations.models.comparisons import Comparison
from evaluations.models.evaluations import Evaluation
from evaluations.models.judges import Rater
from evaluations.models.rubrics import Aspect, RubricAspect, RubricVersion
from evaluations.models.verdicts import Review
from evaluations.stats.coding import TIE, A, B
from evaluations.verdicts.score_choices import list_imported_aspects
from evaluations.verdicts.verdict_arrays import VerdictArrays

FINISHED_REVIEW_STATES: Final = (ReviewState.FIRST.value, ReviewState.FINAL.value)


@dataclass(frozen=True)
class AskedAspects:
    """The aspects of an evaluation's rubric versions; ``used``: the versions that judges and reviews used."""

    rows: Sequence[RubricAspect]
    used: frozenset[int]

    def about(self, aspect: int) -> list[RubricAspect]:
        """How the versions ask about this aspect: those in use, else all that do."""
        rows = [row for row in self.rows if row.aspect_id == aspect]
        return [row for row in rows if row.version_id in self.used] or rows


def read_asked_aspects(
    evaluation: Evaluation, comparisons: QuerySet[Comparison] | None, raters: Sequence[Rater]
) -> AskedAspects:
    rows = RubricAspect.objects.filter(version__rubric__evaluation=evaluation).select_related(
        "version__rubric", "aspect"
    )
    reviews = Review.objects.filter(rubric_version=OuterRef("pk"), state__in=FINISHED_REVIEW_STATES)
    if comparisons is not None:
        reviews = reviews.filter(comparison__in=comparisons.order_by().values("pk"))
    versions = RubricVersion.objects.filter(Exists(reviews), rubric__evaluation=evaluation)
    used = set(versions.values_list("pk", flat=True))
    used |= {rater.judge.rubric_version_id for rater in raters if rater.judge and rater.judge.rubric_version_id}
    used |= {row.version_id for row in list_imported_aspects(evaluation)}
    return AskedAspects(list(rows.order_by("version__rubric__name", "version__number")), frozenset(used))


def list_aspects_in_order(evaluation: Evaluation, asked_aspects: AskedAspects) -> list[Aspect]:
    """The aspects in the order of the reviewers' rubric, then the others by key."""
    place = {row.aspect_id: row.position for row in asked_aspects.rows if row.version_id == evaluation.review_rubric_id}
    aspects = Aspect.objects.filter(evaluation=evaluation).order_by("key")
    return sorted(aspects, key=lambda aspect: place.get(aspect.pk, len(place)))


def find_judged_aspects(
    gathered: VerdictArrays, raters: Sequence[Rater], asked_aspects: AskedAspects, aspects: Sequence[Aspect]
) -> dict[int, set[int]]:
    """By rater id the aspects that each judge was asked about here.

    An imported judge has no rubric: where it only failed, its failures count on every aspect that has verdicts.
    """
    judged: dict[int, set[int]] = {}
    for rater in raters:
        if rater.judge is not None and gathered.was_asked(rater):
            of_rubric = {row.aspect_id for row in asked_aspects.rows if row.version_id == rater.judge.rubric_version_id}
            of_judge = gathered.get_judged_aspects(rater, aspects) | of_rubric
            judged[rater.pk] = of_judge or gathered.aspects(aspects) or {row.aspect_id for row in asked_aspects.rows}
    return judged


def format_rubric_version(row: RubricAspect) -> str:
    """The rubric version as reports print it; for imported scores with the rule that derives choices from them."""
    rule = ScoreRule(row.tie_margin, row.lower_is_better)
    remark = f" ({rule.remark})" if has_imported_scores(row) else ""
    return f"{row.version.rubric.name}, version {row.version.number}{remark}"


def has_imported_scores(row: RubricAspect) -> bool:
    rubric = row.version.rubric
    return rubric.origin == RubricOrigin.IMPORTED and rubric.kind == RubricKind.POINTWISE


def list_score_rules(rows: Sequence[RubricAspect]) -> tuple[ScoreRule, ...]:
    """By which rules choices are derived where these versions ask for scores, each once."""
    scoring = [row for row in rows if row.version.rubric.kind == RubricKind.POINTWISE]
    return tuple(dict.fromkeys(ScoreRule(row.tie_margin, row.lower_is_better) for row in scoring))


def get_offered_choices(rows: Sequence[RubricAspect], scores_tie: bool) -> frozenset[int]:
    """The codes of the choices that any of these versions offers. A and B always are.

    Of imported scores nobody knows whether they could be equal: a tie is offered where one occurs.
    """
    exact = [row for row in rows if not has_imported_scores(row)]
    offered = {A, B, *(PACKED_CHOICES.index(choice) for row in exact for choice in row.choices)}
    return frozenset({*offered, TIE} if scores_tie else offered)


def get_definition_warnings(rows: Sequence[RubricAspect]) -> tuple[str, ...]:
    definitions = {row.definition for row in rows}
    if len(definitions) < 2:
        return ()
    return (f"Verdicts were given under {len(definitions)} different definitions of this aspect.",)
