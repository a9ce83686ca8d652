"""The calls of a run, taken under a lease: as many as may be asked now.

Calls of runs never come with an import, so `all_rows` spares the join that hides unfinished ones.
"""

import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.db import transaction
from django.db.models import Count, Min, Q
from django.db.models.functions import Now
from django.utils import timezone

from evaluations.domain import AttemptOutcome, CallState, RunState, Shown
from evaluations.judge.asking import Claimed
from evaluations.models import Attempt, Call, Endpoint, Run
from evaluations.services.judging.judging import texts_of
from evaluations.services.judging.working import LEASE, Bout, Held

# A wait longer than this is left to the sweep: no task sits idle for it.
WAIT_AT_MOST_SECONDS: Final = 5.0


@transaction.atomic
def claim(bout: Bout, room: int, held: int) -> Claimed[Held]:
    """Up to ``room`` calls under a new lease; ``held`` are those that this bout holds already."""
    if not Run.objects.filter(pk=bout.run.pk, state=RunState.RUNNING).exists():
        return Claimed()
    room, wait = room_at_endpoint(bout, room, held)
    if wait is not None:
        return Claimed(wait=wait if wait <= WAIT_AT_MOST_SECONDS else None)
    lease = uuid.uuid4()
    # On SQLite there is no row lock to skip, and this is a conditional UPDATE.
    due = waiting(bout).filter(Q(not_before__isnull=True) | Q(not_before__lte=Now())).order_by("pk")
    taken = due.select_for_update(skip_locked=True)[:room]
    if not Call.all_rows.filter(pk__in=taken.values("pk")).update(
        state=CallState.RUNNING, lease=lease, lease_until=Now() + LEASE
    ):
        return Claimed(wait=seconds_until_due(bout))
    return Claimed(with_texts(bout, lease))


def waiting(bout: Bout) -> Any:
    return Call.all_rows.filter(run=bout.run, state=CallState.PENDING)


def room_at_endpoint(bout: Bout, room: int, held: int) -> tuple[int, float | None]:
    """How many more requests the endpoint may have in flight, from all workers together.

    Zero comes with the seconds after which to look again.
    """
    if bout.judge.endpoint is None:
        return room, None
    # Locked, so that two workers do not both see the last free place.
    endpoint = Endpoint.objects.select_for_update().annotate(now=Now()).get(pk=bout.judge.endpoint.pk)
    if endpoint.paused_until is not None and endpoint.paused_until > endpoint.now:
        return 0, (endpoint.paused_until - endpoint.now).total_seconds()
    running = Call.all_rows.filter(state=CallState.RUNNING, judge__endpoint=endpoint, lease_until__gt=Now()).count()
    room -= max(running - held, 0)
    return (room, None) if room > 0 else (0, 0.2)


def seconds_until_due(bout: Bout) -> float | None:
    """When the next call of this run may be asked; None where none waits, or none soon enough."""
    soonest = waiting(bout).aggregate(count=Count("pk"), due=Min("not_before"))
    if not soonest["count"]:
        return None
    seconds = (soonest["due"] - timezone.now()).total_seconds() if soonest["due"] else 0.0
    return max(seconds, 0.05) if seconds <= WAIT_AT_MOST_SECONDS else None


def with_texts(bout: Bout, lease: uuid.UUID) -> list[Held]:
    texts = ("comparison__query", "comparison__response_a", "comparison__response_b")
    mine = Call.all_rows.filter(run=bout.run, state=CallState.RUNNING, lease=lease).select_related(*texts)
    calls = [(call, call.comparison) for call in mine.order_by("pk")]
    tried = tries(bout, [call.pk for call, _ in calls])
    return [
        Held(call.pk, comparison.pk, lease, Shown(call.shown), tried.get(call.pk, 0), texts_of(comparison))
        for call, comparison in calls
        if comparison is not None
    ]


def tries(bout: Bout, call_ids: Sequence[int]) -> dict[int, int]:
    """Call → requests of this run that met a fault."""
    faults = (AttemptOutcome.RETRY, AttemptOutcome.LOST)
    attempts = Attempt.objects.filter(run=bout.run, call__in=call_ids, outcome__in=faults)
    return dict(attempts.order_by().values_list("call_id").annotate(Count("pk")))


def refresh(held: Mapping[int, uuid.UUID]) -> None:
    """Keep what is still in flight ours for another while."""
    mine = Call.all_rows.filter(pk__in=list(held), lease__in=set(held.values()), state=CallState.RUNNING)
    mine.update(lease_until=Now() + LEASE)
