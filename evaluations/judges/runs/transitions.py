"""The transitions of runs that workers make: paused, stopped, finished."""

from django.db import transaction
from django.db.models.functions import Now

from evaluations.audit.events import record_event
from evaluations.domain.judges import ACTIVE_RUN_STATES, OPEN_CALL_STATES, RunState
from evaluations.judges.runs.selectors import count_calls_by_state
from evaluations.models.runs import Call, Run


@transaction.atomic
def pause_failing_run(run: Run, reason: str) -> None:
    """Pause an active run; the first reason is kept."""
    changed = Run.objects.filter(pk=run.pk, state=RunState.RUNNING).update(state=RunState.PAUSED, stop_reason=reason)
    if changed:
        record_event("paused", run, user=None, evaluation=run.evaluation, after={"reason": reason})


@transaction.atomic
def stop_run(run: Run, reason: str) -> None:
    """End a run that cannot continue until a person fixes the cause; the first reason is kept."""
    changed = Run.objects.filter(pk=run.pk, state__in=ACTIVE_RUN_STATES).update(
        state=RunState.STOPPED, stop_reason=reason, finished_at=Now()
    )
    if changed:
        record_event("stopped", run, user=None, evaluation=run.evaluation, after={"reason": reason})


@transaction.atomic
def finish_run(run: Run) -> bool:
    """End the run if every call of it has its outcome."""
    if Call.all_rows.filter(run=run, state__in=OPEN_CALL_STATES).exists():
        return False
    changed = Run.objects.filter(pk=run.pk, state=RunState.RUNNING).update(state=RunState.DONE, finished_at=Now())
    if changed:
        record_event("finished", run, user=None, evaluation=run.evaluation, after=count_calls_by_state(run))
    return bool(changed)
