"""The sweeper that returns calls with expired leases, ends finished runs, finds runs without a worker."""

from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import date
from typing import Final

from django.db import transaction
from django.db.models import Count, Exists, Max, OuterRef, Q
from django.db.models.functions import Now

from evaluations.domain.judges import OPEN_CALL_STATES, AttemptOutcome, CallState, JudgeKind, RunState
from evaluations.judges.endpoints.sql import GrantKey, SpendingTotals, add_to_totals, utc_date
from evaluations.judges.runs.budget import book_spending
from evaluations.judges.runs.transitions import finish_run
from evaluations.judges.sql import touch_raters
from evaluations.models.clock import read_clock
from evaluations.models.runs import Attempt, Call, Run
from evaluations.models.transactions import SHORT_TRANSACTION_ROWS, pause_after_transaction

MIN_CALLS_TO_JOIN: Final = 2 * SHORT_TRANSACTION_ROWS  # pending calls
MAX_LOST_ATTEMPTS: Final = 2  # a call that killed its worker so often is set aside


def return_expired_calls() -> int:
    """Make calls with an expired lease pending again; requests in flight are recorded as lost."""
    count = 0
    while returned := return_some_expired_calls():
        count += returned
    return count


def return_some_expired_calls() -> int:
    with pause_after_transaction(), transaction.atomic():
        expired = Call.all_rows.filter(state=CallState.RUNNING, lease_until__lt=Now()).select_related("judge")
        calls = list(expired.select_for_update(of=("self",), skip_locked=True).order_by("pk")[:SHORT_TRANSACTION_ROWS])
        mine = Call.all_rows.filter(pk__in=[call.pk for call in calls])
        touch_raters(mine)
        record_lost_attempts([call for call in calls if call.run_id and call.judge.kind == JudgeKind.LLM])
        mine.update(state=CallState.PENDING, lease=None, lease_until=None, reserved=0)
        lost = Count("attempts", filter=Q(attempts__outcome=AttemptOutcome.LOST))
        suspects = mine.annotate(lost=lost).filter(lost__gte=MAX_LOST_ATTEMPTS).values_list("pk", flat=True)
        mine.filter(pk__in=list(suspects)).update(
            state=CallState.FAILED,
            error=(
                f"Failed: the worker died {MAX_LOST_ATTEMPTS} times while this call was in flight. Check "
                "the worker’s log, then retry."
            ),
        )
    return len(calls)


def record_lost_attempts(calls: Sequence[Call]) -> None:
    """Record one lost request per call; its cost is unknown, so the reserved amount counts as spent."""
    now = read_clock()
    attempts = Attempt.objects.filter(call__in=[call.pk for call in calls]).order_by().values_list("call_id")
    last_numbers = dict(attempts.annotate(Max("number")))
    lost = Attempt.objects.bulk_create(
        Attempt(
            call=call,
            run_id=call.run_id or 0,
            number=last_numbers.get(call.pk, 0) + 1,
            step=call.step,
            lease=call.lease,
            outcome=AttemptOutcome.LOST,
            max_cost=call.reserved or None,
            latency_ms=0,
            error="The worker was killed before the answer was stored.",
        )
        for call in calls
    )
    # For how long the server may still be at them is seen by this moment.
    Attempt.objects.filter(pk__in=[attempt.pk for attempt in lost]).update(created_at=now)
    reserved: Counter[int] = Counter()
    totals: defaultdict[tuple[GrantKey, date], SpendingTotals] = defaultdict(SpendingTotals)
    for call, attempt in zip(calls, lost, strict=True):
        reserved[call.run_id or 0] += call.reserved
        if call.judge.endpoint_id is not None:
            key = GrantKey(call.judge.endpoint_id, call.judge.evaluation_id)
            totals[key, utc_date(now)].add(None, None, None, attempt.max_cost)
    book_spending(reserved, reserved, utc_date(now))
    add_to_totals(totals, now)


def finish_ended_runs() -> None:
    """Finish runs whose worker died after storing the last call."""
    calls = Call.all_rows.filter(run=OuterRef("pk"), state__in=OPEN_CALL_STATES)
    for run in Run.objects.filter(~Exists(calls), state=RunState.RUNNING).select_related("evaluation"):
        finish_run(run)


def find_idle_runs() -> list[int]:
    """Runs with pending work and no worker."""
    calls = Call.all_rows.filter(run=OuterRef("pk"))
    due = calls.filter(Q(not_before__isnull=True) | Q(not_before__lte=Now()), state=CallState.PENDING)
    worked = calls.filter(state=CallState.RUNNING, lease_until__gt=Now())
    idle = Run.objects.with_ready_endpoint().filter(Exists(due) & ~Exists(worked), state=RunState.RUNNING)
    planning = Run.objects.filter(state=RunState.PLANNING)
    return sorted([*planning.values_list("pk", flat=True), *idle.values_list("pk", flat=True)])


def find_runs_to_join() -> list[int]:
    """Active runs with enough pending work for another idle worker."""
    calls = Call.all_rows.filter(run=OuterRef("pk"), state=CallState.PENDING, not_before__isnull=True)
    large = Exists(calls[MIN_CALLS_TO_JOIN : MIN_CALLS_TO_JOIN + 1])
    runs = Run.objects.with_ready_endpoint().filter(large, state=RunState.RUNNING)
    return list(runs.order_by("pk").values_list("pk", flat=True))
