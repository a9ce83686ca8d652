"""Leases that ran out, runs that have ended, and runs that have something to do and nobody doing it."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q
from django.db.models.functions import Now

from evaluations.domain import OPEN_BATCH_STATES, OPEN_CALL_STATES, AttemptOutcome, CallState, JudgeKind, RunState
from evaluations.models import Attempt, Batch, Call, Run
from evaluations.services.judging import budgeting
from evaluations.services.judging.running import finish, note_endings
from evaluations.services.judging.storing import last_numbers
from evaluations.services.pacing import ROWS_AT_ONCE, paced

WORTH_JOINING: Final = 2 * ROWS_AT_ONCE  # calls that wait
LOST_AT_MOST: Final = 2  # a call that takes its worker down twice is set aside


def put_back_expired() -> int:
    """Calls whose lease ran out wait again; a request that was in flight is written down as lost."""
    count = 0
    while found := put_back_some():
        count += found
    return count


def put_back_some() -> int:
    with paced(), transaction.atomic():
        expired = Call.all_rows.filter(state=CallState.RUNNING, lease_until__lt=Now()).select_related("judge")
        calls = list(expired.select_for_update(of=("self",), skip_locked=True).order_by("pk")[:ROWS_AT_ONCE])
        mine = Call.all_rows.filter(pk__in=[call.pk for call in calls])
        note_endings(mine)  # before the accounts of the runs, as in storing
        write_lost([call for call in calls if call.run_id and call.judge.kind == JudgeKind.LLM])
        mine.update(state=CallState.PENDING, lease=None, lease_until=None, reserved=0)
        lost = Count("attempts", filter=Q(attempts__outcome=AttemptOutcome.LOST))
        worn = mine.annotate(lost=lost).filter(lost__gte=LOST_AT_MOST).values_list("pk", flat=True)
        mine.filter(pk__in=list(worn)).update(
            state=CallState.FAILED,
            error=f"Set aside: the worker died {LOST_AT_MOST} times while this call was in flight. "
            "Look at the worker's log, then retry it.",
        )
    return len(calls)


def write_lost(calls: Sequence[Call]) -> None:
    """A request each, whose cost is not known: what was kept back for it is counted as spent."""
    numbers = last_numbers([call.pk for call in calls])
    Attempt.objects.bulk_create(
        Attempt(
            call=call,
            run_id=call.run_id or 0,
            number=numbers.get(call.pk, 0) + 1,
            step=call.step,
            lease=call.lease,
            outcome=AttemptOutcome.LOST,
            cost_at_most=call.reserved or None,
            latency_ms=0,
            error="The worker was killed before the answer was stored.",
        )
        for call in calls
    )
    for run_id, kept_back in kept_back_by_run(calls).items():
        budgeting.book(run_id, spent=kept_back, released=kept_back)


def kept_back_by_run(calls: Sequence[Call]) -> Counter[int]:
    kept_back: Counter[int] = Counter()
    for call in sorted(calls, key=lambda call: call.run_id or 0):
        kept_back[call.run_id or 0] += call.reserved
    return kept_back


def finish_ended_runs() -> None:
    """Runs whose last call was settled by a worker that died before it could say so."""
    calls = Call.all_rows.filter(run=OuterRef("pk"), state__in=OPEN_CALL_STATES)
    for run in Run.objects.filter(~Exists(calls), state=RunState.RUNNING).select_related("evaluation"):
        finish(run)


def runs_to_nudge() -> list[int]:
    """Runs that have something to do and nobody doing it."""
    calls = Call.all_rows.filter(run=OuterRef("pk"))
    due = calls.filter(Q(not_before__isnull=True) | Q(not_before__lte=Now()), state=CallState.PENDING)
    worked = calls.filter(state=CallState.RUNNING, lease_until__gt=Now())
    paused = Q(judge__endpoint__paused_until__gt=Now())
    idle = Q(Exists(due) & ~Exists(worked), state=RunState.RUNNING) & ~paused
    return list(Run.objects.filter(Q(state=RunState.PLANNING) | idle).order_by("pk").values_list("pk", flat=True))


def runs_to_join() -> list[int]:
    """Runs at work with so much to do that another worker, if one is idle, should help."""
    calls = Call.all_rows.filter(run=OuterRef("pk"), state=CallState.PENDING, not_before__isnull=True)
    paused = Q(judge__endpoint__paused_until__gt=Now())
    large = Exists(calls[WORTH_JOINING : WORTH_JOINING + 1])
    return list(Run.objects.filter(large, ~paused, state=RunState.RUNNING).order_by("pk").values_list("pk", flat=True))


def batches_to_nudge() -> list[int]:
    """Batches that it is time to look at, with nobody at it. One to be cancelled is not waited for."""
    free = Q(lease_until__isnull=True) | Q(lease_until__lt=Now())
    to_cancel = Q(run__state=RunState.CANCELLED) & ~Q(remote_state__startswith="cancel")
    due = Q(not_before__isnull=True) | Q(not_before__lte=Now()) | to_cancel
    waiting = Batch.objects.filter(free, due, state__in=OPEN_BATCH_STATES)
    return list(waiting.order_by("pk").values_list("pk", flat=True))
