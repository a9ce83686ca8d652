"""What imported scores of single responses say of comparisons."""

from evaluations.domain.rubrics import RubricKind, RubricOrigin
from evaluations.models.evaluations import Evaluation
from evaluations.models.rubrics import Rubric, RubricAspect

# ---- what was brought so far ---------------------------------------------------------------------


def find_scores_rubric(evaluation: Evaluation) -> Rubric | None:
    rubrics = Rubric.objects.filter(evaluation=evaluation, origin=RubricOrigin.IMPORTED)
    return rubrics.filter(kind=RubricKind.POINTWISE).first()


def list_imported_score_aspects(evaluation: Evaluation) -> list[RubricAspect]:
    """The aspects of the newest version of the rubric for imported scores, in order."""
    rubric = find_scores_rubric(evaluation)
    version = rubric.versions.order_by("-number").first() if rubric else None
    return list(version.asked.select_related("aspect").order_by("position")) if version else []
