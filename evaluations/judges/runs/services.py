"""Runs are started, paused, resumed, cancelled and archived, and their budgets changed."""

import secrets
import uuid
from collections.abc import Sequence
from typing import Final, Unpack

from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils import timezone

from evaluations.audit.events import record_event
from evaluations.domain.errors import InputRefused
from evaluations.domain.judges import (
    ACTIVE_RUN_STATES,
    OPEN_CALL_STATES,
    CallState,
    JudgeKind,
    RunChannel,
    RunState,
)
from evaluations.domain.money import format_exact_usd
from evaluations.evaluation_settings.services import change_evaluation
from evaluations.jobs.nudges import WorkerTask, nudge
from evaluations.judge_prompts.placeholders import refuse_unresolved_placeholders
from evaluations.judges.calls.batch_jobs import poll_batches_now
from evaluations.judges.endpoints.grants import open_accounts, refuse_ungranted_judge
from evaluations.judges.endpoints.price_settings import keep_list_price
from evaluations.judges.runs.budget import refuse_invalid_budget
from evaluations.judges.runs.selection import (
    RunOptions,
    Selection,
    SelectionOptions,
    judge_seed,
    make_selection,
    refuse_archived_judge,
    refuse_impossible_selection,
)
from evaluations.judges.runs.selectors import OPEN_RUN_STATES
from evaluations.models.judges import Judge, Rater
from evaluations.models.runs import Attempt, Batch, Call, Run
from evaluations.models.users import User
from evaluations.verdicts.changes import mark_raters_changed


def start_run(
    judge: Judge,
    *,
    user: User | None,
    budget: int | None = None,
    batch: uuid.UUID | None = None,
    channel: str = RunChannel.LIVE,
    **options: Unpack[SelectionOptions],
) -> Run:
    """A run that a worker will plan and work. The first pairwise judge that runs is shown to reviewers.

    ``batch`` is shared by the runs of a panel; ``budget`` is in nano-USD.
    """
    selection = check_run_options(judge, budget=budget, channel=channel, **options)
    with transaction.atomic():
        # Locked, so that two first runs do not draw a seed each, and nobody archives it meanwhile.
        refuse_archived_judge(Judge.objects.select_for_update().get(pk=judge.pk))
        refuse_ungranted_judge(judge)
        keep_list_price(judge.endpoint, judge.model, user=user)
        if judge.endpoint_id is not None:
            open_accounts(judge.endpoint_id, judge.evaluation_id)
        seed = judge_seed(judge)
        run = Run.objects.create(
            evaluation=judge.evaluation,
            judge=judge,
            user=user,
            batch=batch or uuid.uuid4(),
            channel=channel,
            orders=selection.orders,
            samples=selection.samples,
            seed=secrets.randbelow(2**53) if seed is None else seed,
            budget=budget,
            filters=selection.filters(),
        )
        nudge(WorkerTask.WORK_RUN, run.pk)
        record_event("started", run, user=user, evaluation=judge.evaluation, after=run_event_fields(run))
        show_judge_to_reviewers(selection, user)
    return run


def start_panel(judges: Sequence[Judge], *, user: User | None, **options: Unpack[RunOptions]) -> list[Run]:
    """One run per judge, marked by one batch; all start, or none.

    Options are those of start_run; a budget is each run's own.
    """
    if not judges:
        raise InputRefused("Choose at least one judge.")
    if len({judge.pk for judge in judges}) < len(judges):
        raise InputRefused("Choose each judge only once.")
    batch = uuid.uuid4()
    with transaction.atomic():
        return [start_run(judge, user=user, batch=batch, **options) for judge in judges]


def check_run_options(
    judge: Judge, *, budget: int | None = None, channel: str = RunChannel.LIVE, **options: Unpack[SelectionOptions]
) -> Selection:
    """The selection of a run that may start; InputRefused with the first reason why not."""
    selection = make_selection(judge, **options)
    refuse_impossible_selection(selection)
    refuse_invalid_channel(judge, channel)
    refuse_invalid_budget(judge, budget)
    if (
        judge.kind == JudgeKind.LLM and judge.rubric_version
    ):  # stored before this check existed, or restored from a backup
        refuse_unresolved_placeholders(judge.rubric_version.spec())
    return selection


def run_event_fields(run: Run) -> dict[str, object]:
    fields = {"judge": run.judge.name, "orders": str(run.orders), "samples": run.samples, **run.filters}
    if run.budget is not None:
        fields["budget_usd"] = format_exact_usd(run.budget)
    return fields | ({"channel": str(run.channel)} if run.channel != RunChannel.LIVE else {})


def show_judge_to_reviewers(selection: Selection, user: User | None) -> None:
    """Show the first judge that runs on comparisons; a test call changes nothing."""
    evaluation = selection.judge.evaluation
    if evaluation.shown_judge_id is None and selection.column == "comparison" and not selection.is_one:
        change_evaluation(evaluation, {"shown_judge": selection.judge}, user=user)


def refuse_invalid_channel(judge: Judge, channel: str) -> None:
    if channel not in set(RunChannel):
        raise InputRefused(f"Channel must be one of: {', '.join(RunChannel)}.")
    if channel == RunChannel.BATCH and judge.kind != JudgeKind.LLM:
        raise InputRefused(f"“{judge.name}” is rule-based and makes no requests. Use the live channel.")
    if channel == RunChannel.BATCH and judge.one_aspect_per_call:
        raise InputRefused(
            f"“{judge.name}” asks for one aspect per call, which can take a day each with the Batch API. Use the "
            "live channel."
        )


def pause_run(run: Run, *, user: User | None) -> None:
    """Send nothing more until the run is resumed; answers in flight are still stored."""
    change_run_state(run, (RunState.PLANNING, RunState.RUNNING), RunState.PAUSED, "paused", user)


@transaction.atomic
def resume_run(run: Run, *, user: User | None, budget: int | None = None) -> None:
    """Continue a paused run, or a stopped one once its cause is fixed; with a new budget if given."""
    if budget is not None:
        change_budget(run, budget, user=user)
    row = (
        Run.objects.select_for_update(of=("self",))
        .select_related("judge__endpoint", "judge__evaluation")
        .get(pk=run.pk)
    )
    if row.archived_at:
        raise InputRefused(f"Run {row.pk} is archived. Restore it first.")
    refuse_archived_judge(row.judge)
    refuse_ungranted_judge(row.judge)
    waiting = Call.all_rows.filter(run=row, state__in=OPEN_CALL_STATES)
    if row.state == RunState.STOPPED and not waiting.exists():
        raise InputRefused("This run has no pending calls. Start a new run.")
    state = RunState.RUNNING if row.started_at else RunState.PLANNING
    change_run_state(run, (RunState.PAUSED, RunState.STOPPED), state, "resumed", user)
    # Calls that waited for a server are due now: someone says that it is back.
    waiting.filter(not_before__gt=Now()).update(not_before=None)
    nudge(WorkerTask.WORK_RUN, run.pk)


def cancel_run(run: Run, *, user: User | None) -> None:
    """Send nothing more; answers in flight are still stored."""
    change_run_state(run, OPEN_RUN_STATES, RunState.CANCELLED, "cancelled", user)
    poll_batches_now(run)


@transaction.atomic
def archive_run(run: Run, *, user: User | None) -> None:
    """Take an ended run off the list of runs. Its verdicts count as before."""
    row = Run.objects.select_for_update().get(pk=run.pk)
    if row.archived_at:
        return
    if row.state in ACTIVE_RUN_STATES:
        raise InputRefused("Only ended runs can be archived: wait for this one to finish, or cancel it.")
    row.archived_at = timezone.now()
    row.save(update_fields=["archived_at"])
    record_event("archived", row, user=user, evaluation=row.evaluation, after={"judge": row.judge.name})


@transaction.atomic
def restore_run(run: Run, *, user: User | None) -> None:
    """Bring an archived run back to the list of runs."""
    row = Run.objects.select_for_update().get(pk=run.pk)
    if row.archived_at is None:
        return
    row.archived_at = None
    row.save(update_fields=["archived_at"])
    record_event("restored", row, user=user, evaluation=row.evaluation, after={"judge": row.judge.name})


CALLS_PER_DELETION: Final = 5_000  # in one statement, so that other writers do not wait long


def why_run_is_kept(run: Run) -> str | None:
    """Why the run cannot be deleted: it is not over, or something was asked, paid or answered. Else None."""
    if run.state not in (RunState.CANCELLED, RunState.DONE):
        return "Cancel the run first."
    attempts = Attempt.objects.filter(Q(run=run) | Q(call__run=run))
    begun = Call.all_rows.filter(run=run).exclude(state__in=(CallState.PENDING, CallState.CANCELLED))
    if run.spent or run.reused or attempts.exists() or begun.exists() or Batch.objects.filter(run=run).exists():
        return "The judge was already asked in this run, so it stays. You can archive the judge."
    return None


def delete_run(run: Run, *, user: User) -> None:
    """Delete a run in which nothing was asked, with its calls that wait for good."""
    if why := why_run_is_kept(run):
        raise InputRefused(why)
    waiting = Call.all_rows.filter(run=run, state__in=(CallState.PENDING, CallState.CANCELLED)).order_by()
    while ids := list(waiting.values_list("pk", flat=True)[:CALLS_PER_DELETION]):
        waiting.filter(pk__in=ids).delete()
    with transaction.atomic():
        locked = Run.objects.select_for_update().get(pk=run.pk)
        if why := why_run_is_kept(locked):
            raise InputRefused(why)
        before = run_event_fields(run)
        record_event("deleted", run, user=user, evaluation=run.evaluation, before=before)
        locked.delete()
        mark_raters_changed(Rater.objects.filter(judge=run.judge_id).values_list("pk", flat=True))


@transaction.atomic
def change_run_state(run: Run, states: Sequence[RunState], to: RunState, verb: str, user: User | None) -> None:
    """Take the run from one of these states to another; claims check the state each time."""
    columns = {"state": to, "finished_at": Now() if to == RunState.CANCELLED else None}
    if to in ACTIVE_RUN_STATES and to != RunState.PAUSED:
        columns["resumed_at"] = Now()
    changed = Run.objects.filter(pk=run.pk, state__in=states)
    if not changed.update(**columns, **({} if to == RunState.CANCELLED else {"stop_reason": ""})):
        run.refresh_from_db(fields=["state"])
        raise InputRefused(f"This run cannot be {verb}: it is {describe_run_state(run)}.")
    record_event(verb, run, user=user, evaluation=run.evaluation)
    run.refresh_from_db(fields=["state", "stop_reason", "finished_at"])


def describe_run_state(run: Run) -> str:
    words = {RunState.PLANNING: "being planned", RunState.RUNNING: "running"}
    return words.get(RunState(run.state), f"already {run.state}")


@transaction.atomic
def change_budget(run: Run, budget: int | None, *, user: User | None) -> None:
    """Change the limit of what the run may spend, in nano-USD; None removes it."""
    refuse_invalid_budget(run.judge, budget)
    row = Run.objects.select_for_update().get(pk=run.pk)
    if row.state not in OPEN_RUN_STATES:
        raise InputRefused(f"The budget cannot be changed: this run is {describe_run_state(row)}.")
    gone = row.spent + row.reserved
    if budget is not None and budget < gone:
        raise InputRefused(
            f"This run has already spent or reserved USD {format_exact_usd(gone)}. Set at least that much."
        )
    Run.objects.filter(pk=run.pk).update(budget=budget)
    run.budget = budget
    before, after = ({"budget_usd": None if nano is None else format_exact_usd(nano)} for nano in (row.budget, budget))
    record_event("changed budget", run, user=user, evaluation=run.evaluation, before=before, after=after)
