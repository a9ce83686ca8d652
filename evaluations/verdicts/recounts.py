"""Imports whose labels have to be counted again after a margin changed."""

from collections.abc import Collection
from typing import Final

from django.db.models import QuerySet

from evaluations.domain.files import ImportState
from evaluations.domain.roles import RaterKind
from evaluations.models.imports import Import
from evaluations.models.verdicts import Score

# How far the labels of an import are kept: the last comparison, in the import's summary.
TALLIED_TO: Final = "tallied_to"


def find_imports_of_scores(scores: QuerySet[Score]) -> set[int]:
    """The imports that brought scores of people among these."""
    brought = scores.filter(source_import__isnull=False, rater__kind=RaterKind.HUMAN).order_by()
    return {pk for pk in brought.values_list("source_import", flat=True).distinct() if pk}


def schedule_recount(imports: Collection[int]) -> None:
    """Have a worker count the labels of these imports again."""
    for one in Import.objects.filter(pk__in=imports, state=ImportState.DONE):
        summary = {name: value for name, value in one.summary.items() if name != TALLIED_TO}
        Import.objects.filter(pk=one.pk).update(tallied=False, summary=summary, seen_at=None)
