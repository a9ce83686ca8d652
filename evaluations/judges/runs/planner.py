"""The planner of runs, which creates calls, takes them over from earlier runs, cancels them."""

import time
from collections.abc import Sequence
from typing import Final

from django.db import transaction
from django.db.models.functions import Now
from django.utils import timezone

from evaluations.domain.choices import ShownOrder
from evaluations.domain.jobs import PLAN_RUN
from evaluations.domain.judges import ACTIVE_RUN_STATES, OPEN_CALL_STATES, AttemptStep, CallState, RunState
from evaluations.jobs.kinds import JobClaim, JobKind, register_job_kind
from evaluations.judges.runs.budget import transfer_reservations
from evaluations.judges.runs.selection import (
    ANSWERED_FAILURE_STATES,
    CallSubject,
    Selection,
    call_subjects,
    draw_orders,
    find_calls_to_retry,
    find_next_rows,
    run_selection,
)
from evaluations.judges.runs.transitions import stop_run
from evaluations.judges.sql import touch_raters
from evaluations.models.bulk import insert_many, refresh_statistics
from evaluations.models.jobs import Job
from evaluations.models.judges import Judge
from evaluations.models.runs import Call, Run
from evaluations.models.transactions import SHORT_TRANSACTION_ROWS, is_time_up, pause_after_transaction
from evaluations.replies.reply_format import wants_two_steps
from evaluations.verdicts.packed_votes import pack_call_verdicts

# Calls that a new run takes over: they have no usable answer, and nobody decided to leave them so.
TRANSFERABLE_STATES: Final = (*OPEN_CALL_STATES, CallState.CANCELLED, CallState.FAILED)


def plan_run_calls(run_id: int, *, until: float, claim: JobClaim | None = None) -> None:
    """Create or take over the run's calls in short transactions, continuing where a killed worker stopped."""
    has_planned = False
    while not is_time_up(until):
        with pause_after_transaction(), transaction.atomic():
            is_left = plan_next_calls(run_id)
            if is_left and claim is not None:
                claim.heartbeat(claim.job.position + 1)
        if not is_left:
            if has_planned:
                refresh_statistics(Call)  # else claims take seconds until autovacuum runs
            return
        has_planned = True


@transaction.atomic
def plan_next_calls(run_id: int) -> bool:
    """Plan the next calls; False once none is left and the run is running."""
    related = "judge__rubric_version__rubric"
    run = Run.objects.select_for_update(of=("self",)).select_related(related).get(pk=run_id)
    if run.state != RunState.PLANNING:
        return False
    # Two runs of one judge plan one after the other, so that each call belongs to one of them.
    Judge.objects.select_for_update().get(pk=run.judge_id)
    selection = run_selection(run)
    if not (plan_retried_calls(run, selection) if selection.only_states else plan_selected_calls(run, selection)):
        Run.objects.filter(pk=run_id).update(state=RunState.RUNNING, started_at=Now())
        return False
    run.save(update_fields=["planned", "reused", "filters"])
    return True


def plan_retried_calls(run: Run, selection: Selection) -> bool:
    """Plan the next calls to repeat; the position is stored on the run. False after the last."""
    after = run.filters.get("after", 0)
    again = find_calls_to_retry(selection).filter(pk__gt=after).select_for_update(of=("self",))
    calls = list(again.order_by("pk")[:SHORT_TRANSACTION_ROWS])
    if calls:
        transfer_calls(run, calls)
        run.planned += len(calls)
        run.filters |= {"after": calls[-1].pk}
    return bool(calls)


def plan_selected_calls(run: Run, selection: Selection) -> bool:
    """Create calls that never existed, and take over those that wait or failed in other runs; False after the last."""
    ids = next_subjects(run, selection)
    subjects = list(call_subjects(ids, run.orders, run.samples, run.seed))
    by_subject = lock_existing_calls(run, f"{selection.column}_id", ids)
    new = [subject for subject in subjects if subject not in by_subject]
    create_calls(run, selection, new)
    existing = [by_subject[subject] for subject in subjects if subject in by_subject]
    if not selection.is_one:
        count_test_calls([call for call in existing if call.is_test])
    taken = [call for call in existing if is_transferable(run, call)]
    transfer_calls(run, taken)
    run.planned += len(new) + len(taken)
    run.reused += sum(call.state == CallState.ANSWERED for call in existing)
    return bool(ids)


def lock_existing_calls(run: Run, column: str, ids: Sequence[int]) -> dict[CallSubject, Call]:
    """The judge's existing calls on these subjects, locked.

    Without the lock an answer that arrived before the take-over would be bought again.
    """
    mine = Call.all_rows.filter(**{"judge": run.judge_id, f"{column}__in": ids})
    locked = mine.select_related("run").select_for_update(of=("self",)).order_by("pk")
    needed = locked.only(column, "shown", "sample", "state", "is_test", "reserved", "run__state")
    return {(getattr(call, column), ShownOrder(call.shown), call.sample): call for call in needed}


# Columns without a database default, which inserts must name even if they are empty.
CALL_COLUMNS: Final = (
    *("created_at", "judge_id", "run_id", "state", "step", "repaired", "reserved"),
    *("prompt_sha256", "reuse_key", "error", "rationale", "is_test"),
)


def create_calls(run: Run, selection: Selection, new: Sequence[CallSubject]) -> None:
    column, texts = f"{selection.column}_id", [""] * 4
    same = (timezone.now(), run.judge_id, run.pk, CallState.PENDING.value, AttemptStep.ASK.value, False, 0, *texts)
    same = (*same, selection.is_one)
    rows = [(*same, pk, shown.value, sample) for pk, shown, sample in new]
    insert_many(Call, (*CALL_COLUMNS, column, "shown", "sample"), rows)


def count_test_calls(calls: Sequence[Call]) -> None:
    """Count these test calls like other calls, since a run has selected them."""
    if not calls:
        return
    tests = Call.all_rows.filter(pk__in=[call.pk for call in calls])
    tests.update(is_test=False)
    pack_call_verdicts(tests)
    touch_raters(tests)


def next_subjects(run: Run, selection: Selection) -> list[int]:
    """The next comparisons or responses; the position is stored on the run."""
    done = run.filters.get("done", 0)
    limit = max(1, SHORT_TRANSACTION_ROWS // (len(draw_orders(0, run.orders, 0)) * run.samples))
    if selection.limit is not None:
        limit = min(limit, selection.limit - done)
    rows = find_next_rows(selection, run.filters.get("after"), limit)
    if rows:
        run.filters |= {"after": list(rows[-1]), "done": done + len(rows)}
    return [row[-1] for row in rows]


def is_transferable(run: Run, call: Call) -> bool:
    states = TRANSFERABLE_STATES + (ANSWERED_FAILURE_STATES if run.filters.get("ask_failures_again") else ())
    return call.state in states and (call.run is None or call.run.state not in ACTIVE_RUN_STATES)


def transfer_calls(run: Run, calls: Sequence[Call]) -> None:
    """Move these calls to this run, with what was bought of their conversations unless it was unusable.

    A call in flight keeps its lease: its answer is on the way, and this run pays for it if its budget covers that;
    otherwise the call stays where it is. Of two steps the first is kept even if the second failed, unless the call is
    suspect.
    """
    in_flight = transfer_reservations((call for call in calls if call.state == CallState.RUNNING), run)
    failed = [call.pk for call in calls if call.state in ANSWERED_FAILURE_STATES]
    waiting = [call.pk for call in calls if call.state not in (CallState.RUNNING, *ANSWERED_FAILURE_STATES)]
    pending = {"run": run, "state": CallState.PENDING, "error": "", "batch": None}
    pending |= {"lease": None, "lease_until": None, "not_before": None}
    Call.all_rows.filter(pk__in=[call.pk for call in in_flight]).update(run=run)
    Call.all_rows.filter(pk__in=waiting).update(**pending)
    if not failed:
        return
    repeated = Call.all_rows.filter(pk__in=failed)
    repeated.update(**pending, repaired=False, copied_from=None)
    # The evaluation itself may have been dictated: a suspect conversation starts again.
    suspect = [call.pk for call in calls if call.state == CallState.SUSPECT]
    repeated.filter(pk__in=suspect).update(step=AttemptStep.ASK)
    repeated.exclude(step=AttemptStep.ASK).update(step=first_unpaid_step(run.judge))


def first_unpaid_step(judge: Judge) -> AttemptStep:
    """The step at which a call past its first request continues."""
    assert judge.rubric_version is not None
    two_steps = wants_two_steps(judge.rubric_version.spec(), judge.mode)
    return AttemptStep.SCORE if two_steps else AttemptStep.ASK


def cancel_waiting_calls(*, seconds: float | None = None) -> None:
    """Cancel pending calls of cancelled runs in short transactions, for ``seconds`` or until none is left."""
    until = None if seconds is None else time.monotonic() + seconds
    waiting = Call.all_rows.filter(run__state=RunState.CANCELLED, state=CallState.PENDING)
    while not is_time_up(until) and (ids := list(waiting.values_list("pk", flat=True)[:SHORT_TRANSACTION_ROWS])):
        with pause_after_transaction(), transaction.atomic():
            # Filtered again inside, since a new run may have taken a call over meanwhile; locked in the order in which
            # planning does, or each would wait for the other.
            locked = waiting.filter(pk__in=ids).order_by("pk").select_for_update(of=("self",))
            Call.all_rows.filter(pk__in=list(locked.values_list("pk", flat=True))).update(state=CallState.CANCELLED)
            touch_raters(Call.all_rows.filter(pk__in=ids))


def plan_for_a_while(claim: JobClaim) -> bool:
    """Plan the run that the job is about; whether all of it is planned."""
    run_id, until = claim.job.subject, claim.until
    plan_run_calls(run_id, until=float("inf") if until is None else until, claim=claim)
    return not Run.objects.filter(pk=run_id, state=RunState.PLANNING).exists()


def give_up_planning(job: Job, reason: str) -> None:
    """Stop the run with this reason; it may be resumed."""
    stop_run(Run.objects.get(pk=job.subject), reason)


register_job_kind(JobKind(PLAN_RUN, plan_for_a_while, on_give_up=give_up_planning))
