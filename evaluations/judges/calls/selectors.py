"""Questions about calls: which comparisons they concern, by which states they are listed."""

from collections.abc import Mapping
from typing import Final

from django.db.models import Q, QuerySet

from evaluations.domain.judges import FAILURE_STATES, CallState
from evaluations.models.comparisons import Comparison
from evaluations.models.runs import Call

CALL_FILTERS: Final[Mapping[str, Q]] = {
    **{state.value: Q(state=state) for state in CallState},
    "unusable": Q(state__in=FAILURE_STATES),
    "repaired": Q(repaired=True),
    "copied": Q(copied_from__isnull=False),
}


def comparisons_of_call(row: Call) -> "QuerySet[Comparison]":
    """The comparisons that the call's answer concerns: one, or all those of its response."""
    if row.comparison_id is not None:
        return Comparison.objects.filter(pk=row.comparison_id)
    return Comparison.objects.filter(Q(response_a=row.response_id) | Q(response_b=row.response_id))
