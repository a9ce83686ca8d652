"""The comparisons that a call's answer concerns."""

from django.db.models import Q, QuerySet

from evaluations.models.comparisons import Comparison
from evaluations.models.runs import Call


def comparisons_of_call(row: Call) -> "QuerySet[Comparison]":
    """The comparisons that its answer says something about: one, or all those of the response."""
    if row.comparison_id is not None:
        return Comparison.objects.filter(pk=row.comparison_id)
    return Comparison.objects.filter(Q(response_a=row.response_id) | Q(response_b=row.response_id))
