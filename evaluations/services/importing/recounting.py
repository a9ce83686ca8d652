"""Imports whose people's votes have to be counted anew: what makes their scores votes has changed."""

from collections.abc import Collection
from typing import Final

from django.db.models import QuerySet

from evaluations.domain import ImportState, RaterKind
from evaluations.models import Import, Score

# How far the labels of an import are kept: the last comparison, in the import's summary.
TALLIED_TO: Final = "tallied_to"


def imports_of(scores: QuerySet[Score]) -> set[int]:
    """Those that brought people's scores among these."""
    brought = scores.filter(source_import__isnull=False, rater__kind=RaterKind.HUMAN).order_by()
    return {pk for pk in brought.values_list("source_import", flat=True).distinct() if pk}


def recount_later(imports: Collection[int]) -> None:
    """Scores of people in these make other votes now: a worker counts them as if they had just come in."""
    for one in Import.objects.filter(pk__in=imports, state=ImportState.DONE):
        summary = {name: value for name, value in one.summary.items() if name != TALLIED_TO}
        Import.objects.filter(pk=one.pk).update(tallied=False, summary=summary, seen_at=None)
