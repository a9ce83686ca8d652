"""Runs are started, paused, resumed and cancelled, and their budgets changed."""

import secrets
import uuid
from collections.abc import Sequence
from typing import Unpack

from django.db import transaction
from django.db.models.functions import Now

from evaluations.audit.events import record_event
from evaluations.domain.errors import InputRefused
from evaluations.domain.judges import ACTIVE_RUN_STATES, OPEN_CALL_STATES, JudgeKind, RunChannel, RunState
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
from evaluations.models.judges import Judge
from evaluations.models.runs import Call, Run
from evaluations.models.users import User


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
        raise InputRefused("A judge sits on a panel once: name each of them one time.")
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
        raise InputRefused(f"Requests travel in one of these ways: {', '.join(RunChannel)}.")
    if channel == RunChannel.BATCH and judge.kind != JudgeKind.LLM:
        raise InputRefused(f"“{judge.name}” makes no requests: the Batch API is for models.")
    if channel == RunChannel.BATCH and judge.one_aspect_per_call:
        raise InputRefused(
            f"“{judge.name}” asks for one aspect per call, and the Batch API may take a day for each: send its "
            "requests one by one."
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
    refuse_archived_judge(row.judge)
    refuse_ungranted_judge(row.judge)
    waiting = Call.all_rows.filter(run=row, state__in=OPEN_CALL_STATES)
    if row.state == RunState.STOPPED and not waiting.exists():
        raise InputRefused("Nothing of this run is left to ask: start a new one.")
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
    words = {RunState.PLANNING: "being planned", RunState.RUNNING: "running", RunState.PAUSED: "paused already"}
    return words.get(RunState(run.state), f"{run.state} already")


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
            f"USD {format_exact_usd(gone)} of this run are spent or in flight already: give it at least that."
        )
    Run.objects.filter(pk=run.pk).update(budget=budget)
    run.budget = budget
    before, after = ({"budget_usd": None if nano is None else format_exact_usd(nano)} for nano in (row.budget, budget))
    record_event("changed budget", run, user=user, evaluation=run.evaluation, before=before, after=after)
