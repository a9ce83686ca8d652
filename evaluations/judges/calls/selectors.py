"""The states by which calls are listed."""

from collections.abc import Mapping
from typing import Final

from django.db.models import Q

from evaluations.domain.judges import FAILURE_STATES, CallState

CALL_FILTERS: Final[Mapping[str, Q]] = {
    **{state.value: Q(state=state) for state in CallState},
    "unusable": Q(state__in=FAILURE_STATES),
    "repaired": Q(repaired=True),
    "copied": Q(copied_from__isnull=False),
}
